// Butterflies of number-theoretic transforms modulo a prime p < 2^64, as in ntt.cuh: a becomes |a + b|, and b
// |(a - b) w|.
#pragma once

#include "wide_modular.cuh"

namespace rns {

// The less of r and r - m, which wraps if it is negative: |r| for r < 2 m.
RNS_INLINE u64 reduce_once(u64 r, u64 m) { return r - m < r ? r - m : r; }

// Modulo p < 2^62, where 64 bits hold every value below 4 p: values stay below 2 p (D. Harvey, "Faster
// arithmetic for number-theoretic transforms", 2014).
struct LazyWideField {
  static RNS_INLINE u64 reduce(u64 r, u64 last) { return reduce_once(r, last + 1u); }

  static RNS_INLINE void butterfly(u64& a, u64& b, WideFactor w, u64 last) {
    const u64 p = last + 1u, difference = a - b + 2u * p;
    a = reduce_once(a + b, 2u * p);
    b = difference * w.value - static_cast<u64>((static_cast<u128>(difference) * w.quotient) >> 64) * p;
  }
};

// Modulo p < 2^63, where 64 bits hold every value below 2 p.
struct ShortWideField {
  static RNS_INLINE u64 reduce(u64 r, u64) { return r; }

  static RNS_INLINE u64 multiply(u64 x, WideFactor w, u64 last) {
    const u64 q = static_cast<u64>((static_cast<u128>(x) * w.quotient) >> 64);
    return reduce_once(x * w.value - q * (last + 1u), last + 1u);
  }

  static RNS_INLINE void butterfly(u64& a, u64& b, WideFactor w, u64 last) {
    const u64 difference = a - b + last + 1u;
    a = reduce_once(a + b, last + 1u);
    b = multiply(difference, w, last);
  }
};

// Modulo any p < 2^64.
struct WideField {
  static RNS_INLINE u64 reduce(u64 r, u64) { return r; }

  static RNS_INLINE u64 multiply(u64 x, WideFactor w, u64 last) { return mod_mul(x, w, last); }

  static RNS_INLINE void butterfly(u64& a, u64& b, WideFactor w, u64 last) {
    const u64 difference = mod_sub(a, b, last);
    a = mod_add(a, b, last);
    b = mod_mul(difference, w, last);
  }
};

}  // namespace rns
