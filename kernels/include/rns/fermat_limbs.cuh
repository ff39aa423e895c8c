// Digits of elements of a Fermat field, Z/pZ for p = r^k + 1, from limbs of integers and back.
//
// An element's digits are 0 <= x_i < r, the least significant first, but for -1: it is x_{k-1} = r and 0
// elsewhere. Digits of 32 bits are taken in pairs: p is (r^2)^(k/2) + 1 too, and these are the digits to the
// radix r^2, that of -1 as well. So all arithmetic is with 64-bit digits to a radix R.
#pragma once

#include "base.cuh"

namespace rns {

// The most digits to the radix R of an element, and with room for a carry the most limbs of 64 bits.
constexpr i32 kMostDigits = 128;
constexpr i32 kMostLimbs64 = kMostDigits + 1;

// The radix R, and what division by it takes: R 2^shift, whose highest bit is 2^63, and the quotient of
// 2^128 - 1 by that, less 2^64. N. Moeller and T. Granlund, "Improved division by invariant integers" (2011).
struct WideRadix {
  u64 radix;
  u64 normalized;
  u64 reciprocal;
  i32 shift;
  i32 digits;
};

// The quotient of high 2^64 + low by R, for high < R; `low` becomes the remainder (their algorithm 4).
RNS_INLINE u64 divide_by_radix(u64 high, u64& low, const WideRadix& r) {
  typedef unsigned __int128 u128;
  const u128 shifted = ((static_cast<u128>(high) << 64) | low) << r.shift;
  const u64 u1 = static_cast<u64>(shifted >> 64), u0 = static_cast<u64>(shifted);
  const u128 q = static_cast<u128>(r.reciprocal) * u1 + shifted;
  u64 quotient = static_cast<u64>(q >> 64) + 1u;
  u64 rest = u0 - quotient * r.normalized;
  if (rest > static_cast<u64>(q)) {
    --quotient;
    rest += r.normalized;
  }
  if (rest >= r.normalized) {
    ++quotient;
    rest -= r.normalized;
  }
  low = rest >> r.shift;
  return quotient;
}

RNS_INLINE bool is_minus_one(const u64* x, const WideRadix& r) { return x[r.digits - 1] == r.radix; }

// x - c, or x + c, for any word c. What goes beyond r^k comes back with the other sign, for r^k = -1, and is
// less each time.
RNS_INLINE void add_word(u64* x, u64 c, bool subtract, const WideRadix& r) {
  if (c != 0 && is_minus_one(x, r)) {
    for (i32 i = 0; i < r.digits; ++i) x[i] = subtract ? r.radix - 1u : 0u;  // -2 or 0
    --c;
  }
  while (c != 0) {
    bool all_last = true;
    for (i32 i = 0; i < r.digits && (c != 0 || all_last); ++i) {
      const u64 quotient = c / r.radix, rest = c - quotient * r.radix;
      const u64 missing = r.radix - rest;
      const bool over = subtract ? x[i] < rest : x[i] >= missing;
      // x - rest, x - rest + r, x + rest and x + rest - r: each is below r.
      x[i] += subtract ? (over ? missing : 0u - rest) : (over ? 0u - missing : rest);
      c = quotient + (over ? 1u : 0u);
      all_last = all_last && x[i] == r.radix - 1u;
    }
    if (subtract && c == 1u && all_last) {  // r^k - 1, of which r^k is borrowed
      for (i32 i = 0; i + 1 < r.digits; ++i) x[i] = 0;
      x[r.digits - 1] = r.radix;
      return;
    }
    subtract = !subtract;
  }
}

// x 2^64 + word, for an x whose digits from `length` on are 0.
RNS_INLINE void append_limb(u64* x, i32& length, u64 word, const WideRadix& r) {
  if (is_minus_one(x, r)) {  // word - 2^64 = -1 - (2^64 - 1 - word)
    add_word(x, ~word, true, r);
    return;
  }
  u64 carry = word;
  for (i32 i = 0; i < length; ++i) {
    u64 low = carry;
    carry = divide_by_radix(x[i], low, r);
    x[i] = low;
  }
  for (; carry != 0 && length < r.digits; carry /= r.radix) x[length++] = carry % r.radix;
  add_word(x, carry, true, r);
}

// Limb i of an integer of `count` limbs of 32 bits, extended by its sign if it has one.
RNS_INLINE u64 limb_at(const u32* limbs, i64 count, i64 i, bool is_signed) {
  if (i < count) return limbs[i];
  return is_signed && (limbs[count - 1] >> 31) != 0 ? ~0u : 0u;
}

// The digits x[0 .. R.digits) of an integer of `count` limbs, in two's complement if it is signed.
RNS_INLINE void wide_digits_of_limbs(const u32* limbs, i64 count, bool is_signed, u64* x,
                                     const WideRadix& r) {
  for (i32 i = 0; i < r.digits; ++i) x[i] = 0;
  const bool negative = is_signed && (limbs[count - 1] >> 31) != 0;
  i32 length = negative ? r.digits : 0;
  if (negative) add_word(x, 1u, true, r);
  for (i64 l = (count + 1) / 2; l-- > 0;) {
    const u64 high = limb_at(limbs, count, 2 * l + 1, is_signed);
    append_limb(x, length, high << 32 | limbs[2 * l], r);
  }
}

// The digits of an element to its own radix, written `stride` apart: `x` holds those to the radix R.
RNS_INLINE void store_digits(const u64* x, const WideRadix& r, u64, u64* digits, i64 stride) {
  for (i32 i = 0; i < r.digits; ++i) digits[i * stride] = x[i];
}

RNS_INLINE void store_digits(const u64* x, const WideRadix& r, u64 radix, u32* digits, i64 stride) {
  for (i32 i = 0; i < r.digits; ++i) {
    const u64 high = x[i] / radix;
    digits[2 * i * stride] = static_cast<u32>(x[i] - high * radix);
    digits[(2 * i + 1) * stride] = static_cast<u32>(high);
  }
}

// Digit i to the radix R, of digits to the element's own that are `stride` apart.
RNS_INLINE u64 wide_digit(const u64* digits, i64 stride, i32 i, u64) { return digits[i * stride]; }

RNS_INLINE u64 wide_digit(const u32* digits, i64 stride, i32 i, u64 radix) {
  return digits[(2 * i + 1) * stride] * radix + digits[2 * i * stride];
}

// The `count` limbs of an element from 0 to p - 1, by Horner's rule. `work` holds kMostLimbs64.
template <typename Word>
RNS_INLINE void limbs_of_digits(const Word* digits, i64 stride, u64 radix, const WideRadix& r, u64* work,
                                u32* limbs, i64 count) {
  typedef unsigned __int128 u128;
  i32 length = 0;
  for (i32 i = r.digits; i-- > 0;) {
    u128 carry = wide_digit(digits, stride, i, radix);
    for (i32 l = 0; l < length; ++l) {
      carry += static_cast<u128>(work[l]) * r.radix;
      work[l] = static_cast<u64>(carry);
      carry >>= 64;
    }
    if (carry != 0) work[length++] = static_cast<u64>(carry);
  }
  for (i64 l = 0; l < count; ++l) {
    const u64 word = l / 2 < length ? work[l / 2] : 0;
    limbs[l] = static_cast<u32>(l % 2 != 0 ? word >> 32 : word);
  }
}

}  // namespace rns
