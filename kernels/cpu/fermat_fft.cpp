// Transforms modulo r^k + 1, a pass at a time (FermatPass): a tile of columns of R numbers is transformed by
// shifts and additions in the cache, and written, each number times its factor, where the next pass reads.
#include <nanobind/stl/array.h>

#include <algorithm>
#include <vector>

#include "bindings.hpp"
#include "fermat.hpp"

namespace rns {

namespace {

// Numbers of the columns that are copied together are so many bytes: rows are often a great power of two
// apart, so that few lines of them fit the cache at once, and runs of several lines are read and written at a
// time.
constexpr i64 kBlockBytes = 1 << 17;

template <class Digit>
class Pass {
 public:
  Pass(const FermatField& f, const FermatPass& pass, FermatRows<Digit> factors)
      : f_(f),
        pass_(pass),
        factors_(factors),
        radix_(1 << pass.log_radix),
        size_(f.digits * kLanes),
        width_(kLanes),
        tile_(radix_ * size_),
        other_(radix_ * size_) {
    const i64 column_bytes = radix_ * f.digits * static_cast<i64>(sizeof(Digit));
    while (width_ < kMostColumns && 2 * width_ * column_bytes <= kBlockBytes) width_ *= 2;
    block_.resize(radix_ * f.digits * width_);
    if (factors.data != nullptr) block_factors_.resize(block_.size());
  }

  i64 width() const { return width_; }

  // Columns from `first` on, up to width().
  void apply(FermatRows<Digit> x, i64 first, i64 count, FermatResult<Digit> out) {
    for (i64 c = 0; c < width_; ++c) columns_[c] = first + std::min(c, count - 1);
    load(x);
    if (factors_.data != nullptr) load_factors();
    for (i64 start = 0; start < count; start += kLanes) transform(start);
    store(count, out);
  }

 private:
  static constexpr i64 kLanes = kFermatLanes<Digit>;
  static constexpr i64 kMostColumns = 256;

  FermatResult<Digit> number(std::vector<Digit>& tile, i64 row) { return {&tile[row * size_], kLanes}; }
  FermatResult<Digit> in_block(std::vector<Digit>& block, i64 row, i64 column) {
    return {&block[row * f_.digits * width_ + column], width_};
  }

  // The rows in the order of their reversed bits.
  void load(FermatRows<Digit> x) {
    const bool is_run = pass_.source(columns_[width_ - 1]) - pass_.source(columns_[0]) == width_ - 1;
    for (i32 row = 0; row < radix_; ++row) {
      const FermatResult<Digit> to = in_block(block_, pass_.reversed(row), 0);
      const i64 offset = static_cast<i64>(row) << pass_.log_columns;
      for (i64 i = 0; i < f_.digits; ++i) {
        const Digit* from = x.row(i) + offset;
        if (is_run) {
          std::copy_n(from + pass_.source(columns_[0]), width_, to.row(i));
        } else {
          for (i64 c = 0; c < width_; ++c) to.row(i)[c] = from[pass_.source(columns_[c])];
        }
      }
    }
  }

  void load_factors() {
    for (i64 i = 0; i < f_.digits; ++i) {
      for (i64 c = 0; c < width_; ++c) {
        const Digit* from = factors_.row(i) + pass_.factor(columns_[c], 0);
        for (i32 row = 0; row < radix_; ++row) in_block(block_factors_, row, c).row(i)[0] = from[row];
      }
    }
  }

  // The columns of a tile: from the block to the block.
  void transform(i64 start) {
    for (i32 log_half = 0; log_half < pass_.log_radix; ++log_half) {
      const i32 half = 1 << log_half;
      for (i32 top = 0; top < radix_; top += 2 * half) {
        for (i32 i = 0; i < half; ++i) butterfly(start, log_half, top + i, top + half + i);
      }
      std::swap(tile_, other_);
    }
    for (i32 row = 0; row < radix_; ++row) {
      const FermatResult<Digit> from = number(tile_, row), to = in_block(block_, row, start);
      if (factors_.data != nullptr) {
        FermatTiles<Digit>::multiply(f_, from, in_block(block_factors_, row, start), to);
      } else {
        for (i64 i = 0; i < f_.digits; ++i) std::copy_n(from.row(i), kLanes, to.row(i));
      }
    }
  }

  void butterfly(i64 start, i32 log_half, i32 first, i32 second) {
    const bool is_first = log_half == 0;
    const FermatRows<Digit> x = is_first ? in_block(block_, first, start) : number(tile_, first);
    const FermatRows<Digit> y = is_first ? in_block(block_, second, start) : number(tile_, second);
    const i32 shift = pass_.shift(first & ((1 << log_half) - 1), log_half, f_.digits);
    FermatTiles<Digit>::butterfly(f_, x, y, shift, number(other_, first), number(other_, second));
  }

  void store(i64 count, FermatResult<Digit> out) {
    const i64 first = pass_.target(columns_[0], 0);
    const bool is_run = count == width_ && pass_.target(columns_[width_ - 1], 0) - first == width_ - 1;
    for (i64 i = 0; i < f_.digits; ++i) {
      Digit* to = out.row(i);
      for (i32 row = 0; is_run && row < radix_; ++row) {
        std::copy_n(in_block(block_, row, 0).row(i), width_, to + pass_.target(columns_[0], row));
      }
      for (i64 c = 0; !is_run && c < count; ++c) {
        Digit* column = to + pass_.target(columns_[c], 0);
        for (i64 row = 0; row < radix_; ++row) {
          column[row << pass_.log_done] = in_block(block_, row, c).row(i)[0];
        }
      }
    }
  }

  FermatField f_;
  FermatPass pass_;
  FermatRows<Digit> factors_;
  i32 radix_;
  i64 size_;
  i64 width_;
  std::vector<Digit> tile_, other_, block_, block_factors_;
  i64 columns_[kMostColumns];
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
  for (i64 first = 0; first < columns; first += passes.width()) {
    passes.apply({x.data(), x.stride(0)}, first, std::min(passes.width(), columns - first),
                 {out.data(), count});
  }
}

}  // namespace

void bind_fermat_fft(nb::module_& module) {
  module.def("fermat_pass", apply_pass<u32>);
  module.def("fermat_pass", apply_pass<u64>);
}

}  // namespace rns
