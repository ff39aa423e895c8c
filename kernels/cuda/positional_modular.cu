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

}  // namespace

extern "C" {

// `unreduced` becomes 1 if an operand is not below its modulus; the result means nothing then.
__global__ void add_modular(ModularTask task, i32 subtract, u32* unreduced) {
  const i64 limbs = RNS_LIMBS != 0 ? RNS_LIMBS : task.modulus.limbs;
  const u32 flip = subtract != 0 ? ~0u : 0;
  bool are_reduced = true;
  for (i64 j = thread_index(); j < task.count; j += thread_count()) {
    are_reduced =
        are_reduced && is_below(task.x, task.modulus, limbs, j) && is_below(task.y, task.modulus, limbs, j);
    const bool takes_modulus =
        subtract != 0 ? is_below(task.x, task.y, limbs, j) : !is_sum_below(task, limbs, j);
    const u32 mask = takes_modulus ? ~0u : 0;
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
  }
  if (!are_reduced) *unreduced = 1;
}

}  // extern "C"
