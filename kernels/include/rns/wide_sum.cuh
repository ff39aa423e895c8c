// Sums of products of residues of 64 bits, reduced once for many terms.
#pragma once

#include "wide_modular.cuh"

namespace rns {

// A sum of at most 2^63 products of words: each is below 2^128, the sum below 2^191. It is low + 2^128 high.
struct WideSum {
  u128 low = 0;
  u64 high = 0;

  RNS_INLINE void add(u64 a, u64 b) {
    const u128 product = static_cast<u128>(a) * b;
    low += product;
    high += low < product ? 1u : 0u;
  }

  RNS_INLINE void add(const WideSum& other) {
    low += other.low;
    high += other.high + (low < other.low ? 1u : 0u);
  }

  RNS_INLINE u64 reduce(WideModulus m) const {
    const u64 above = high > m.last ? high % (m.last + 1u) : high;
    const u64 upper = mod_reduce(static_cast<u128>(above) << 64 | static_cast<u64>(low >> 64), m);
    return mod_reduce(static_cast<u128>(upper) << 64 | static_cast<u64>(low), m);
  }
};

}  // namespace rns
