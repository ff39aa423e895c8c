// Sums and differences modulo positional numbers, one number a thread: the highest limbs that differ decide
// whether the modulus is taken, then the limbs are gone through once. Compiled for each number of limbs up to
// 128; RNS_LIMBS 0 is a loop.
#include "grid.cuh"
#include "montgomery.cuh"

using namespace rns;

#ifndef RNS_LIMBS
#define RNS_LIMBS 0
#endif

namespace {

// Limbs of numbers up to so many are loaded at once, and longer ones' where they are needed.
constexpr i32 kMostHeld = 32;
constexpr bool kHolds = RNS_LIMBS != 0 && RNS_LIMBS <= kMostHeld;

struct Limbs {
  const LimbOperand& x;
  i64 j;
  u32 held[kHolds ? RNS_LIMBS : 1];

  __device__ __forceinline__ Limbs(const LimbOperand& operand, i64 number) : x(operand), j(number) {
#pragma unroll
    for (i32 i = 0; kHolds && i < RNS_LIMBS; ++i) held[i] = x.at_or_zero(i, j);
  }
  __device__ __forceinline__ u32 operator[](i64 i) const { return kHolds ? held[i] : x.at_or_zero(i, j); }
};

__device__ __forceinline__ bool is_below(const Limbs& x, const Limbs& y, i64 limbs) {
#pragma unroll(kHolds ? RNS_LIMBS : 1)
  for (i64 i = limbs - 1; i >= 0; --i) {
    if (x[i] != y[i]) return x[i] < y[i];
  }
  return false;
}

// What is below the limbs of a difference x + y - m is above -1 and below 2 of them.
__device__ __forceinline__ bool is_sum_below(const Limbs& x, const Limbs& y, const Limbs& m, i64 limbs) {
  i64 difference = 0;
#pragma unroll(kHolds ? RNS_LIMBS : 1)
  for (i64 i = limbs - 1; i >= 0; --i) {
    difference = (difference << 32) + static_cast<i64>(x[i]) + y[i] - m[i];
    if (difference != 0 && difference != -1) break;
  }
  return difference < 0;
}

}  // namespace

extern "C" {

// `unreduced` becomes 1 if an operand is not below its modulus; the result means nothing then.
__global__ void add_modular(ModularTask task, i32 subtract, u32* unreduced) {
  const i64 limbs = RNS_LIMBS != 0 ? RNS_LIMBS : task.modulus.limbs;
  const u32 flip = subtract != 0 ? ~0u : 0;
  bool are_reduced = true;
  for (i64 j = thread_index(); j < task.count; j += thread_count()) {
    const Limbs x(task.x, j), y(task.y, j), m(task.modulus, j);
    are_reduced = are_reduced && is_below(x, m, limbs) && is_below(y, m, limbs);
    const bool takes_modulus = subtract != 0 ? is_below(x, y, limbs) : !is_sum_below(x, y, m, limbs);
    const u32 mask = takes_modulus ? ~0u : 0;
    // x + y - m, or x - y + m: what is subtracted is added as its complement.
    u64 sum = flip & 1, result = mask & ~flip & 1;
#pragma unroll(kHolds ? RNS_LIMBS : 16)
    for (i64 i = 0; i < limbs; ++i) {
      sum += static_cast<u64>(x[i]) + (y[i] ^ flip);
      result += static_cast<u64>(static_cast<u32>(sum)) + ((m[i] ^ ~flip) & mask);
      __stcs(task.out + i * task.count + j, static_cast<u32>(result));
      sum >>= 32;
      result >>= 32;
    }
  }
  if (!are_reduced) *unreduced = 1;
}

}  // extern "C"
