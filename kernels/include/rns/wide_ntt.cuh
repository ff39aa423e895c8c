// Butterflies of number-theoretic transforms modulo a prime p < 2^64, as in ntt.cuh: a becomes |a + b|, and b
// |(a - b) w|.
#pragma once

#include "wide_modular.cuh"

namespace rns {

// The less of r and r - m, which wraps if it is negative: |r| for r < 2 m.
RNS_INLINE u64 reduce_once(u64 r, u64 m) { return r - m < r ? r - m : r; }

// |a + b| for a, b < m < 2^63. On a GPU a sign is found by one comparison, an order of 64 bits by two.
RNS_INLINE u64 add_once(u64 a, u64 b, u64 m) {
#ifdef __CUDA_ARCH__
  const u64 r = a + b - m;
  return static_cast<i64>(r) < 0 ? r + m : r;
#else
  return reduce_once(a + b, m);
#endif
}

struct WideTypes {
  static constexpr bool kIsMontgomery = false;
  typedef u64 Word;
  typedef WideFactor Pair;
  typedef WideModulus Base;
  static RNS_INLINE WideFactor factor(u64 w, WideModulus m) { return wide_factor(w, m); }
};

// Modulo p < 2^62, where 64 bits hold every value below 4 p: values stay below 2 p (D. Harvey, "Faster
// arithmetic for number-theoretic transforms", 2014).
struct LazyWideField : WideTypes {
  static RNS_INLINE u64 residue(u64 r, u64 last) { return reduce_once(r, last + 1u); }

  // Below 2 p, for any x.
  static RNS_INLINE u64 multiply_loosely(u64 x, WideFactor w, u64 last) {
    return x * w.value - static_cast<u64>((static_cast<u128>(x) * w.quotient) >> 64) * (last + 1u);
  }
  static RNS_INLINE u64 multiply_between(u64 x, WideFactor w, u64 last) {
    return multiply_loosely(x, w, last);
  }
  static RNS_INLINE u64 multiply(u64 x, WideFactor w, u64 last) {
    return residue(multiply_loosely(x, w, last), last);
  }

  static RNS_INLINE void butterfly(u64& a, u64& b, u64 last) {
    const u64 p = last + 1u, difference = a - b + 2u * p;
    a = add_once(a, b, 2u * p);
    b = reduce_once(difference, 2u * p);
  }

  static RNS_INLINE void butterfly(u64& a, u64& b, WideFactor w, u64 last) {
    const u64 p = last + 1u, difference = a - b + 2u * p;
    a = add_once(a, b, 2u * p);
    b = multiply_loosely(difference, w, last);
  }
};

// Modulo p < 2^63, where 64 bits hold every value below 2 p.
struct ShortWideField : WideTypes {
  static RNS_INLINE u64 residue(u64 r, u64) { return r; }

  static RNS_INLINE u64 multiply_loosely(u64 x, WideFactor w, u64 last) {
    return LazyWideField::multiply_loosely(x, w, last);
  }
  static RNS_INLINE u64 multiply(u64 x, WideFactor w, u64 last) {
    return reduce_once(multiply_loosely(x, w, last), last + 1u);
  }
  static RNS_INLINE u64 multiply_between(u64 x, WideFactor w, u64 last) { return multiply(x, w, last); }

  static RNS_INLINE void butterfly(u64& a, u64& b, u64 last) {
    const u64 difference = a - b + last + 1u;
    a = add_once(a, b, last + 1u);
    b = reduce_once(difference, last + 1u);
  }

  static RNS_INLINE void butterfly(u64& a, u64& b, WideFactor w, u64 last) {
    const u64 difference = a - b + last + 1u;
    a = add_once(a, b, last + 1u);
    b = multiply(difference, w, last);
  }
};

// Modulo any p < 2^64.
struct WideField : WideTypes {
  static RNS_INLINE u64 residue(u64 r, u64) { return r; }

  static RNS_INLINE u64 multiply(u64 x, WideFactor w, u64 last) { return mod_mul(x, w, last); }
  static RNS_INLINE u64 multiply_loosely(u64 x, WideFactor w, u64 last) { return mod_mul(x, w, last); }
  static RNS_INLINE u64 multiply_between(u64 x, WideFactor w, u64 last) { return mod_mul(x, w, last); }

  static RNS_INLINE void butterfly(u64& a, u64& b, u64 last) {
    const u64 difference = mod_sub(a, b, last);
    a = mod_add(a, b, last);
    b = difference;
  }

  static RNS_INLINE void butterfly(u64& a, u64& b, WideFactor w, u64 last) {
    const u64 difference = mod_sub(a, b, last);
    a = mod_add(a, b, last);
    b = mod_mul(difference, w, last);
  }
};

// Modulo any odd p < 2^64 by P. Montgomery's products, whose factors of w are W = |2^64 w| and W / p modulo
// 2^64: x W - q p, for q = x W / p modulo 2^64, is 2^64 times the difference of the upper words.
struct WideMontgomeryField : WideTypes {
  static constexpr bool kIsMontgomery = true;
  static RNS_INLINE u64 residue(u64 r, u64) { return r; }

  static RNS_INLINE u64 multiply(u64 x, WideFactor w, u64 last) {
    const u64 q = x * w.quotient;
    return mod_sub(static_cast<u64>((static_cast<u128>(x) * w.value) >> 64),
                   static_cast<u64>((static_cast<u128>(q) * (last + 1u)) >> 64), last);
  }
  static RNS_INLINE u64 multiply_between(u64 x, WideFactor w, u64 last) { return multiply(x, w, last); }

  static RNS_INLINE void butterfly(u64& a, u64& b, u64 last) { WideField::butterfly(a, b, last); }
  static RNS_INLINE void butterfly(u64& a, u64& b, WideFactor w, u64 last) {
    WideField::butterfly(a, b, last);
    b = multiply(b, w, last);
  }
};

}  // namespace rns
