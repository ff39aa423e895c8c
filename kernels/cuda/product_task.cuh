// Products of positional numbers as kernels take them, and what becomes of the limbs of one.
#pragma once

#include "limb_sums.cuh"

// Limbs of the operands, and those that are computed; whether no operand is signed, and a sum is none of
// signed ones.
#ifndef RNS_X_LIMBS
#define RNS_X_LIMBS 4
#define RNS_Y_LIMBS 3
#define RNS_COLUMNS 7
#define RNS_IS_PLAIN 0
#define RNS_IS_SUM 0
#endif

namespace rns {

// The addend may be the result's own memory, for only the thread that writes a limb of it reads that, before.
// The limbs `columns` of x y + addend are computed, and those of the result written: modulo 2^bits. Flags may
// be null.
struct ProductTask {
  LimbOperand x, y, addend;
  u32* out;
  u8* overflowed;
  i64 out_limbs;
  i64 count;
  i64 columns;      // where flags are asked for, all that numbers of at most one bit too many have
  i32 unused_bits;  // of the result's highest limb
  i32 is_signed;
};

// What becomes of the limbs of a product, which come one by one.
struct Result {
  const ProductTask& task;
  i64 j;
  u32 x_sign, y_sign, addend_sign;
  i64 carry;
  u32 lost, above;

  __device__ Result(const ProductTask& t, i64 number)
      : task(t), j(number), x_sign(0), y_sign(0), addend_sign(0), carry(0), lost(0), above(0) {
    if (RNS_IS_PLAIN || task.is_signed == 0) return;
    x_sign = task.x.sign(j);
    y_sign = task.y.sign(j);
    if (task.addend.limbs != 0) addend_sign = task.addend.sign(j);
  }

  // In two's complement limbs are those of x + s 2^(32 limbs of x), where s is 1 of negative numbers.
  __device__ u32 adjusted(i64 i, u32 limb) {
    const i64 a = task.x.limbs, b = task.y.limbs;
    i64 sum = carry + limb;
    if (task.addend.limbs != 0) sum += i < task.addend.limbs ? task.addend.at(i, j) : addend_sign;
    if (i >= a && x_sign != 0) sum -= task.y.at_or_zero(i - a, j);
    if (i >= b && y_sign != 0) sum -= task.x.at_or_zero(i - b, j);
    if (i == a + b) sum += x_sign & y_sign & 1;
    carry = sum >> 32;
    return static_cast<u32>(sum);
  }
  __device__ void take(i64 i, u32 limb) {
    if (!RNS_IS_PLAIN) limb = adjusted(i, limb);
    if (i >= task.out_limbs) {
      lost |= limb ^ above;
      return;
    }
    if (i == task.out_limbs - 1) {
      const u32 shifted = limb << task.unused_bits;
      const u32 wrapped = task.is_signed != 0
                              ? static_cast<u32>(static_cast<i32>(shifted) >> task.unused_bits)
                              : shifted >> task.unused_bits;
      lost |= limb ^ wrapped;
      limb = wrapped;
      if (task.is_signed != 0) above = limb >> 31 != 0 ? ~0u : 0;
    }
    __stcs(task.out + i * task.count + j, limb);
  }
  template <i32 kLimbs>
  __device__ __forceinline__ void take_all(const u32* limbs, i32 first) {
    if (RNS_IS_PLAIN && first + kLimbs < task.out_limbs) {
      u32* to = task.out + j + first * task.count;
#pragma unroll
      for (i32 i = 0; i < kLimbs; ++i, to += task.count) __stcs(to, limbs[i]);
      return;
    }
#pragma unroll
    for (i32 i = 0; i < kLimbs; ++i) {
      if (first + i < task.columns) take(first + i, limbs[i]);
    }
  }
  // The bits of a number's magnitude, or one less if it is negative, but at least 1 unless it is 0.
  __device__ i64 length(const LimbOperand& x, u32 sign) const {
    for (i64 i = x.limbs - 1; i >= 0; --i) {
      if (const u32 limb = x.at(i, j) ^ sign) return 32 * i + 32 - __clz(static_cast<i32>(limb));
    }
    return sign & 1;
  }
  // A product of numbers of a and b bits has a + b - 1 at least: too many, or by one at most too many.
  __device__ bool is_too_long() const {
    if (task.addend.limbs != 0) return false;
    const i64 bits = 32 * task.out_limbs - task.unused_bits;
    const i64 a = length(task.x, x_sign), b = length(task.y, y_sign);
    return a != 0 && b != 0 && a + b >= bits + 2;
  }
  __device__ void end() {
    if (task.overflowed != nullptr) task.overflowed[j] = lost != 0 || is_too_long();
  }
};

}  // namespace rns
