// Products of sparse matrices with vectors modulo m: sums of signed entries times residues.
#pragma once

#include "product_sum.cuh"

namespace rns {

// x mod m for any x above -2^63, without a branch, and m < 2^32. Products of residues with signed entries
// whose magnitudes add up to less than 2^31 in each row stay within that, so that one reduction a row is
// enough. A multiple of m from 2^63 on makes x positive.
RNS_INLINE u32 mod_reduce_signed(i64 x, Modulus m) {
  const u64 multiple = static_cast<u64>(m.divisor) << 32;
  return mod_reduce_word(static_cast<u64>(x) + (static_cast<u64>(x >> 63) & multiple), m);
}

}  // namespace rns
