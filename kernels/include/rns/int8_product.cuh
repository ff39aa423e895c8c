// Products of matrices modulo m <= 2^32 by products of 8-bit numbers: residues modulo small coprime moduli q,
// and back from sums of their products (docs/linalg.md has the proofs).
#pragma once

#include "modular.cuh"

namespace rns {

constexpr i32 kSmallModuli = 10;     // the most there are
constexpr i32 kReciprocalBits = 38;  // of SmallModulus::reciprocal
constexpr i32 kFractionBits = 21;    // of SmallModulus::fraction

// A modulus q <= 256: 2^38 / q, and 2^21 v / q, both rounded, where |v| <= q / 2 is the inverse modulo q of
// the product of the others.
struct SmallModulus {
  i32 modulus;
  i32 reciprocal;
  i32 fraction;
};

// What leads from residues modulo all q back to one modulo m: of the number that is 1 modulo q and 0 modulo
// the others, and last of the product of all q, negative, the residue around 0.
struct Recombination {
  Modulus modulus;
  i32 weights[kSmallModuli + 1];
};

// The integer around 0 that a residue x < m stands for: from -m / 2 to m / 2.
RNS_INLINE i32 centred(u32 x, u32 last) { return static_cast<i32>(x <= last / 2 ? x : x - last - 1u); }

// x modulo q, from -128 to 127, for any x. The quotient is off from x / q by at most 1/2 + 2^-8, so the rest
// is at most 128, which is q / 2 for q = 256 alone, where the quotient is exact and 128 becomes -128.
RNS_INLINE i32 small_residue(i32 x, SmallModulus q) {
  const i64 half = static_cast<i64>(1) << (kReciprocalBits - 1);
  const i32 quotient = static_cast<i32>((static_cast<i64>(x) * q.reciprocal + half) >> kReciprocalBits);
  const i32 rest = static_cast<i32>(static_cast<u32>(x) - static_cast<u32>(quotient) * q.modulus);
  return rest > 127 ? rest - q.modulus : rest;
}

// Collects the residues modulo each q of a sum S, |S| / Q <= 1/2 - 2^-11 for the product Q of all q.
struct SmallResidues {
  i64 value = 0;
  i32 fraction = 0;

  RNS_INLINE void add(i32 sum, SmallModulus q, i32 weight) {
    const i32 residue = small_residue(sum, q);
    value += static_cast<i64>(residue) * weight;
    fraction += residue * q.fraction;
  }

  // |S| mod m. The fraction is S / Q plus the integer by how many Q the value is too great, off by less than
  // 2^-11; value and correction are less than 1024 m in magnitude.
  RNS_INLINE u32 reduce(Modulus m, i32 product_weight) const {
    const i32 excess = (fraction + (1 << (kFractionBits - 1))) >> kFractionBits;
    const i64 total = value + static_cast<i64>(excess) * product_weight;
    return mod_reduce(static_cast<u64>(total + ((static_cast<i64>(m.last) + 1) << 10)), m);
  }
};

}  // namespace rns
