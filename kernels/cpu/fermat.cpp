// Element-wise arithmetic modulo r^k + 1.
#include "fermat.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "bindings.hpp"

namespace rns {

namespace {

// An operand, tile by tile, copied: rows that are a power of two apart would share few lines of the cache.
template <class Digit>
class TileReader {
 public:
  TileReader(const FermatMatrix<Digit>& array, i64 digits, i64 count)
      : data_(array.data()),
        stride_(array.stride(0)),
        is_single_(array.shape(1) == 1 && count != 1),
        buffer_(digits * kLanes) {
    if (is_single_) fill(0, 1, 0);
  }

  FermatRows<Digit> tile(i64 first, i64 width) {
    if (!is_single_) fill(first, width, 1);
    return {buffer_.data(), kLanes};
  }

 private:
  static constexpr i64 kLanes = kFermatLanes<Digit>;

  void fill(i64 first, i64 width, i64 step) {
    for (i64 i = 0; i < static_cast<i64>(buffer_.size()) / kLanes; ++i) {
      for (i64 l = 0; l < kLanes; ++l) {
        buffer_[i * kLanes + l] = data_[i * stride_ + first + std::min(l, width - 1) * step];
      }
    }
  }

  const Digit* data_;
  i64 stride_;
  bool is_single_;
  std::vector<Digit> buffer_;
};

// operation(x, y, out) of each tile; an operation of one operand is given it twice.
template <class Digit, class Operation>
void for_tiles(const std::vector<FermatMatrix<Digit>>& x, const FermatField& f, FermatOut<Digit>& out,
               Operation operation) {
  constexpr i64 kLanes = kFermatLanes<Digit>;
  const i64 count = static_cast<i64>(out.shape(1));
  for (const FermatMatrix<Digit>& array : x) check_operand(array, f, count);
  require(static_cast<i64>(out.shape(0)) == f.digits, "the result must have one row for each digit");
  nb::gil_scoped_release release;
  TileReader<Digit> a(x.front(), f.digits, count), b(x.back(), f.digits, count);
  std::vector<Digit> rest(f.digits * kLanes);
  for (i64 first = 0; first < count; first += kLanes) {
    const i64 width = std::min(kLanes, count - first);
    const bool is_full = width == kLanes;
    operation(
        a.tile(first, width), b.tile(first, width),
        is_full ? FermatResult<Digit>{out.data() + first, count} : FermatResult<Digit>{rest.data(), kLanes});
    if (is_full) continue;
    for (i64 i = 0; i < f.digits; ++i) std::copy_n(&rest[i * kLanes], width, out.data() + i * count + first);
  }
}

template <class Digit>
void multiply_by_root(const FermatMatrix<Digit>& x, i32 shift, const FermatParameters& p,
                      FermatOut<Digit> out) {
  const FermatField f = field_of(p);
  require(shift >= 0 && shift < 2 * f.digits, "the exponent must be one of the 2 k");
  const std::vector<Digit> zeros(f.digits * kFermatLanes<Digit>);
  for_tiles<Digit>({x}, f, out, [&](FermatRows<Digit> a, FermatRows<Digit>, FermatResult<Digit> z) {
    FermatTiles<Digit>::subtract(f, a, {zeros.data(), kFermatLanes<Digit>}, shift, z);
  });
}

template <class Digit>
void apply(std::string_view name, const std::vector<FermatMatrix<Digit>>& x, const FermatParameters& p,
           FermatOut<Digit> out) {
  const FermatField f = field_of(p);
  using Tiles = FermatTiles<Digit>;
  using Rows = FermatRows<Digit>;
  require(x.size() == (name == "negate" ? 1 : 2), "another number of operands is needed");
  if (name == "add") {
    for_tiles(x, f, out, [&](Rows a, Rows b, FermatResult<Digit> z) { Tiles::add(f, a, b, z); });
  } else if (name == "subtract") {
    for_tiles(x, f, out, [&](Rows a, Rows b, FermatResult<Digit> z) { Tiles::subtract(f, a, b, 0, z); });
  } else if (name == "multiply") {
    for_tiles(x, f, out, [&](Rows a, Rows b, FermatResult<Digit> z) { Tiles::multiply(f, a, b, z); });
  } else {
    require(name == "negate", "there is no such operation");
    multiply_by_root(x[0], f.digits, p, out);
  }
}

// The least index of a number that is not canonical; -1 if all are.
template <class Digit>
i64 first_invalid(const FermatMatrix<Digit>& x, const FermatParameters& p) {
  const FermatField f = field_of(p);
  const i64 count = static_cast<i64>(x.shape(1)), stride = x.stride(0);
  check_operand(x, f, count);
  nb::gil_scoped_release release;
  i64 found = count;
  for (i64 i = 0; i < f.digits; ++i) {
    const Digit* row = x.data() + i * stride;
    found = std::find_if(row, row + found,
                         [&](const Digit& digit) {
                           if (digit < f.radix.radix) return false;
                           const i64 j = &digit - row;
                           bool is_minus_one = i == f.digits - 1 && digit == f.radix.radix;
                           for (i64 m = 0; m + 1 < f.digits && is_minus_one; ++m)
                             is_minus_one = x.data()[m * stride + j] == 0;
                           return !is_minus_one;
                         }) -
            row;
  }
  return found == count ? -1 : found;
}

template <class Digit>
void bind_digits(nb::module_& module) {
  module.def("fermat_apply", apply<Digit>);
  module.def("fermat_multiply_by_root", multiply_by_root<Digit>);
  module.def("fermat_first_invalid", first_invalid<Digit>);
}

}  // namespace

void bind_fermat(nb::module_& module) {
  bind_digits<u32>(module);
  bind_digits<u64>(module);
}

}  // namespace rns
