// Sums of products of residues, reduced once for many terms.
#pragma once

#include "modular.cuh"

namespace rns {

// Terms that are added up before a reduction.
constexpr i32 kProductTerms = 512;

// Whether kProductTerms products of two residues up to `last` add up to less than 2^64.
RNS_INLINE bool products_fit_word(u32 last) {
  return static_cast<u64>(last) * last <= ~static_cast<u64>(0) / kProductTerms;
}

// x mod m, for any x.
RNS_INLINE u32 mod_reduce_word(u64 x, Modulus m) {
  const u32 upper = mod_reduce(x >> 32, m);
  return mod_reduce(static_cast<u64>(upper) << 32 | static_cast<u32>(x), m);
}

// The sum of up to kProductTerms products modulo m, from their sum modulo 2^64 and the exact sum of their
// upper halves. What the former has beyond the latter is the sum of the lower halves, which is exact too.
RNS_INLINE u32 mod_reduce_products(u64 sum, u64 upper, Modulus m) {
  const u64 lower = sum - (upper << 32);
  const u32 rest = mod_reduce_word(upper + (lower >> 32), m);
  return mod_reduce(static_cast<u64>(rest) << 32 | static_cast<u32>(lower), m);
}

// A running sum of up to kProductTerms products, for moduli whose products_fit_word.
struct NarrowSum {
  u64 sum = 0;

  RNS_INLINE void add(u32 a, u32 b) { sum += static_cast<u64>(a) * b; }
  RNS_INLINE u32 reduce(Modulus m) const { return mod_reduce_word(sum, m); }
};

// The same for any modulus.
struct WideSum {
  u64 sum = 0;
  u64 upper = 0;

  RNS_INLINE void add(u32 a, u32 b) {
    const u64 product = static_cast<u64>(a) * b;
    sum += product;
    upper += product >> 32;
  }
  RNS_INLINE u32 reduce(Modulus m) const { return mod_reduce_products(sum, upper, m); }
};

}  // namespace rns
