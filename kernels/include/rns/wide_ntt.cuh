// Butterflies of number-theoretic transforms modulo a prime p < 2^64, as in ntt.cuh: a becomes |a + b|, and b
// |(a - b) w|; or, by decimation in time, |a + b w| and |a - b w|.
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

// The less of r and r - m where that is not negative, for r < 2 m and m <= 2^63.
RNS_INLINE u64 less_once(u64 r, u64 m) {
#ifdef __CUDA_ARCH__
  const u64 less = r - m;
  return static_cast<i32>(less >> 32) < 0 ? r : less;
#else
  return reduce_once(r, m);
#endif
}

struct WideTypes {
  static constexpr bool kIsMontgomery = false;
  static constexpr i32 kLimit = 1;
  static constexpr bool kSplits = false;
  typedef u64 Word;
  typedef WideFactor Pair;
  typedef WideModulus Base;
  static RNS_INLINE WideFactor factor(u64 w, WideModulus m) { return wide_factor(w, m); }
};

// Modulo p < 2^64 / kBound, where 64 bits hold every value below kBound p, for a bound of 4 or 16 (D. Harvey,
// "Faster arithmetic for number-theoretic transforms", 2014). In frequency values stay below 2 p. In time
// they grow by 2 p each time, and are reduced only before they are too great.
template <i32 kBound>
struct BoundedWideField : WideTypes {
  static constexpr i32 kLimit = kBound;
  static constexpr bool kSplits = kBound > 4;  // where that leaves out most reductions

  // x < `from` p below `to` p; both are constants where this is called, `to` a power of two.
  static RNS_INLINE u64 reduce(u64 x, u64 last, i32 from, i32 to) {
    const u64 p = last + 1u;
    if (from > 8 && to <= 8) x = less_once(x, 8u * p);
    if (from > 4 && to <= 4) x = less_once(x, 4u * p);
    if (from > 2 && to <= 2) x = less_once(x, 2u * p);
    if (from > 1 && to <= 1) x = less_once(x, p);
    return x;
  }

  // a < `from` p, which is reduced to `to` first, and b become less than 2 p more than that.
  static RNS_INLINE void split(u64& a, u64& b, WideFactor w, u64 last, i32 from, i32 to) {
    split_by(a, b, multiply_loosely(b, w, last), last, from, to);
  }

  // The same for w = 1.
  static RNS_INLINE void split(u64& a, u64& b, u64 last, i32 from, i32 to) {
    split_by(a, b, reduce(b, last, from, 2), last, from, to);
  }

  static RNS_INLINE void split_by(u64& a, u64& b, u64 product, u64 last, i32 from, i32 to) {
    a = reduce(a, last, from, to);
    b = a - product + 2u * (last + 1u);
    a += product;
  }

  static RNS_INLINE u64 residue(u64 r, u64 last) { return reduce_once(r, last + 1u); }

  // Below 2 p, for any x of 64 bits.
  static RNS_INLINE u64 multiply_loosely(u64 x, WideFactor w, u64 last) {
    const u64 quotient = static_cast<u64>((static_cast<u128>(x) * w.quotient) >> 64);
    return x * w.value + quotient * (0u - (last + 1u));
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

using LazyWideField = BoundedWideField<4>;
using LooseWideField = BoundedWideField<16>;

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
