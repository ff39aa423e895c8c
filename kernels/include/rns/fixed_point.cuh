// Fixed-point interval evaluation of X/M: with c_i = floor(2^F |w_i 2^K|_{m_i} / m_i), the sum
// of x_i c_i modulo 2^F is a lower bound of 2^F |2^K X|_M / M. The wrap-around is the fractional part.
#pragma once

#include "base.cuh"

namespace rns {

// An evaluation of kWords * 32 bits. Every lane gathers 32-bit pieces, so 2^31 terms cannot overflow it.
template <int kWords>
struct FixedPointSum {
  u64 lane[kWords];
};

template <int kWords>
RNS_INLINE void fixed_point_accumulate(FixedPointSum<kWords>& sum, u32 x, const u32* c) {
  for (int k = 0; k < kWords; ++k) {
    const u64 product = static_cast<u64>(x) * c[k];
    sum.lane[k] += static_cast<u32>(product);
    if (k + 1 < kWords) sum.lane[k + 1] += product >> 32;
  }
}

// Carries the lanes into words, least significant first, modulo 2^F.
template <int kWords>
RNS_INLINE void fixed_point_words(const FixedPointSum<kWords>& sum, u32* words) {
  u64 carry = 0;
  for (int k = 0; k < kWords; ++k) {
    const u64 total = sum.lane[k] + carry;
    words[k] = static_cast<u32>(total);
    carry = total >> 32;
  }
}

}  // namespace rns
