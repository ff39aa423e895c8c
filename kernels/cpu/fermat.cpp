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

// Numbers that are copied together: rows are often a great power of two apart, so that few lines of them fit
// the cache at once, and runs of several lines are read and written at a time. In the copy they are no power
// apart.
constexpr i64 kBlock = 256;
template <class Digit>
constexpr i64 kStride = kBlock + kFermatLanes<Digit>;

template <class Digit>
class Block {
 public:
  Block(const FermatMatrix<Digit>& array, i64 digits, i64 count)
      : data_(array.data()),
        row_(array.stride(0)),
        is_single_(array.shape(1) == 1 && count != 1),
        digits_(digits),
        copy_(digits * kStride<Digit>) {
    for (i64 i = 0; is_single_ && i < digits; ++i)
      std::fill_n(&copy_[i * kStride<Digit>], kBlock, data_[i * row_]);
  }

  void load(i64 first, i64 width) {
    for (i64 i = 0; !is_single_ && i < digits_; ++i) {
      std::copy_n(data_ + i * row_ + first, width, &copy_[i * kStride<Digit>]);
    }
  }
  FermatRows<Digit> tile(i64 start) const { return {&copy_[start], kStride<Digit>}; }

 private:
  const Digit* data_;
  i64 row_;
  bool is_single_;
  i64 digits_;
  std::vector<Digit> copy_;
};

// operation(x, y, out) of each tile; an operation of one operand is given it twice.
template <class Digit, class Operation>
void for_tiles(const std::vector<FermatMatrix<Digit>>& x, const FermatField& f, FermatOut<Digit>& out,
               Operation operation) {
  const i64 count = static_cast<i64>(out.shape(1));
  for (const FermatMatrix<Digit>& array : x) check_operand(array, f, count);
  require(static_cast<i64>(out.shape(0)) == f.digits, "the result must have one row for each digit");
  nb::gil_scoped_release release;
  std::vector<Block<Digit>> blocks;
  for (const FermatMatrix<Digit>& array : x) blocks.emplace_back(array, f.digits, count);
  std::vector<Digit> results(f.digits * kStride<Digit>);
  for (i64 first = 0; first < count; first += kBlock) {
    const i64 width = std::min(kBlock, count - first);
    for (Block<Digit>& block : blocks) block.load(first, width);
    for (i64 start = 0; start < width; start += kFermatLanes<Digit>) {
      operation(blocks.front().tile(start), blocks.back().tile(start),
                FermatResult<Digit>{&results[start], kStride<Digit>});
    }
    for (i64 i = 0; i < f.digits; ++i) {
      std::copy_n(&results[i * kStride<Digit>], width, out.data() + i * count + first);
    }
  }
}

template <class Digit>
void multiply_by_root(const FermatMatrix<Digit>& x, i32 shift, const FermatParameters& p,
                      FermatOut<Digit> out) {
  const FermatField f = field_of(p);
  require(shift >= 0 && shift < 2 * f.digits, "the exponent must be one of the 2 k");
  for_tiles<Digit>({x}, f, out, [&](FermatRows<Digit> a, FermatRows<Digit>, FermatResult<Digit> z) {
    FermatTiles<Digit>::shift(f, a, shift, z);
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
    for_tiles(x, f, out, [&](Rows a, Rows b, FermatResult<Digit> z) { Tiles::subtract(f, a, b, z); });
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
