// Digits of elements of Fermat fields from limbs, and limbs from digits, a number at a time.
#include "rns/fermat_limbs.cuh"

#include "bindings.hpp"

namespace rns {

namespace {

template <typename Word>
using Digits = nb::ndarray<const Word, nb::ndim<2>, nb::device::cpu>;
template <typename Word>
using MutableDigits = Written<Word, nb::ndim<2>, nb::c_contig>;

WideRadix checked_radix(u64 radix, u64 normalized, u64 reciprocal, i32 shift, i64 rows, size_t word_bytes) {
  const i64 digits = rows * static_cast<i64>(word_bytes) / 8;
  require(digits > 0 && digits <= kMostDigits, "a Fermat field has 1 to 128 digits");
  return {radix, normalized, reciprocal, shift, static_cast<i32>(digits)};
}

template <typename Word>
void def_conversions(nb::module_& module) {
  module.def("limbs_to_fermat", [](const Table32& limbs, bool is_signed, u64 radix, u64 wide_radix,
                                   u64 normalized, u64 reciprocal, i32 shift, MutableDigits<Word> digits) {
    const WideRadix wide =
        checked_radix(wide_radix, normalized, reciprocal, shift, digits.shape(0), sizeof(Word));
    const i64 numbers = static_cast<i64>(limbs.shape(0)), count = static_cast<i64>(limbs.shape(1));
    require(count > 0 && static_cast<i64>(digits.shape(1)) == numbers, "digits must be of as many numbers");
    nb::gil_scoped_release release;
    u64 x[kMostDigits];
    for (i64 j = 0; j < numbers; ++j) {
      wide_digits_of_limbs(limbs.data() + j * count, count, is_signed, x, wide);
      store_digits(x, wide, radix, digits.data() + j, numbers);
    }
  });
  module.def("fermat_to_limbs", [](const Digits<Word>& digits, u64 radix, u64 wide_radix, u64 normalized,
                                   u64 reciprocal, i32 shift, MutableMatrix32 limbs) {
    const WideRadix wide =
        checked_radix(wide_radix, normalized, reciprocal, shift, digits.shape(0), sizeof(Word));
    const i64 numbers = static_cast<i64>(limbs.shape(0)), count = static_cast<i64>(limbs.shape(1));
    require(static_cast<i64>(digits.shape(1)) == numbers, "limbs must be of as many numbers");
    const i64 stride = digits.stride(0), step = numbers > 1 ? digits.stride(1) : 1;
    nb::gil_scoped_release release;
    u64 work[kMostLimbs64];
    for (i64 j = 0; j < numbers; ++j) {
      limbs_of_digits(digits.data() + j * step, stride, radix, wide, work, limbs.data() + j * count, count);
    }
  });
}

}  // namespace

void bind_fermat_limbs(nb::module_& module) {
  def_conversions<u32>(module);
  def_conversions<u64>(module);
}

}  // namespace rns
