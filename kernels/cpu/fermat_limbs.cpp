// Digits of elements of Fermat fields from limbs, and limbs from digits, a number at a time.
#include "rns/fermat_limbs.cuh"

#include "bindings.hpp"

namespace rns {

namespace {

template <typename Word>
using Digits = nb::ndarray<const Word, nb::ndim<2>, nb::device::cpu>;
template <typename Word>
using MutableDigits = nb::ndarray<Word, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <typename Word>
RadixReciprocal<Word> checked_radix(u64 radix, u64 normalized, u64 reciprocal, i32 shift, i64 digits) {
  require(digits > 0 && digits <= kMostDigits, "a Fermat field has 1 to 128 digits");
  return {static_cast<Word>(radix), static_cast<Word>(normalized), static_cast<Word>(reciprocal), shift,
          static_cast<i32>(digits)};
}

template <typename Word>
void def_conversions(nb::module_& module) {
  module.def("limbs_to_fermat", [](const Table32& limbs, bool is_signed, u64 radix, u64 normalized,
                                   u64 reciprocal, i32 shift, MutableDigits<Word> digits) {
    const auto r = checked_radix<Word>(radix, normalized, reciprocal, shift, digits.shape(0));
    const i64 numbers = static_cast<i64>(limbs.shape(0)), count = static_cast<i64>(limbs.shape(1));
    require(count > 0 && static_cast<i64>(digits.shape(1)) == numbers, "digits must be of as many numbers");
    nb::gil_scoped_release release;
    Word x[kMostDigits];
    for (i64 j = 0; j < numbers; ++j) {
      digits_of_limbs(limbs.data() + j * count, count, is_signed, x, r);
      for (i32 i = 0; i < r.digits; ++i) digits.data()[i * numbers + j] = x[i];
    }
  });
  module.def("fermat_to_limbs", [](const Digits<Word>& digits, u64 radix, u64 normalized, u64 reciprocal,
                                   i32 shift, MutableMatrix32 limbs) {
    const auto r = checked_radix<Word>(radix, normalized, reciprocal, shift, digits.shape(0));
    const i64 numbers = static_cast<i64>(limbs.shape(0)), count = static_cast<i64>(limbs.shape(1));
    require(static_cast<i64>(digits.shape(1)) == numbers, "limbs must be of as many numbers");
    const i64 stride = digits.stride(0), step = numbers > 1 ? digits.stride(1) : 1;
    nb::gil_scoped_release release;
    Word work[kMostFermatLimbs];
    for (i64 j = 0; j < numbers; ++j) {
      limbs_of_digits(digits.data() + j * step, stride, limbs.data() + j * count, count, work, r);
    }
  });
}

}  // namespace

void bind_fermat_limbs(nb::module_& module) {
  def_conversions<u32>(module);
  def_conversions<u64>(module);
}

}  // namespace rns
