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

// A sum of at most 2^31 products of 32 x 32 bits: the products modulo 2^64, and their upper halves.
struct ProductSum {
  u64 low = 0;
  u64 high = 0;

  RNS_INLINE void add(u32 a, u32 b) {
    const u64 product = static_cast<u64>(a) * b;
    low += product;
    high += product >> 32;
  }
  // The sum of the products' lower halves, below 2^63: it follows from the two lanes modulo 2^64.
  RNS_INLINE u64 lower_half() const { return low - (high << 32); }

  RNS_INLINE u32 reduce(Modulus m) const {
    const u64 lower = lower_half();
    const u32 rest = mod_reduce_word(high + (lower >> 32), m);
    return mod_reduce(static_cast<u64>(rest) << 32 | static_cast<u32>(lower), m);
  }
};

// The same of up to kProductTerms products, for moduli whose products_fit_word.
struct NarrowSum {
  u64 sum = 0;

  RNS_INLINE void add(u32 a, u32 b) { sum += static_cast<u64>(a) * b; }
  RNS_INLINE u32 reduce(Modulus m) const { return mod_reduce_word(sum, m); }
};

}  // namespace rns
