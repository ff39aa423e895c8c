// Arithmetic modulo one m of up to 64 bits, for every 2 <= m <= 2^64 inclusive: what residues of other
// libraries are read and written with.
//
// As in modular.cuh, m travels as `last` = m - 1, and factors bring Shoup's quotient.
#pragma once

#include "modular.cuh"

namespace rns {

typedef unsigned __int128 u128;

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
