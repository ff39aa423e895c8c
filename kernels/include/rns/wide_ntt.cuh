// Butterflies of number-theoretic transforms modulo a prime p < 2^64, as in ntt.cuh: a becomes |a + b|, and b
// |(a - b) w|.
#pragma once

#include "wide_modular.cuh"

namespace rns {

// Modulo p < 2^63, where 64 bits hold every value below 2 p.
struct ShortWideField {
  // |r| for r < 2 p: the less of r and r - p, which wraps if it is negative.
  static RNS_INLINE u64 reduce(u64 r, u64 last) {
    const u64 less = r - last - 1u;
    return less < r ? less : r;
  }

  static RNS_INLINE u64 multiply(u64 x, WideFactor w, u64 last) {
    const u64 q = static_cast<u64>((static_cast<u128>(x) * w.quotient) >> 64);
    return reduce(x * w.value - q * (last + 1u), last);
  }

  static RNS_INLINE void butterfly(u64& a, u64& b, WideFactor w, u64 last) {
    const u64 difference = a - b + last + 1u;
    a = reduce(a + b, last);
    b = multiply(difference, w, last);
  }
};

// Modulo any p < 2^64.
struct WideField {
  static RNS_INLINE u64 multiply(u64 x, WideFactor w, u64 last) { return mod_mul(x, w, last); }

  static RNS_INLINE void butterfly(u64& a, u64& b, WideFactor w, u64 last) {
    const u64 difference = mod_sub(a, b, last);
    a = mod_add(a, b, last);
    b = mod_mul(difference, w, last);
  }
};

}  // namespace rns
