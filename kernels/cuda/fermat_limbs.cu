// Digits of elements of Fermat fields from limbs, and limbs from digits, one number a thread.
#include <rns/fermat_limbs.cuh>

#include "grid.cuh"

using namespace rns;

template <typename Word>
__device__ void convert_limbs(const u32* limbs, i64 count, i64 numbers, i32 is_signed, u64 radix,
                              const WideRadix& wide, Word* digits) {
  u64 x[kMostDigits];
  for (i64 j = thread_index(); j < numbers; j += thread_count()) {
    wide_digits_of_limbs(limbs + j * count, count, is_signed != 0, x, wide);
    store_digits(x, wide, radix, digits + j, numbers);
  }
}

template <typename Word>
__device__ void convert_digits(const Word* digits, i64 stride, i64 numbers, u64 radix, const WideRadix& wide,
                               u32* limbs, i64 count) {
  u64 work[kMostLimbs64];
  for (i64 j = thread_index(); j < numbers; j += thread_count()) {
    limbs_of_digits(digits + j, stride, radix, wide, work, limbs + j * count, count);
  }
}

extern "C" __global__ void limbs_to_fermat_32(const u32* limbs, i64 count, i64 numbers, i32 is_signed,
                                              u64 radix, WideRadix wide, u32* digits) {
  convert_limbs(limbs, count, numbers, is_signed, radix, wide, digits);
}

extern "C" __global__ void fermat_to_limbs_32(const u32* digits, i64 stride, i64 numbers, u64 radix,
                                              WideRadix wide, u32* limbs, i64 count) {
  convert_digits(digits, stride, numbers, radix, wide, limbs, count);
}

extern "C" __global__ void limbs_to_fermat_64(const u32* limbs, i64 count, i64 numbers, i32 is_signed,
                                              u64 radix, WideRadix wide, u64* digits) {
  convert_limbs(limbs, count, numbers, is_signed, radix, wide, digits);
}

extern "C" __global__ void fermat_to_limbs_64(const u64* digits, i64 stride, i64 numbers, u64 radix,
                                              WideRadix wide, u32* limbs, i64 count) {
  convert_digits(digits, stride, numbers, radix, wide, limbs, count);
}
