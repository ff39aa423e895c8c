// Transforms modulo r^k + 1, a pass at a time (FermatPass): a tile of columns of R numbers is transformed by
// shifts and additions in the cache, and written, each number times its factor, where the next pass reads.
#include <nanobind/stl/array.h>

#include <algorithm>
#include <vector>

#include "bindings.hpp"
#include "fermat.hpp"

namespace rns {

namespace {

template <class Digit>
class Pass {
 public:
  Pass(const FermatField& f, const FermatPass& pass, FermatRows<Digit> factors)
      : f_(f),
        pass_(pass),
        factors_(factors),
        radix_(1 << pass.log_radix),
        size_(f.digits * kLanes),
        tile_(radix_ * size_),
        other_(radix_ * size_),
        factor_(size_),
        product_(size_) {}

  // Columns from `first` on, up to kLanes.
  void apply(FermatRows<Digit> x, i64 first, i64 width, FermatResult<Digit> out) {
    for (i64 l = 0; l < kLanes; ++l) columns_[l] = first + std::min(l, width - 1);
    load(x);
    for (i32 log_half = 0; log_half < pass_.log_radix; ++log_half) {
      level(log_half);
      std::swap(tile_, other_);
    }
    for (i32 row = 0; row < radix_; ++row) store(row, width, out);
  }

 private:
  static constexpr i64 kLanes = kFermatLanes<Digit>;

  FermatResult<Digit> number(std::vector<Digit>& tile, i64 row) { return {&tile[row * size_], kLanes}; }

  void load(FermatRows<Digit> x) {
    i64 from[kLanes];
    for (i32 row = 0; row < radix_; ++row) {
      for (i64 l = 0; l < kLanes; ++l) {
        from[l] = pass_.source(columns_[l]) + (static_cast<i64>(row) << pass_.log_columns);
      }
      read(x, from, number(tile_, pass_.reversed(row)));
    }
  }

  void level(i32 log_half) {
    const i32 half = 1 << log_half;
    for (i32 top = 0; top < radix_; top += 2 * half) {
      for (i32 i = 0; i < half; ++i) {
        FermatTiles<Digit>::butterfly(f_, number(tile_, top + i), number(tile_, top + half + i),
                                      pass_.shift(i, log_half, f_.digits), number(other_, top + i),
                                      number(other_, top + half + i));
      }
    }
  }

  void store(i32 row, i64 width, FermatResult<Digit> out) {
    i64 to[kLanes], which[kLanes];
    for (i64 l = 0; l < kLanes; ++l) {
      to[l] = pass_.target(columns_[l], row);
      which[l] = pass_.factor(columns_[l], row);
    }
    FermatResult<Digit> result = number(tile_, row);
    if (factors_.data != nullptr) {
      const FermatResult<Digit> factor = {factor_.data(), kLanes}, product = {product_.data(), kLanes};
      read(factors_, which, factor);
      FermatTiles<Digit>::multiply(f_, result, factor, product);
      result = product;
    }
    const bool is_run = to[kLanes - 1] - to[0] == kLanes - 1;  // they ascend
    for (i64 i = 0; i < f_.digits; ++i) {
      const Digit* from = result.row(i);
      Digit* row_out = out.row(i);
      if (is_run) {
        std::copy_n(from, kLanes, row_out + to[0]);
      } else {
        for (i64 l = 0; l < width; ++l) row_out[to[l]] = from[l];
      }
    }
  }

  // The numbers at some ascending places.
  void read(FermatRows<Digit> x, const i64* from, FermatResult<Digit> out) {
    const bool is_run = from[kLanes - 1] - from[0] == kLanes - 1;
    for (i64 i = 0; i < f_.digits; ++i) {
      if (is_run) {
        std::copy_n(x.row(i) + from[0], kLanes, out.row(i));
      } else {
        for (i64 l = 0; l < kLanes; ++l) out.row(i)[l] = x.row(i)[from[l]];
      }
    }
  }

  FermatField f_;
  FermatPass pass_;
  FermatRows<Digit> factors_;
  i32 radix_;
  i64 size_;
  std::vector<Digit> tile_, other_, factor_, product_;
  i64 columns_[kLanes];
};

template <class Digit>
void apply_pass(const FermatMatrix<Digit>& x, const FermatParameters& p, const std::array<i32, 4>& shape,
                const FermatMatrix<Digit>& factors, FermatOut<Digit> out) {
  const FermatField f = field_of(p);
  const FermatPass pass = {shape[0], shape[1], shape[2], shape[3]};
  const i64 count = static_cast<i64>(out.shape(1)), columns = count >> pass.log_radix;
  const i64 factor_count = static_cast<i64>(factors.shape(1));
  require(static_cast<i64>(out.shape(0)) == f.digits, "the result must have one row for each digit");
  require(static_cast<i64>(x.shape(1)) == count, "operand and result must have as many columns");
  check_operand(x, f, count);
  check_operand(factors, f, factor_count);
  require(pass.log_radix >= 1 && 1 << pass.log_radix <= 2 * f.digits, "a pass is of 2 to 2 k numbers");
  require(pass.log_done >= 0 && pass.log_done <= pass.log_columns, "a pass has columns of columns");
  require(count % (i64{1} << (pass.log_radix + pass.log_columns)) == 0, "transforms must be whole");
  require(factor_count == 0 || factor_count == i64{1} << (pass.log_radix + pass.log_columns - pass.log_done),
          "a factor for each result of a root's powers is needed");
  nb::gil_scoped_release release;
  Pass<Digit> passes(f, pass, {factor_count == 0 ? nullptr : factors.data(), factors.stride(0)});
  for (i64 first = 0; first < columns; first += kFermatLanes<Digit>) {
    passes.apply({x.data(), x.stride(0)}, first, std::min(kFermatLanes<Digit>, columns - first),
                 {out.data(), count});
  }
}

}  // namespace

void bind_fermat_fft(nb::module_& module) {
  module.def("fermat_pass", apply_pass<u32>);
  module.def("fermat_pass", apply_pass<u64>);
}

}  // namespace rns
