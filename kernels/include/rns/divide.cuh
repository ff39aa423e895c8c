// Division of positional numbers of 32-bit limbs with floor semantics: x = q d + r, and r is 0 or has the
// sign of d. Long division is Algorithm D of D. E. Knuth, "The Art of Computer Programming", vol. 2, 4.3.1.
// Its scaling by a power of two is only for the estimate of a digit, so only the leading limbs are scaled.
#pragma once

#include "base.cuh"

namespace rns {

// The magnitude of a number in `count` limbs, read limb by limb: of a negative one in two's complement,
// the limbs up to the lowest that is not 0 are negated, the others inverted. Limbs are a pointer to them, or
// what is used as one: here and below.
template <class Limbs>
struct Magnitude {
  Limbs limbs;
  i64 count;  // without leading zeros
  i64 lowest;
  bool negative;

  RNS_INLINE Magnitude(Limbs number, i64 limb_count, bool is_signed)
      : limbs(number), count(limb_count), lowest(0), negative(is_signed && number[limb_count - 1] >> 31) {
    while (lowest < limb_count && limbs[lowest] == 0) ++lowest;
    while (count > 0 && (*this)[count - 1] == 0) --count;
  }

  RNS_INLINE u32 operator[](i64 i) const {
    if (!negative) return limbs[i];
    return ~limbs[i] + (i <= lowest ? 1u : 0u);
  }
};

// The 32 bits that end `shift` bits below limb i: the limb's own, scaled by 2^shift.
template <class Limbs>
RNS_INLINE u32 scaled_limb(const Limbs& limbs, i64 i, u32 shift) {
  const u64 low = i > 0 ? limbs[i - 1] : 0;
  const u64 high = i >= 0 ? limbs[i] : 0;
  return static_cast<u32>(((high << 32 | low) << shift) >> 32);
}

RNS_INLINE u32 leading_zeros(u32 x) {
  u32 zeros = 0;
  for (u32 half = 16; half > 0; half /= 2) {
    if (x >> (32 - half) == 0) {
      x <<= half;
      zeros += half;
    }
  }
  return zeros;
}

// The estimate of a digit from the leading three limbs of the rest of x and two of d, all scaled: right or
// one too great.
RNS_INLINE u32 estimate_digit(u64 leading, u32 next, u32 d1, u32 d0) {
  u64 digit = leading / d1, rest = leading % d1;
  while (digit >> 32 != 0 || digit * d0 > (rest << 32 | next)) {
    --digit;
    rest += d1;
    if (rest >> 32 != 0) break;
  }
  return static_cast<u32>(digit);
}

// rest -= digit d, over the limbs of d and one more; whether it became negative.
template <class Result, class Divisor>
RNS_INLINE bool subtract_multiple(Result rest, u32 top, u32 digit, const Divisor& d) {
  u64 borrow = 0;
  for (i64 i = 0; i < d.count; ++i) {
    const u64 product = static_cast<u64>(digit) * d[i] + borrow;
    const u32 low = static_cast<u32>(product);
    borrow = (product >> 32) + (rest[i] < low ? 1 : 0);
    rest[i] -= low;
  }
  return top < borrow;
}

template <class Result, class Divisor>
RNS_INLINE void add_back(Result rest, const Divisor& d) {
  u64 carry = 0;
  for (i64 i = 0; i < d.count; ++i) {
    carry += static_cast<u64>(rest[i]) + d[i];
    rest[i] = static_cast<u32>(carry);
    carry >>= 32;
  }
}

// Divides by d in place: `rest` becomes the remainder, and `quotient` is written. By 0 both mean nothing.
template <class Result, class Divisor>
RNS_INLINE void divide_magnitudes(Result rest, Result quotient, i64 count, const Divisor& d) {
  const i64 n = d.count;
  if (n == 0) {
    for (i64 j = 0; j < count; ++j) quotient[j] = 0;
    return;
  }
  const u32 shift = leading_zeros(d[n - 1]);
  const u32 d1 = scaled_limb(d, n - 1, shift), d0 = scaled_limb(d, n - 2, shift);
  for (i64 j = count - 1; j > count - n && j >= 0; --j) quotient[j] = 0;
  u32 top = 0;  // the limb above the next part of x; it is 0 after each step
  for (i64 j = count - n; j >= 0; --j) {
    Result part = rest + j;
    top = j + n < count ? part[n] : 0;
    const u64 above = static_cast<u32>((static_cast<u64>(top) << 32 | part[n - 1]) << shift >> 32);
    const u64 leading = above << 32 | scaled_limb(rest, j + n - 1, shift);
    u32 digit = estimate_digit(leading, scaled_limb(rest, j + n - 2, shift), d1, d0);
    if (subtract_multiple(part, top, digit, d)) {
      --digit;
      add_back(part, d);
    }
    if (j + n < count) part[n] = 0;
    quotient[j] = digit;
  }
}

template <class Result>
RNS_INLINE void negate_limbs(Result limbs, i64 count) {
  u32 carry = 1;
  for (i64 i = 0; i < count; ++i) {
    limbs[i] = ~limbs[i] + carry;
    carry = carry != 0 && limbs[i] == 0 ? 1 : 0;
  }
}

// From the quotient and the remainder of the magnitudes to those of numbers of different signs, where the
// floor is further from 0 unless the remainder is 0.
template <class Result, class Divisor>
RNS_INLINE void round_away(Result rest, Result quotient, i64 count, const Divisor& d) {
  bool is_zero = true;
  for (i64 i = 0; i < d.count && is_zero; ++i) is_zero = rest[i] == 0;
  if (is_zero) return;
  for (i64 i = 0; i < count && ++quotient[i] == 0; ++i) {
  }
  u32 borrow = 0;
  for (i64 i = 0; i < d.count; ++i) {
    const u64 difference = static_cast<u64>(d[i]) - rest[i] - borrow;
    rest[i] = static_cast<u32>(difference);
    borrow = static_cast<u32>(difference >> 63);
  }
}

// Quotient and remainder in `count` limbs each, at least as many as d has and as x and, signed, one more. By
// 0 they mean nothing.
template <class Limbs, class Result>
RNS_INLINE void floor_divide(Limbs x, i64 x_count, Limbs divisor, i64 divisor_count, bool is_signed,
                             Result quotient, Result remainder, i64 count) {
  const Magnitude<Limbs> magnitude(x, x_count, is_signed);
  const Magnitude<Limbs> d(divisor, divisor_count, is_signed);
  for (i64 i = 0; i < count; ++i) remainder[i] = i < magnitude.count ? magnitude[i] : 0;
  divide_magnitudes(remainder, quotient, count, d);
  if (magnitude.negative != d.negative) {
    round_away(remainder, quotient, count, d);
    negate_limbs(quotient, count);
  }
  if (d.negative) negate_limbs(remainder, count);
}

template <class Result>
RNS_INLINE bool is_less(Result x, Result y, i64 count) {
  i64 i = count - 1;
  while (i > 0 && x[i] == y[i]) --i;
  return x[i] < y[i];
}

// The floor of the square root of a number of `count` limbs that is not negative, by Newton's iteration from
// above; the others are memory of as many limbs.
template <class Limbs, class Result>
RNS_INLINE void square_root(Limbs x, i64 count, Result root, Result rest, Result quotient) {
  i64 used = count;
  while (used > 0 && x[used - 1] == 0) --used;
  for (i64 i = 0; i < count; ++i) root[i] = 0;
  if (used == 0) return;
  const i64 half = (32 * used - leading_zeros(x[used - 1]) + 1) / 2;
  root[half / 32] = 1u << half % 32;
  for (;;) {
    for (i64 i = 0; i < count; ++i) rest[i] = x[i];
    divide_magnitudes(rest, quotient, count, Magnitude<Result>(root, count, false));
    if (!is_less(quotient, root, count)) return;
    u64 sum = static_cast<u64>(root[0]) + quotient[0];
    for (i64 i = 0; i < count; ++i) {
      const u64 next = (sum >> 32) + (i + 1 < count ? static_cast<u64>(root[i + 1]) + quotient[i + 1] : 0);
      root[i] = static_cast<u32>(next << 31 | (sum & 0xffffffff) >> 1);
      sum = next;
    }
  }
}

}  // namespace rns
