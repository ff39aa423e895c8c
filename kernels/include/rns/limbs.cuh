// Integers of a fixed number of bits as 32-bit limbs, least significant first, two's complement if signed:
// what is done with one limb at a time. docs/positional.md says how the limbs of a number are canonical.
#pragma once

#include "base.cuh"

namespace rns {

// Sum of two limbs and a carry of 0 or 1, which becomes that out of the sum. A difference is the sum with the
// complement that begins with a carry of 1. Without 64-bit words, for vectors of 32-bit ones.
RNS_INLINE u32 add_limbs(u32 x, u32 y, u32& carry) {
  const u32 partial = x + y, sum = partial + carry;
  carry = static_cast<u32>(partial < x) | static_cast<u32>(sum < partial);
  return sum;
}

// The limb that goes on above a number's highest one.
RNS_INLINE u32 limb_beyond(u32 highest, bool is_signed) { return is_signed ? 0u - (highest >> 31) : 0u; }

// The highest limb of an operand as it enters a sum, with its sign if it has one.
RNS_INLINE i64 signed_top(u32 x, bool is_signed) {
  return is_signed ? static_cast<i64>(static_cast<i32>(x)) : x;
}

// What the highest limbs of a sum, or a difference, and the carry into them amount to, exactly. A difference
// that does not borrow has a carry of 1.
RNS_INLINE i64 exact_top(i64 x, i64 y, u32 carry, bool subtract) {
  return subtract ? x - y - 1 + carry : x + y + carry;
}

// The highest limb, of which 1 to 32 bits are used, of a number that wraps; `fits` tells if it did not.
RNS_INLINE u32 wrapped_top(i64 exact, i32 bits, bool is_signed, bool& fits) {
  const u32 shifted = static_cast<u32>(exact) << (32 - bits);
  if (is_signed) {
    const i32 top = static_cast<i32>(shifted) >> (32 - bits);
    fits = exact == top;
    return static_cast<u32>(top);
  }
  const u32 top = shifted >> (32 - bits);
  fits = exact == static_cast<i64>(top);
  return top;
}

// Order of two numbers by one limb of each, where the limbs above are equal: -1, 0 or +1.
RNS_INLINE i32 order_of_limbs(u32 x, u32 y) { return static_cast<i32>(x > y) - static_cast<i32>(x < y); }

// A limb of a number shifted to the right by less than 32 bits, of its limb and the next one.
RNS_INLINE u32 shifted_limb(u32 low, u32 high, i32 bits) {
  return static_cast<u32>(((static_cast<u64>(high) << 32) | low) >> bits);
}

RNS_INLINE i32 length_of_limb(u32 x) {
#if defined(__CUDA_ARCH__)
  return 32 - __clz(static_cast<int>(x));
#else
  return x == 0 ? 0 : 32 - __builtin_clz(x);
#endif
}

RNS_INLINE i32 ones_of_limb(u32 x) {
#if defined(__CUDA_ARCH__)
  return __popc(x);
#else
  // As GCC has vectors for: its own count calls a function where the processor is not known.
  x -= (x >> 1) & 0x55555555u;
  x = (x & 0x33333333u) + ((x >> 2) & 0x33333333u);
  return static_cast<i32>((((x + (x >> 4)) & 0x0f0f0f0fu) * 0x01010101u) >> 24);
#endif
}

// What is counted of a number.
enum LimbCount : i32 {
  kLength = 0,      // bits of its magnitude
  kOnes = 1,        // bits of its magnitude that are 1
  kTwosLength = 2,  // bits of x, or of ~x if x is negative: of two's complement without the sign
};

// A limb of what is counted, from the least significant one on; `inverted` is all ones for a negative number,
// and `carry` begins with its lowest bit for a magnitude, with 0 for a complement.
RNS_INLINE u32 magnitude_limb(u32 x, u32 inverted, u32& carry) {
  const u32 limb = (x ^ inverted) + carry;
  carry &= static_cast<u32>(limb == 0);
  return limb;
}

// The count with limb i of a magnitude or complement.
RNS_INLINE i64 counted(i64 count, u32 limb, i64 i, bool ones) {
  if (ones) return count + ones_of_limb(limb);
  return limb != 0 ? 32 * i + length_of_limb(limb) : count;
}

}  // namespace rns
