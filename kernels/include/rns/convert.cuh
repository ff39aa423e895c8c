// Conversion between residues and positional numbers of 32-bit limbs, and from residues to others. All
// are the product of a table of constants with a column of 32-bit terms, accumulated without reduction:
// forward, the limbs times 2^(32 l) modulo m_i; reverse, the u_i = |x_i w_i| times the limbs of M_i; base
// extension, the u_i times M_i modulo the other moduli.
#pragma once

#include "product_sum.cuh"

namespace rns {

// The factors 1, 2^32 and 2^64 modulo m: those of the three words of a sum of products.
struct WordFactors {
  Factor word[3];
};
static_assert(sizeof(WordFactors) == 6 * sizeof(u32), "a row of a table");

// The sum modulo m. As in mod_mul, each word times its factor leaves less than 2 m, so all three less
// than 6 m; their multiples of m are subtracted together.
RNS_INLINE u32 mod_reduce(ProductSum sum, const WordFactors& factors, u32 last) {
  const u64 lower = sum.lower_half();
  const u64 upper = sum.high + (lower >> 32);
  const u64 word0 = static_cast<u32>(lower);
  const u64 word1 = static_cast<u32>(upper);
  const u64 word2 = upper >> 32;
  const u64 q = (word0 * factors.word[0].quotient >> 32) + (word1 * factors.word[1].quotient >> 32) +
                (word2 * factors.word[2].quotient >> 32);
  const u64 m = static_cast<u64>(last) + 1;
  u64 r = word0 + word1 * factors.word[1].value + word2 * factors.word[2].value - q * m;
  r -= r >= 4 * m ? 4 * m : 0;
  r -= r >= 2 * m ? 2 * m : 0;
  r -= r >= m ? m : 0;
  return static_cast<u32>(r);
}

// Reverse conversion. With s = sum of u_i / m_i, the sum of u_i M_i is s M, and X = s M - floor(s) M.
// The table gives each u_i, besides the limbs of M_i, the fraction floor(2^64 / m_i) in two words. The
// sums of those give s' with s - n 2^-32 < s' <= s, for each term loses less than u_i / 2^64 < 2^-32. So
// q = floor(s') is floor(s) or one less, and X' = s M - q M is X, or it is X + M and X < n M 2^-32 < M/2.
//
// Unsigned, the number is X: X' - M if X' is above M - 1, else X'.
// Signed, it is X - M if X is above the highest value (M-1)//2, else X. That is again X' - M if X' is
// above the highest value, else X': in the case of X + M, X is not above it, but X' is.

// The integer part of s' plus a start, and the first 32 bits of its fraction.
struct CrtQuotient {
  u32 q;
  u32 fraction;
};

// From the sums of the two words of the fractions; `start` is in units of 2^-32.
RNS_INLINE CrtQuotient crt_quotient(ProductSum fraction0, ProductSum fraction1, u32 start) {
  const u64 lower = fraction1.lower_half() + fraction0.high + (fraction0.lower_half() >> 32) + start;
  return {static_cast<u32>(fraction1.high + (lower >> 32)), static_cast<u32>(lower)};
}

// Base extension needs q itself, for the term -q M. Unsigned, the start is e = n 2^-32, so
// s < s' + e <= s + e, and the integer part is floor(s) or one more. Signed, the start is e + 1/2, and q is
// floor(s + 1/2), which takes M from the values above the highest. In both cases q is wrong only if the
// fraction is below e, for it has then passed an integer; such a number is ambiguous.

// What one limb of s M - q M hands to the next: the carry of the sum, the borrow of the subtraction
// of q M, and the borrow of the comparison of the highest value with the result.
struct LimbChain {
  u64 carry;
  u64 borrow;
  u32 above;
};

// The next limb of X' from that limb's sum, the limbs of M and of the highest value.
RNS_INLINE u32 crt_limb(LimbChain& chain, ProductSum sum, u32 q, u32 product, u32 highest) {
  const u64 total = sum.lower_half() + chain.carry;
  const u64 multiple = static_cast<u64>(q) * product + chain.borrow;
  const u32 minuend = static_cast<u32>(total);
  const u32 subtrahend = static_cast<u32>(multiple);
  const u32 limb = minuend - subtrahend;
  chain.carry = sum.high + (total >> 32);
  chain.borrow = (multiple >> 32) + (minuend < subtrahend ? 1 : 0);
  chain.above = static_cast<u32>((static_cast<u64>(highest) - limb - chain.above) >> 63);
  return limb;
}

// Whether X' is above the highest value, after the last limb; X' may have one more bit than the limbs hold.
// (If M is 2^(32 L), its limbs are 0, and subtracting it or not is the same.)
RNS_INLINE bool crt_above(const LimbChain& chain) {
  return chain.carry - chain.borrow > 0 || chain.above != 0;
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

// Whether a number is outside `bounds`, the lowest and then the highest value allowed. For two's
// complement numbers, `flip` is 2^31: it is added to the number's top limb here, and has been to those
// of the bounds, so that unsigned comparisons order them.
RNS_INLINE bool is_outside(const u32* number, const u32* bounds, i64 count, u32 flip) {
  const u32* lowest = bounds;
  const u32* highest = bounds + count;
  bool may_be_lowest = true;  // equal so far
  bool may_be_highest = true;
  for (i64 l = count - 1; l >= 0 && (may_be_lowest || may_be_highest); --l, flip = 0) {
    const u32 limb = number[l] ^ flip;
    if (may_be_lowest && limb < lowest[l]) return true;
    if (may_be_highest && limb > highest[l]) return true;
    may_be_lowest = may_be_lowest && limb == lowest[l];
    may_be_highest = may_be_highest && limb == highest[l];
  }
  return false;
}

}  // namespace rns
