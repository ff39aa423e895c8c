// Arithmetic modulo one m of up to 64 bits, for every 2 <= m <= 2^64 inclusive: what elements of fields
// beyond 32 bits are computed with, and residues of other libraries are read and written with.
//
// As in modular.cuh, m travels as `last` = m - 1, and factors bring Shoup's quotient.
#pragma once

#include "modular.cuh"

namespace rns {

typedef unsigned __int128 u128;

// |a + b| and |a - b| mod m, for a, b < m: by masks, for compilers for CPUs make branches of conditions.
RNS_INLINE u64 mod_add(u64 a, u64 b, u64 last) {
  return a + b - ((last + 1u) & (0u - static_cast<u64>(b > last - a)));
}

RNS_INLINE u64 mod_sub(u64 a, u64 b, u64 last) {
  return a - b + ((last + 1u) & (0u - static_cast<u64>(a < b)));
}

// A constant factor w < m with its quotient floor(w 2^64 / m).
struct WideFactor {
  u64 value;
  u64 quotient;
};
static_assert(sizeof(WideFactor) == 2 * sizeof(u64), "a pair of a table");

// |x w| mod m for any 64-bit x (x need not be reduced) and a precomputed factor w.
RNS_INLINE u64 mod_mul(u64 x, WideFactor w, u64 last) {
  const u64 q = static_cast<u64>((static_cast<u128>(x) * w.quotient) >> 64);
  // x w - q m is below 2 m, which may have 65 bits.
  const u128 r = static_cast<u128>(x) * w.value - static_cast<u128>(q) * last - q;
  return static_cast<u64>(r > last ? r - last - 1u : r);
}

// A modulus for products of two residues, as `Modulus` of modular.cuh: divisor = m 2^shift has its highest
// bit at 63, and reciprocal = floor((2^128 - 1) / divisor) - 2^64. For m = 2^64 all of them are 0 but `last`.
struct WideModulus {
  u64 last;
  u64 divisor;
  u64 reciprocal;
  u64 shift;
};
static_assert(sizeof(WideModulus) == 4 * sizeof(u64), "a row of a table");

// x mod m for x < 2^64 m, as `mod_reduce` of modular.cuh.
RNS_INLINE u64 mod_reduce(u128 x, WideModulus m) {
  x <<= m.shift;
  const u128 q = static_cast<u128>(static_cast<u64>(x >> 64)) * m.reciprocal + x;
  u64 r = static_cast<u64>(x) - (static_cast<u64>(q >> 64) + 1u) * m.divisor;
  // Half of the r are too small: by a mask, for compilers for CPUs make a branch of a condition.
  r += m.divisor & (0u - static_cast<u64>(r > static_cast<u64>(q)));
  r -= r >= m.divisor ? m.divisor : 0u;
  return r >> m.shift;
}

// |a b|, |a b + c|, |a b - c d| and |a b + c d| modulo m, for operands below m: one reduction each.
RNS_INLINE u64 mod_mul(u64 a, u64 b, WideModulus m) { return mod_reduce(static_cast<u128>(a) * b, m); }

RNS_INLINE u64 mod_fma(u64 a, u64 b, u64 c, WideModulus m) {
  return mod_reduce(static_cast<u128>(a) * b + c, m);
}

RNS_INLINE u64 mod_mulsub(u64 a, u64 b, u64 c, u64 d, WideModulus m) {
  const u128 ab = static_cast<u128>(a) * b, cd = static_cast<u128>(c) * d, last = m.last;
  return mod_reduce(ab - cd + (ab < cd ? last * last + last : 0), m);
}

RNS_INLINE u64 mod_muladd(u64 a, u64 b, u64 c, u64 d, WideModulus m) {
  const u128 ab = static_cast<u128>(a) * b, cd = static_cast<u128>(c) * d, last = m.last;
  const u128 room = last * last + last - cd;
  return mod_reduce(ab < room ? ab + cd : ab - room, m);
}

// |a^k| mod m, for a < m; 1 modulo m for k = 0.
RNS_INLINE u64 mod_pow(u64 a, u64 k, WideModulus m) {
  u64 result = 1;
  for (; k != 0; k >>= 1) {
    if (k & 1) result = mod_mul(result, a, m);
    a = mod_mul(a, a, m);
  }
  return result;
}

// The inverse of a < p modulo a prime p = last + 1 < 2^64; 0 for 0. Euclid's algorithm, extended: the
// factors' signs alternate, so that their magnitudes, at most p, add up.
RNS_INLINE u64 prime_inverse(u64 a, u64 last) {
  if (a == 0) return 0;
  u64 previous = last + 1u, remainder = a, previous_factor = 0, factor = 1;
  bool is_negative = true;
  while (remainder != 0) {
    const u64 quotient = previous / remainder;
    const u64 next = previous - quotient * remainder;
    const u64 next_factor = previous_factor + quotient * factor;
    previous = remainder;
    remainder = next;
    previous_factor = factor;
    factor = next_factor;
    is_negative = !is_negative;
  }
  return is_negative ? last - previous_factor + 1u : previous_factor;
}

// The factor of w < m, by the reciprocal of m: floor(w 2^64 / m), of which the remainder tells whether the
// estimate is one too small.
RNS_INLINE WideFactor wide_factor(u64 w, WideModulus m) {
  const u64 high = w << m.shift;
  const u128 estimate = static_cast<u128>(high) * m.reciprocal + (static_cast<u128>(high) << 64);
  u64 quotient = static_cast<u64>(estimate >> 64) + 1u;
  u64 r = 0u - quotient * m.divisor;
  if (r > static_cast<u64>(estimate)) {
    --quotient;
    r += m.divisor;
  }
  return {w, r >= m.divisor ? quotient + 1u : quotient};
}

// One step of Garner's algorithm towards digit i: takes the digit of m_j off x and divides by m_j. `inverse`
// is |1/m_j| modulo m_i. Both products reduce, so x and the digit may be any 64-bit numbers.
RNS_INLINE u64 mixed_radix_step(u64 x, u64 digit, WideFactor inverse, u64 last) {
  return mod_sub(mod_mul(x, inverse, last), mod_mul(digit, inverse, last), last);
}

// The mixed-radix digits of a number, least significant first, from its residues x_i = residues[i * stride];
// then a digit more: 1 if the number is above the one whose digits are `highest`, else 0.
RNS_INLINE void garner_digits(const u64* residues, i64 stride, i64 moduli, const u64* last,
                              const WideFactor* inverses, const u64* highest, u64* digits) {
  bool above = false;
  for (i64 i = 0; i < moduli; ++i) {
    u64 x = residues[i * stride];
    for (i64 j = 0; j < i; ++j) x = mixed_radix_step(x, digits[j], *inverses++, last[i]);
    digits[i] = x;
    above = x > highest[i] || (above && x == highest[i]);
  }
  digits[moduli] = above ? 1 : 0;
}

// The factors 1 and 2^64 modulo m: those of the two words of a sum of products.
struct WideWordFactors {
  WideFactor word[2];
};
static_assert(sizeof(WideWordFactors) == 4 * sizeof(u64), "a row of a table");

// The residue of a number of limbs: the sum of the limbs times 2^(32 l) modulo m, weights[l * stride],
// reduced once. Of two's complement numbers there is one weight more, of the sign bit. Each product is below
// 2^96, so that 2^32 of them fit.
RNS_INLINE u64 wide_residue(const u32* limbs, i64 limb_count, bool is_signed, const u64* weights, i64 stride,
                            const WideWordFactors& factors, u64 last) {
  u128 sum = 0;
  for (i64 l = 0; l < limb_count; ++l) sum += static_cast<u128>(weights[l * stride]) * limbs[l];
  if (is_signed && limbs[limb_count - 1] >> 31 != 0) sum += weights[limb_count * stride];
  const u64 upper = mod_mul(static_cast<u64>(sum >> 64), factors.word[1], last);
  return mod_add(mod_mul(static_cast<u64>(sum), factors.word[0], last), upper, last);
}

}  // namespace rns
