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

// How lengths in bits follow from fractions t = X/M: what an evaluation is below t at most, in 128 bits
// behind the point; 2^63 times 2^bits / M, rounded down, where 2^(bits - 1) < M <= 2^bits; and whether t from
// 1/2 on stands for X - M.
struct LengthTable {
  u64 width_high;
  u64 width_low;
  u64 size;
  i32 bits;
  u32 is_signed;
};

RNS_INLINE i32 leading_zeros(u64 x) {
#if defined(__CUDA_ARCH__)
  return __clzll(static_cast<i64>(x));
#else
  return x == 0 ? 64 : __builtin_clzll(x);
#endif
}

// Length in bits of t M for t = (high, low) / 2^128, not 0: with t = f 2^(1 - zeros), f from 1/2 to 1, it is
// bits - zeros if f M / 2^bits is at least 1/2, else one less. `above` decides where f is as near 2^bits / 2M
// as 64 bits tell.
RNS_INLINE i32 length_of_fraction(u64 high, u64 low, const LengthTable& table, bool above) {
  const i32 zeros = high != 0 ? leading_zeros(high) : 64 + leading_zeros(low);
  const u64 first = zeros < 64 ? high : low, next = zeros < 64 ? low : 0;
  const i32 shift = zeros & 63;
  const u64 leading = shift == 0 ? first : first << shift | next >> (64 - shift);
  return table.bits - 1 - zeros + (leading > table.size || (above && leading == table.size));
}

// Length in bits of a number that its fraction X/M leaves open.
constexpr i32 kOpenLength = -1;

// Length in bits of |X|, for X other than 0, by an evaluation (high, low) / 2^128 of its fraction, or
// kOpenLength: t is from the evaluation to `width` above it, unless that wraps around.
RNS_INLINE i32 length_of_number(u64 high, u64 low, const LengthTable& table) {
  u64 top_low = low + table.width_low;
  const u64 carry = top_low < low ? 1 : 0;
  u64 top_high = high + table.width_high + carry;
  const bool wraps = top_high < high || (carry != 0 && top_high == high);
  if (wraps) return kOpenLength;
  constexpr u64 kHalf = 1ull << 63;
  if (table.is_signed != 0 && top_high >= kHalf) {
    if (high < kHalf) return kOpenLength;
    // 1 - t: the ends change places.
    const u64 from_low = 0 - top_low, from_high = ~top_high + (top_low == 0 ? 1 : 0);
    top_low = 0 - low;
    top_high = ~high + (low == 0 ? 1 : 0);
    high = from_high;
    low = from_low;
  }
  if ((high | low) == 0) return kOpenLength;
  const i32 length = length_of_fraction(high, low, table, false);
  return length == length_of_fraction(top_high, top_low, table, true) ? length : kOpenLength;
}

// The same for an evaluation of kWords words, and 0 for the number 0.
template <int kWords>
RNS_INLINE i32 length_of_words(const u32* words, bool is_zero, const LengthTable& table) {
  u64 half[2] = {};
  for (int k = 0; k < kWords; ++k) {
    const int place = k + 4 - kWords;  // the highest word is word 3 of 128 bits
    half[place / 2] |= static_cast<u64>(words[k]) << 32 * (place % 2);
  }
  return is_zero ? 0 : length_of_number(half[1], half[0], table);
}

}  // namespace rns
