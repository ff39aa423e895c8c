// Sums and differences modulo positional numbers, one number a thread: the highest limbs that differ decide
// whether the modulus is taken, then the limbs are gone through once. Compiled for each number of limbs up to
// 128; RNS_LIMBS 0 is a loop.
#include <rns/limbs.cuh>

#include "grid.cuh"
#include "montgomery.cuh"

using namespace rns;

#ifndef RNS_LIMBS
#define RNS_LIMBS 0
#endif

namespace {

constexpr i32 kAtOnce = 16;

// What the highest limbs say of x + y - m, or x - y, and whether both are below the modulus.
struct Decision {
  i64 difference;  // what is below its limbs is above -1 and below 2 of them
  bool are_reduced;

  __device__ Decision(const ModularTask& task, i64 limbs, i64 j, bool subtracts) : difference(0) {
    i32 x_order = 0, y_order = 0;
#pragma unroll 1
    for (i64 i = limbs - 1; i >= 0 && (x_order == 0 || y_order == 0 || is_open()); --i) {
      const u32 x = task.x.at_or_zero(i, j), y = task.y.at_or_zero(i, j), m = task.modulus.at(i, j);
      if (is_open()) {
        const i64 other = subtracts ? -static_cast<i64>(y) : static_cast<i64>(y) - m;
        difference = difference * (i64{1} << 32) + x + other;
      }
      if (x_order == 0) x_order = order_of_limbs(x, m);
      if (y_order == 0) y_order = order_of_limbs(y, m);
    }
    are_reduced = x_order < 0 && y_order < 0;
  }
  __device__ bool is_open() const { return difference == 0 || difference == -1; }
};

// Some limbs of both operands, loaded before anything waits for one.
struct Loaded {
  u32 x[kAtOnce], y[kAtOnce];

  __device__ __forceinline__ void load(const ModularTask& task, i64 limbs, i64 j, i64 first) {
#pragma unroll
    for (i32 t = 0; t < kAtOnce; ++t) {
      if (first + t >= limbs) break;
      x[t] = task.x.at_or_zero(first + t, j);
      y[t] = task.y.at_or_zero(first + t, j);
    }
  }
};

// Returns whether both operands are below the modulus; the result means nothing if not.
__device__ bool add(const ModularTask& task, i64 j, bool subtracts) {
  const i64 limbs = RNS_LIMBS != 0 ? RNS_LIMBS : task.modulus.limbs;
  Loaded some;
  some.load(task, limbs, j, 0);
  const Decision decision(task, limbs, j, subtracts);
  const bool takes_modulus = subtracts == (decision.difference < 0);
  const u32 flip = subtracts ? ~0u : 0, mask = takes_modulus ? ~0u : 0;
  // x + y - m, or x - y + m: what is subtracted is added as its complement.
  u64 sum = flip & 1, result = mask & ~flip & 1;
#pragma unroll 1
  for (i64 first = 0; first < limbs; first += kAtOnce) {
#pragma unroll
    for (i32 t = 0; t < kAtOnce; ++t) {
      const i64 i = first + t;
      if (i >= limbs) break;
      sum += static_cast<u64>(some.x[t]) + (some.y[t] ^ flip);
      result += static_cast<u64>(static_cast<u32>(sum)) + ((task.modulus.at(i, j) ^ ~flip) & mask);
      __stcs(task.out + i * task.count + j, static_cast<u32>(result));
      sum >>= 32;
      result >>= 32;
    }
    some.load(task, limbs, j, first + kAtOnce);
  }
  return decision.are_reduced;
}

}  // namespace

extern "C" {

// `unreduced` becomes 1 if an operand is not below its modulus; the result means nothing then.
__global__ void add_modular(ModularTask task, i32 subtract, u64* unreduced) {
  bool are_reduced = true;
  for (i64 j = thread_index(); j < task.count; j += thread_count()) {
    are_reduced = add(task, j, subtract != 0) && are_reduced;
  }
  if (!are_reduced) *unreduced = 1;
}

}  // extern "C"
