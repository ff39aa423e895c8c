// Products of sparse matrices with vectors modulo m: sums of signed entries times residues, of 32 and of 64
// bits. Magnitudes of a row's entries add up to less than 2^31, so that one reduction a row is enough.
#pragma once

#include "product_sum.cuh"
#include "wide_sum.cuh"

namespace rns {

// x mod m for any x above -2^63, without a branch, and m < 2^32. A multiple of m from 2^63 on makes x
// positive.
RNS_INLINE u32 mod_reduce_signed(i64 x, Modulus m) {
  const u64 multiple = static_cast<u64>(m.divisor) << 32;
  return mod_reduce_word(static_cast<u64>(x) + (static_cast<u64>(x >> 63) & multiple), m);
}

// Signed entries times residues below 2^32: the sum's magnitude is below 2^31 2^32.
struct SignedSum {
  i64 sum = 0;

  RNS_INLINE void add(i32 value, u32 x) { sum += static_cast<i64>(value) * static_cast<i64>(x); }
  RNS_INLINE u32 reduce(Modulus m) const { return mod_reduce_signed(sum, m); }
};

// Signed entries times residues modulo m < 2^64, whose halves are multiplied each: both sums have magnitudes
// of at most (2^31 - 1) (2^32 - 1) < 2^63, and together they are a number above -2^31 m and below 2^31 m.
struct WideSignedSum {
  i64 low = 0;
  i64 high = 0;

  RNS_INLINE void add(i32 value, u64 x) {
    low += static_cast<i64>(value) * static_cast<i64>(static_cast<u32>(x));
    high += static_cast<i64>(value) * static_cast<i64>(x >> 32);
  }

  RNS_INLINE u64 reduce(WideModulus m) const {
    const __int128 sum = static_cast<__int128>(high) * (static_cast<i64>(1) << 32) + low;
    const u128 multiple = (static_cast<u128>(m.last) + 1u) << 31;
    return mod_reduce(static_cast<u128>(sum) + (sum < 0 ? multiple : 0u), m);
  }
};

}  // namespace rns
