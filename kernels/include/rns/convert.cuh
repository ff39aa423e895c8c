// Conversion between residues and positional numbers of 32-bit limbs. Both directions are the
// product of a table of constants with a column of 32-bit terms, accumulated without reduction:
// forward, the limbs times 2^(32 l) modulo m_i; reverse, the u_i = |x_i w_i| times the limbs of M_i.
#pragma once

#include "modular.cuh"

namespace rns {

// A sum of at most 2^31 products of 32 x 32 bits: the products modulo 2^64, and their upper halves.
struct ProductSum {
  u64 low;
  u64 high;
};

RNS_INLINE void product_accumulate(ProductSum& sum, u32 x, u32 c) {
  const u64 product = static_cast<u64>(x) * c;
  sum.low += product;
  sum.high += product >> 32;
}

// The sum of the products' lower halves, below 2^63: it follows from the two lanes modulo 2^64.
RNS_INLINE u64 lower_half(ProductSum sum) { return sum.low - (sum.high << 32); }

// How a sum of products is reduced modulo m: the factors 1, 2^32 and 2^64, one for each word.
struct WordFactors {
  Factor word[3];
};

RNS_INLINE u32 mod_reduce(ProductSum sum, const WordFactors& factors, u32 last) {
  const u64 lower = lower_half(sum);
  const u64 upper = sum.high + (lower >> 32);
  const u32 r0 = mod_mul(static_cast<u32>(lower), factors.word[0], last);
  const u32 r1 = mod_mul(static_cast<u32>(upper), factors.word[1], last);
  const u32 r2 = mod_mul(static_cast<u32>(upper >> 32), factors.word[2], last);
  return mod_add(mod_add(r0, r1, last), r2, last);
}

// Reverse conversion. With s = sum of u_i / m_i, the sum of u_i M_i is s M, and X = s M - floor(s) M.
// The table gives each u_i, besides the limbs of M_i, the fraction floor(2^64 / m_i) in two words; the
// two sums of those give s' with s - n 2^-32 < s' <= s, for each term loses less than u_i / 2^64 < 2^-32.
//
// Unsigned, q = floor(s') is floor(s) or one less, so X' = s M - q M is X or X + M: it lies from 0 to
// M - 1, or it is above M - 1, and then one subtraction of M gives X.
//
// Signed, q = floor(s' + 1/2), so s - q >= -1/2 and s - q < 1/2 + n 2^-32, and X' lies from -(M//2) to
// less than M/2 + n M 2^-32. If it is not above the highest value (M-1)//2, it is the number. Otherwise
// X' - M is: it is at least (M-1)//2 + 1 - M = -(M//2), and negative. In both cases the rule is to
// subtract M once if X' is above the highest value.

// q, from the sums of the two words of the fractions. `half` is 0, or 2^31 to round to nearest.
RNS_INLINE u32 crt_quotient(ProductSum fraction0, ProductSum fraction1, u32 half) {
  const u64 upper = fraction0.high + (lower_half(fraction0) >> 32);
  const u64 lower1 = lower_half(fraction1) + upper + half;
  return static_cast<u32>(fraction1.high + (lower1 >> 32));
}

// What one limb of s M - q M hands to the next: the carry of the sum, the borrow of the subtraction
// of q M, and the borrow of the comparison of the highest value with the result.
struct LimbChain {
  u64 carry;
  u64 borrow;
  u32 above;
};

// The next limb of X' from that limb's sum, the limbs of M and of the highest value.
RNS_INLINE u32 crt_limb(LimbChain& chain, ProductSum sum, u32 q, u32 product, u32 highest) {
  const u64 total = lower_half(sum) + chain.carry;
  const u64 multiple = static_cast<u64>(q) * product + chain.borrow;
  const u32 minuend = static_cast<u32>(total);
  const u32 subtrahend = static_cast<u32>(multiple);
  const u32 limb = minuend - subtrahend;
  chain.carry = sum.high + (total >> 32);
  chain.borrow = (multiple >> 32) + (minuend < subtrahend ? 1 : 0);
  chain.above = static_cast<u32>((static_cast<u64>(highest) - limb - chain.above) >> 63);
  return limb;
}

// Whether X' is above the highest value, after the last limb. X' needs one more word, for its sign
// or for X + M; product_top is that word of M, 1 when M is 2^(32 L).
RNS_INLINE bool crt_above(const LimbChain& chain, u32 q, u32 product_top) {
  const u32 top = static_cast<u32>(chain.carry - chain.borrow) - q * product_top;
  return (0u - top - chain.above) >> 31 != 0;
}

// X' - M, limb by limb, in place.
RNS_INLINE void subtract_limbs(u32* limbs, const u32* product, i64 count) {
  u32 borrow = 0;
  for (i64 l = 0; l < count; ++l) {
    const u64 difference = static_cast<u64>(limbs[l]) - product[l] - borrow;
    limbs[l] = static_cast<u32>(difference);
    borrow = static_cast<u32>(difference >> 63);
  }
}

// Orders two numbers of `count` limbs by their first different limb from the top: -1, 0 or 1. The top
// limb of `a` is taken with the bits of `flip` inverted: 2^31 orders two's complement numbers.
RNS_INLINE i32 compare_limbs(const u32* a, const u32* b, i64 count, u32 flip) {
  for (i64 l = count - 1; l >= 0; --l) {
    const u32 limb = l == count - 1 ? a[l] ^ flip : a[l];
    if (limb != b[l]) return limb < b[l] ? -1 : 1;
  }
  return 0;
}

}  // namespace rns
