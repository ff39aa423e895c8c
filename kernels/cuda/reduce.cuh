// What reductions of an array of numbers in one pass have in common.
//
// The block that is the last to end writes the result to memory of the host, for a copy takes longer than a
// small kernel. What blocks share in the meantime, it leaves as it was: a counter and sums of 0.
#pragma once

#include "keyed.cuh"

namespace rns {

// Calls visit(j, key) for every number, in ascending order for each thread.
template <class Coefficients, class Visit>
__device__ __forceinline__ void for_each_key(const Numbers& a, const Coefficients& c, Visit visit) {
  const i64 step = static_cast<i64>(gridDim.x) * blockDim.x * kKeyVectors;
  i64 first = static_cast<i64>(blockIdx.x) * blockDim.x * kKeyVectors + threadIdx.x;
  for (; first < a.vectors; first += step) {
    VectorGroup<kKeyVectors> group(a, first);
    Keys<kKeyVectors> keys(a.start);
#pragma unroll kKeyRows
    for (i32 i = 0; i < a.moduli; ++i) {
      uint4 row[kKeyVectors];
      group.read(row, a.stride);
      keys.accumulate(row, c[i]);
    }
#pragma unroll
    for (i32 k = 0; k < kKeyVectors; ++k) {
      if (!group.inside[k]) continue;
#pragma unroll
      for (i32 m = 0; m < 4; ++m) visit(4 * (first + k * blockDim.x) + m, keys(k, m));
    }
  }
  for (i64 j = 4 * a.vectors + thread_index(); j < a.count; j += thread_count())
    visit(j, single_key(a, c, j));
}

// Whether all other blocks have come here before, each thread's writes included; all threads call it. The
// counter is 0 again when the last one has come.
__device__ bool is_last_block(u32* arrived) {
  __shared__ bool is_last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  if (is_last) __threadfence();
  return is_last;
}

}  // namespace rns
