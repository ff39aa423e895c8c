// What kernels of products and powers modulo odd numbers have in common. R = 2^(32 limbs): a power of the
// word, so that each step of the reduction takes one whole limb off.
#pragma once

#include "limb_sums.cuh"

namespace rns {

// The exponent is not taken by products. The workspace has columns of words, one for each thread.
struct ModularTask {
  LimbOperand x, y, modulus, square;
  u32* out;
  u32* workspace;
  i64 count;
  i32 exponent_bits;
  i32 window;
};

// -1/m modulo 2^32; each step doubles the bits that are right, 3 at first.
__device__ u32 negative_inverse(u32 m) {
  u32 inverse = m;
#pragma unroll
  for (i32 step = 0; step < 4; ++step) inverse *= 2 - m * inverse;
  return 0 - inverse;
}

// Bits from `first` on of an exponent.
__device__ u32 window_at(const LimbOperand& exponent, i64 j, i32 first, i32 window) {
  const i64 i = first / 32;
  const u64 low = exponent.at(i, j), high = i + 1 < exponent.limbs ? exponent.at(i + 1, j) : 0;
  return static_cast<u32>((high << 32 | low) >> first % 32) & ((1u << window) - 1);
}

// The products of a power in their order: the table's entries, then for each window of the exponent but the
// first one its squares and an entry, at last that by 1, which ends Montgomery's form.
struct PowerSteps {
  i32 entries, window, windows;

  __device__ PowerSteps(const ModularTask& task)
      : entries(1 << task.window),
        window(task.window),
        windows(task.exponent_bits <= task.window ? 1
                                                  : (task.exponent_bits + task.window - 1) / task.window) {}

  __device__ i32 count() const { return entries + (windows - 1) * (window + 1) + 1; }
  __device__ bool makes_entry(i32 step) const { return step < entries; }
  __device__ bool is_last(i32 step) const { return step == count() - 1; }
  __device__ bool is_square(i32 step) const { return (step - entries) % (window + 1) != window; }
  __device__ u32 entry(i32 step, const ModularTask& task, i64 j) const {
    const i32 place = windows - 2 - (step - entries) / (window + 1);
    return window_at(task.y, j, place * window, window);
  }
  __device__ u32 first_entry(const ModularTask& task, i64 j) const {
    return window_at(task.y, j, (windows - 1) * window, window);
  }
};

}  // namespace rns
