// Element-wise operations on integers as limbs: one thread takes one number, and neighbouring threads read
// the same limb of neighbouring numbers. Compiled for each number of limbs up to 128; RNS_LIMBS 0 is a loop.
#include <rns/limbs.cuh>

#include "grid.cuh"

#ifndef RNS_LIMBS
#define RNS_LIMBS 0
#endif

using namespace rns;

namespace {

constexpr i32 kAtOnce = 16;

// Limb i of number j is data[i * stride + j * step]; step is 0 for one number, else 1.
struct LimbOperand {
  const u32* data;
  i64 stride;
  i64 step;
  i64 limbs;

  __device__ u32 at(i64 i, i64 j) const { return __ldg(data + i * stride + j * step); }
  __device__ u32 beyond(i64 j, bool is_signed) const { return limb_beyond(at(limbs - 1, j), is_signed); }
};

struct LimbTask {
  LimbOperand x[2];
  i32 are_signed[2];
  u32* out;
  i64 rows;
  i64 count;
  i32 top_bits;
  i32 is_signed;

  __device__ i64 limbs() const { return RNS_LIMBS != 0 ? RNS_LIMBS : rows; }
  __device__ void store(i64 i, i64 j, u32 limb) const { __stcs(out + i * count + j, limb); }
};

}  // namespace

extern "C" {

__global__ void positional_add(LimbTask task, i32 subtract, u8* flags) {
  const u32 flip = subtract != 0 ? ~0u : 0u;
  const bool is_signed = task.is_signed != 0;
  for (i64 j = thread_index(); j < task.count; j += thread_count()) {
    const LimbOperand &x = task.x[0], &y = task.x[1];
    u32 carry = flip & 1u;
    const i64 top = task.limbs() - 1;
    // Only a longer result than both operands, as an exact one can be, goes on above them.
    const u32 x_beyond = x.limbs <= top ? x.beyond(j, task.are_signed[0] != 0) : 0;
    const u32 y_beyond = y.limbs <= top ? y.beyond(j, task.are_signed[1] != 0) : 0;
#pragma unroll 1
    for (i64 first = 0; first < top; first += kAtOnce) {
      u32 a[kAtOnce], b[kAtOnce];  // loaded before anything waits for one
#pragma unroll
      for (i32 t = 0; t < kAtOnce; ++t) {
        const i64 i = first + t;
        if (i >= top) break;
        a[t] = i < x.limbs ? x.at(i, j) : x_beyond;
        b[t] = i < y.limbs ? y.at(i, j) : y_beyond;
      }
#pragma unroll
      for (i32 t = 0; t < kAtOnce; ++t) {
        if (first + t < top) task.store(first + t, j, add_limbs(a[t], b[t] ^ flip, carry));
      }
    }
    const i64 a = signed_top(top < x.limbs ? x.at(top, j) : x_beyond, task.are_signed[0] != 0);
    const i64 b = signed_top(top < y.limbs ? y.at(top, j) : y_beyond, task.are_signed[1] != 0);
    bool fits;
    const i64 exact = exact_top(a, b, carry, subtract != 0);
    task.store(top, j, wrapped_top(exact, task.top_bits, is_signed, fits));
    flags[j] = !fits;
  }
}

__global__ void positional_compare(LimbTask task, i8* order) {
  for (i64 j = thread_index(); j < task.count; j += thread_count()) {
    u32 flip = task.is_signed != 0 ? 1u << 31 : 0u;
    i32 found = 0;
    for (i64 i = task.limbs() - 1; i >= 0 && found == 0; --i, flip = 0) {
      found = order_of_limbs(task.x[0].at(i, j) ^ flip, task.x[1].at(i, j) ^ flip);
    }
    order[j] = static_cast<i8>(found);
  }
}

__global__ void positional_shift(LimbTask task, const i64* bits, i64 bits_step) {
  const LimbOperand& x = task.x[0];
  const i64 rows = task.limbs();
  for (i64 j = thread_index(); j < task.count; j += thread_count()) {
    const i64 right = -bits[j * bits_step], places = right >> 5;
    const i32 rest = static_cast<i32>(right & 31);
    const u32 beyond = x.beyond(j, task.are_signed[0] != 0);
    const auto limb = [&](i64 i) { return i < 0 ? 0u : i < rows ? x.at(i, j) : beyond; };
    u32 low = limb(places);
#pragma unroll 8
    for (i64 i = 0; i < rows; ++i) {
      const u32 high = limb(i + places + 1);
      u32 shifted = shifted_limb(low, high, rest);
      bool fits;
      if (i + 1 == rows) shifted = wrapped_top(shifted, task.top_bits, task.is_signed != 0, fits);
      task.store(i, j, shifted);
      low = high;
    }
  }
}

__global__ void positional_count(LimbTask task, i32 what, i64* counts) {
  const LimbOperand& x = task.x[0];
  for (i64 j = thread_index(); j < task.count; j += thread_count()) {
    const u32 inverted = x.beyond(j, task.are_signed[0] != 0);
    u32 carry = what == kTwosLength ? 0 : inverted & 1u;
    i64 count = 0;
#pragma unroll 8
    for (i64 i = 0; i < task.limbs(); ++i) {
      count = counted(count, magnitude_limb(x.at(i, j), inverted, carry), i, what == kOnes);
    }
    counts[j] = count;
  }
}

}  // extern "C"
