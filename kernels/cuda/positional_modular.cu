// Sums and differences modulo positional numbers, one number a thread. Short ones are loaded as a whole; of
// longer ones the highest limbs that differ decide whether the modulus is taken, then the limbs are gone
// through once. Compiled for each number of limbs up to 128; RNS_LIMBS 0 is a loop.
#include "grid.cuh"
#include "montgomery.cuh"

using namespace rns;

#ifndef RNS_LIMBS
#define RNS_LIMBS 0
#endif

#define RNS_MOST_HELD 16  // limbs of a number that is loaded as a whole

namespace {

__device__ bool is_below(const LimbOperand& x, const LimbOperand& y, i64 limbs, i64 j) {
  for (i64 i = limbs - 1; i >= 0; --i) {
    const u32 a = x.at_or_zero(i, j), b = y.at_or_zero(i, j);
    if (a != b) return a < b;
  }
  return false;
}

// What is below the limbs of a difference x + y - m is above -1 and below 2 of them.
__device__ bool is_sum_below(const ModularTask& task, i64 limbs, i64 j) {
  i64 difference = 0;
  for (i64 i = limbs - 1; i >= 0 && (difference == 0 || difference == -1); --i) {
    const i64 sum = static_cast<i64>(task.x.at_or_zero(i, j)) + task.y.at_or_zero(i, j);
    difference = (difference << 32) + sum - task.modulus.at(i, j);
  }
  return difference < 0;
}

// Returns whether both operands are below the modulus; the result means nothing if not.
__device__ bool add_by_limbs(const ModularTask& task, i64 j, bool subtracts) {
  const i64 limbs = RNS_LIMBS != 0 ? RNS_LIMBS : task.modulus.limbs;
  const bool are_reduced =
      is_below(task.x, task.modulus, limbs, j) && is_below(task.y, task.modulus, limbs, j);
  const bool takes_modulus = subtracts ? is_below(task.x, task.y, limbs, j) : !is_sum_below(task, limbs, j);
  const u32 flip = subtracts ? ~0u : 0, mask = takes_modulus ? ~0u : 0;
  // x + y - m, or x - y + m: what is subtracted is added as its complement.
  u64 sum = flip & 1, result = mask & ~flip & 1;
#pragma unroll 16
  for (i64 i = 0; i < limbs; ++i) {
    sum += static_cast<u64>(task.x.at_or_zero(i, j)) + (task.y.at_or_zero(i, j) ^ flip);
    result += static_cast<u64>(static_cast<u32>(sum)) + ((task.modulus.at(i, j) ^ ~flip) & mask);
    __stcs(task.out + i * task.count + j, static_cast<u32>(result));
    sum >>= 32;
    result >>= 32;
  }
  return are_reduced;
}

#if RNS_LIMBS > 0 && RNS_LIMBS <= RNS_MOST_HELD

// to = x + y, or x - y; returns the carry, which of a difference is 0 if it is negative.
__device__ __forceinline__ u32 add_or_subtract(const u32* x, const u32* y, bool subtracts, u32* to) {
  u32 term[RNS_LIMBS];
#pragma unroll
  for (i32 i = 0; i < RNS_LIMBS; ++i) {
    to[i] = x[i];
    term[i] = subtracts ? ~y[i] : y[i];
  }
  return add_to_limbs<RNS_LIMBS>(to, term, subtracts ? 1 : 0);
}

// Likewise.
__device__ __forceinline__ bool add_at_once(const ModularTask& task, i64 j, bool subtracts) {
  u32 x[RNS_LIMBS], y[RNS_LIMBS], m[RNS_LIMBS], z[RNS_LIMBS], other[RNS_LIMBS];
#pragma unroll
  for (i32 i = 0; i < RNS_LIMBS; ++i) {
    x[i] = task.x.at_or_zero(i, j);
    y[i] = task.y.at_or_zero(i, j);
    m[i] = task.modulus.at(i, j);
  }
  bool are_reduced = add_or_subtract(x, m, true, z) == 0;
  are_reduced = add_or_subtract(y, m, true, z) == 0 && are_reduced;
  const u32 carry = add_or_subtract(x, y, subtracts, z);
  const u32 other_carry = add_or_subtract(z, m, !subtracts, other);
  const bool takes_other = subtracts ? carry == 0 : (carry | other_carry) != 0;
#pragma unroll
  for (i32 i = 0; i < RNS_LIMBS; ++i) __stcs(task.out + i * task.count + j, takes_other ? other[i] : z[i]);
  return are_reduced;
}

#endif

}  // namespace

extern "C" {

// `unreduced` becomes 1 if an operand is not below its modulus; the result means nothing then.
__global__ void add_modular(ModularTask task, i32 subtract, u32* unreduced) {
  bool are_reduced = true;
  for (i64 j = thread_index(); j < task.count; j += thread_count()) {
#if RNS_LIMBS > 0 && RNS_LIMBS <= RNS_MOST_HELD
    are_reduced = add_at_once(task, j, subtract != 0) && are_reduced;
#else
    are_reduced = add_by_limbs(task, j, subtract != 0) && are_reduced;
#endif
  }
  if (!are_reduced) *unreduced = 1;
}

}  // extern "C"
