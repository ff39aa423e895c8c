// Butterflies of number-theoretic transforms modulo a prime p, by decimation in frequency: a and b become
// |a + b| and |(a - b) w|, where w is a power of a root of unity.
//
// A field brings the types of its words, of factors with what multiplies by them, and of moduli. Where
// `kLimit` is above 1, values below that many p may wait for their reduction (wide_ntt.cuh). `kSplits` says
// whether cyclic transforms are quicker by decimation in time.
#pragma once

#include "modular.cuh"

namespace rns {

// Modulo p < 2^31, where every value is below 2 p < 2^32, so that 32 bits hold it.
struct NarrowField {
  static constexpr i32 kLimit = 1;
  static constexpr bool kSplits = false;
  typedef u32 Word;
  typedef Factor Pair;
  typedef Modulus Base;

  // |r| for r < 2 p: the less of r and r - p, which wraps if it is negative.
  static RNS_INLINE u32 reduce(u32 r, u32 last) {
    const u32 less = r - last - 1u;
    return less < r ? less : r;
  }

  // Below 2 p: the quotient estimate is exact or one too small for every 32-bit x, reduced or not
  // (modular.cuh).
  static RNS_INLINE u32 multiply_loosely(u32 x, Factor w, u32 last) {
    const u32 q = static_cast<u32>((static_cast<u64>(x) * w.quotient) >> 32);
    return x * w.value - q * (last + 1u);
  }

  static RNS_INLINE u32 multiply(u32 x, Factor w, u32 last) {
    return reduce(multiply_loosely(x, w, last), last);
  }

  // A product that butterflies take, and the residue of what they give.
  static RNS_INLINE u32 multiply_between(u32 x, Factor w, u32 last) { return multiply(x, w, last); }
  static RNS_INLINE u32 residue(u32 x, u32) { return x; }

  static RNS_INLINE void butterfly(u32& a, u32& b, Factor w, u32 last) {
    const u32 difference = a - b + last + 1u;
    a = reduce(a + b, last);
    b = multiply(difference, w, last);
  }

  // The factor of w < p: the quotient of w 2^32 by p, as in `mod_reduce`.
  static RNS_INLINE Factor factor(u32 w, Modulus m) {
    const u32 high = w << m.shift;
    const u64 estimate = static_cast<u64>(high) * m.reciprocal + (static_cast<u64>(high) << 32);
    u32 quotient = static_cast<u32>(estimate >> 32) + 1u;
    u32 r = 0u - quotient * m.divisor;
    if (r > static_cast<u32>(estimate)) {
      --quotient;
      r += m.divisor;
    }
    return {w, r >= m.divisor ? quotient + 1u : quotient};
  }

  // The same for w = 1.
  static RNS_INLINE void butterfly(u32& a, u32& b, u32 last) {
    const u32 difference = a - b + last + 1u;
    a = reduce(a + b, last);
    b = reduce(difference, last);
  }
};

// Modulo an odd p < 2^32, in 32 bits: products by P. Montgomery, "Modular multiplication without trial
// division", Math. Comp. 44, 1985. A factor is |w 2^32| and that times the inverse of p modulo 2^32.
struct MontgomeryField {
  static constexpr i32 kLimit = 1;
  static constexpr bool kSplits = false;
  typedef u32 Word;
  typedef Factor Pair;
  typedef Modulus Base;

  // x w.value - q p is a multiple of 2^32, and both of its terms' upper halves are below p.
  static RNS_INLINE u32 multiply(u32 x, Factor w, u32 last) {
    const u32 q = x * w.quotient;
    const u32 high = static_cast<u32>((static_cast<u64>(x) * w.value) >> 32);
    const u32 multiple = static_cast<u32>((static_cast<u64>(q) * (last + 1u)) >> 32);
    return mod_sub(high, multiple, last);
  }

  // A number that `multiply` takes, a product that butterflies take, and the residue of what they give.
  static RNS_INLINE u32 multiply_loosely(u32 x, Factor w, u32 last) { return multiply(x, w, last); }
  static RNS_INLINE u32 multiply_between(u32 x, Factor w, u32 last) { return multiply(x, w, last); }
  static RNS_INLINE u32 residue(u32 x, u32) { return x; }

  // The factor of w, from |w 2^32|. Each step doubles the bits of the inverse of p that are right, from 3 on.
  static RNS_INLINE Factor factor(u32 w, Modulus m) {
    const u32 p = m.last + 1u;
    u32 inverse = p;
    for (i32 bits = 3; bits < 32; bits *= 2) inverse *= 2u - p * inverse;
    return {w, w * inverse};
  }

  static RNS_INLINE void butterfly(u32& a, u32& b, Factor w, u32 last) {
    butterfly(a, b, last);
    b = multiply(b, w, last);
  }

  static RNS_INLINE void butterfly(u32& a, u32& b, u32 last) {
    const u32 difference = mod_sub(a, b, last);
    a = mod_add(a, b, last);
    b = difference;
  }
};

}  // namespace rns
