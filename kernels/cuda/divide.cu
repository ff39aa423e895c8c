// Division of numbers of 32-bit limbs, one number a thread.
#include <rns/divide.cuh>

#include "grid.cuh"

using namespace rns;

extern "C" {

// `divisor_stride` is 0 for a divisor that all numbers share.
__global__ void floor_divide_limbs(const u32* limbs, i64 count, i32 limb_count, const u32* divisors,
                                   i64 divisor_stride, i32 divisor_count, i32 is_signed, i32 width,
                                   u32* quotients, u32* remainders) {
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    floor_divide(limbs + j * limb_count, limb_count, divisors + j * divisor_stride, divisor_count,
                 is_signed != 0, quotients + j * width, remainders + j * width, width);
  }
}

}  // extern "C"
