// Digits of elements of Fermat fields from limbs, and limbs from digits, one number a thread.
#include <rns/fermat_limbs.cuh>

#include "grid.cuh"

using namespace rns;

template <typename Word>
__device__ void convert_limbs(const u32* limbs, i64 count, i64 numbers, i32 is_signed,
                              RadixReciprocal<Word> r, Word* digits) {
  Word x[kMostDigits];
  for (i64 j = thread_index(); j < numbers; j += thread_count()) {
    digits_of_limbs(limbs + j * count, count, is_signed != 0, x, r);
    for (i32 i = 0; i < r.digits; ++i) digits[i * numbers + j] = x[i];
  }
}

template <typename Word>
__device__ void convert_digits(const Word* digits, i64 stride, i64 numbers, RadixReciprocal<Word> r,
                               u32* limbs, i64 count) {
  Word work[kMostFermatLimbs];
  for (i64 j = thread_index(); j < numbers; j += thread_count()) {
    limbs_of_digits(digits + j, stride, limbs + j * count, count, work, r);
  }
}

extern "C" __global__ void limbs_to_fermat_32(const u32* limbs, i64 count, i64 numbers, i32 is_signed,
                                              RadixReciprocal<u32> r, u32* digits) {
  convert_limbs(limbs, count, numbers, is_signed, r, digits);
}

extern "C" __global__ void limbs_to_fermat_64(const u32* limbs, i64 count, i64 numbers, i32 is_signed,
                                              RadixReciprocal<u64> r, u64* digits) {
  convert_limbs(limbs, count, numbers, is_signed, r, digits);
}

extern "C" __global__ void fermat_to_limbs_32(const u32* digits, i64 stride, i64 numbers,
                                              RadixReciprocal<u32> r, u32* limbs, i64 count) {
  convert_digits(digits, stride, numbers, r, limbs, count);
}

extern "C" __global__ void fermat_to_limbs_64(const u64* digits, i64 stride, i64 numbers,
                                              RadixReciprocal<u64> r, u32* limbs, i64 count) {
  convert_digits(digits, stride, numbers, r, limbs, count);
}
