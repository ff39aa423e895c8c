// Products and powers modulo odd numbers that fit registers, one number a thread: column by column, products
// and the multiples of the modulus together (FIPS of C. Koc, T. Acar and B. Kaliski, "Analyzing and comparing
// Montgomery multiplication algorithms", 1996).
#include "grid.cuh"
#include "montgomery.cuh"

using namespace rns;

// Limbs of the numbers that are kept in registers.
#ifndef RNS_LIMBS
#define RNS_LIMBS 4
#endif

namespace {

// x = x y / R modulo m, below m, if x y is at most m R.
__device__ __forceinline__ void montgomery_product(u32* x, const u32* y, const u32* m, u32 inverse) {
  u32 q[RNS_LIMBS];
  ColumnSum sum = {0, 0, 0};
#pragma unroll
  for (i32 c = 0; c < RNS_LIMBS; ++c) {
#pragma unroll
    for (i32 i = 0; i <= c; ++i) sum.add_product(x[i], y[c - i]);
#pragma unroll
    for (i32 i = 0; i < c; ++i) sum.add_product(q[i], m[c - i]);
    q[c] = sum.low * inverse;
    sum.add_product(q[c], m[0]);
    sum.shift();
  }
#pragma unroll
  for (i32 c = RNS_LIMBS; c < 2 * RNS_LIMBS; ++c) {
#pragma unroll
    for (i32 i = c - RNS_LIMBS + 1; i < RNS_LIMBS; ++i) {
      sum.add_product(x[i], y[c - i]);
      sum.add_product(q[i], m[c - i]);
    }
    q[c - RNS_LIMBS] = sum.low;
    sum.shift();
  }
  u32 borrow = 0;
#pragma unroll
  for (i32 i = 0; i < RNS_LIMBS; ++i) {
    const u64 difference = static_cast<u64>(q[i]) - m[i] - borrow;
    x[i] = static_cast<u32>(difference);
    borrow = static_cast<u32>(difference >> 63);
  }
  if (borrow > sum.low) {
#pragma unroll
    for (i32 i = 0; i < RNS_LIMBS; ++i) x[i] = q[i];
  }
}

}  // namespace

extern "C" {

__global__ void montgomery_multiply_in_registers(ModularTask task) {
  for (i64 j = thread_index(); j < task.count; j += thread_count()) {
    u32 x[RNS_LIMBS], y[RNS_LIMBS], m[RNS_LIMBS];
#pragma unroll
    for (i32 i = 0; i < RNS_LIMBS; ++i) {
      m[i] = task.modulus.at(i, j);
      x[i] = task.x.at(i, j);
      y[i] = task.square.at(i, j);
    }
    const u32 inverse = negative_inverse(m[0]);
#pragma unroll 1
    for (i32 step = 0; step < 2; ++step) {
      montgomery_product(x, y, m, inverse);
#pragma unroll
      for (i32 i = 0; i < RNS_LIMBS; ++i) y[i] = task.y.at(i, j);
    }
#pragma unroll
    for (i32 i = 0; i < RNS_LIMBS; ++i) __stcs(task.out + i * task.count + j, x[i]);
  }
}

__global__ void montgomery_power_in_registers(ModularTask task) {
  const PowerSteps steps(task);
  const i64 threads = thread_count();
  u32* table = task.workspace + thread_index();
  for (i64 j = thread_index(); j < task.count; j += threads) {
    u32 x[RNS_LIMBS], y[RNS_LIMBS], m[RNS_LIMBS];
#pragma unroll
    for (i32 i = 0; i < RNS_LIMBS; ++i) m[i] = task.modulus.at(i, j);
    const u32 inverse = negative_inverse(m[0]);
#pragma unroll 1
    for (i32 step = 0; step < steps.count(); ++step) {
      const auto load = [&](u32* to, u32 entry) {
#pragma unroll
        for (i32 i = 0; i < RNS_LIMBS; ++i) to[i] = table[(entry * RNS_LIMBS + i) * threads];
      };
      if (step < 2) {
#pragma unroll
        for (i32 i = 0; i < RNS_LIMBS; ++i) {
          x[i] = task.square.at(i, j);
          y[i] = step == 0 ? (i == 0) : task.x.at(i, j);
        }
      } else if (steps.makes_entry(step)) {
        if (step == 2) load(y, 1);
      } else {
        if (step == steps.entries) load(x, steps.first_entry(task, j));
        if (steps.is_last(step)) {
#pragma unroll
          for (i32 i = 0; i < RNS_LIMBS; ++i) y[i] = i == 0;
        } else if (steps.is_square(step)) {
#pragma unroll
          for (i32 i = 0; i < RNS_LIMBS; ++i) y[i] = x[i];
        } else {
          load(y, steps.entry(step, task, j));
        }
      }
      montgomery_product(x, y, m, inverse);
      if (steps.makes_entry(step)) {
#pragma unroll
        for (i32 i = 0; i < RNS_LIMBS; ++i) table[(step * RNS_LIMBS + i) * threads] = x[i];
      }
    }
#pragma unroll
    for (i32 i = 0; i < RNS_LIMBS; ++i) __stcs(task.out + i * task.count + j, x[i]);
  }
}

}  // extern "C"
