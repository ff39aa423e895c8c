// Butterflies of number-theoretic transforms modulo a prime p, by decimation in frequency: a and b become
// |a + b| and |(a - b) w|, where w is a power of a root of unity. Where that is 1, butterflies need no
// factor.
#pragma once

#include "modular.cuh"

namespace rns {

// Modulo p <= 2^32.
struct WideField {
  static RNS_INLINE u32 multiply(u32 x, Factor w, u32 last) { return mod_mul(x, w, last); }

  static RNS_INLINE void butterfly(u32& a, u32& b, Factor w, u32 last) {
    const u32 difference = mod_sub(a, b, last);
    a = mod_add(a, b, last);
    b = mod_mul(difference, w, last);
  }

  static RNS_INLINE void butterfly(u32& a, u32& b, u32 last) {
    const u32 difference = mod_sub(a, b, last);
    a = mod_add(a, b, last);
    b = difference;
  }

  static RNS_INLINE u32 canonical(u32 x, u32) { return x; }
};

// Modulo p < 2^31, where every value is below 2 p < 2^32, so that 32 bits hold it.
struct NarrowField {
  // |r| for r < 2 p: the less of r and r - p, which wraps if it is negative.
  static RNS_INLINE u32 reduce(u32 r, u32 last) {
    const u32 less = r - last - 1u;
    return less < r ? less : r;
  }

  // The quotient estimate is exact or one too small for every 32-bit x, reduced or not (modular.cuh).
  static RNS_INLINE u32 multiply(u32 x, Factor w, u32 last) {
    const u32 q = static_cast<u32>((static_cast<u64>(x) * w.quotient) >> 32);
    return reduce(x * w.value - q * (last + 1u), last);
  }

  static RNS_INLINE void butterfly(u32& a, u32& b, Factor w, u32 last) {
    const u32 difference = a - b + last + 1u;
    a = reduce(a + b, last);
    b = multiply(difference, w, last);
  }

  static RNS_INLINE void butterfly(u32& a, u32& b, u32 last) {
    const u32 difference = a - b + last + 1u;
    a = reduce(a + b, last);
    b = reduce(difference, last);
  }

  static RNS_INLINE u32 canonical(u32 x, u32) { return x; }
};

// Modulo p < 2^30, where values are below 2 p and sums of them below 4 p < 2^32: products stay as they are.
// D. Harvey, "Faster arithmetic for number-theoretic transforms", J. Symbolic Computation 60, 2014.
struct LazyField {
  // The residue of r < 4 p below 2 p.
  static RNS_INLINE u32 reduce(u32 r, u32 last) {
    const u32 less = r - 2 * last - 2u;
    return less < r ? less : r;
  }

  static RNS_INLINE u32 multiply(u32 x, Factor w, u32 last) {
    const u32 q = static_cast<u32>((static_cast<u64>(x) * w.quotient) >> 32);
    return x * w.value - q * (last + 1u);
  }

  static RNS_INLINE void butterfly(u32& a, u32& b, Factor w, u32 last) {
    const u32 difference = a - b + 2 * last + 2u;
    a = reduce(a + b, last);
    b = multiply(difference, w, last);
  }

  static RNS_INLINE void butterfly(u32& a, u32& b, u32 last) {
    const u32 difference = a - b + 2 * last + 2u;
    a = reduce(a + b, last);
    b = reduce(difference, last);
  }

  static RNS_INLINE u32 canonical(u32 x, u32 last) { return NarrowField::reduce(x, last); }
};

}  // namespace rns
