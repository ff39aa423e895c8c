// The test by which keys prove that a sum is in range.
#pragma once

#include "modular.cuh"

namespace rns {

// The sum or difference of two numbers fits if h, half the sum or difference of their keys, is from `lowest`
// on less than `width` away. A key below `ambiguous_below` may have wrapped. rnsdask/constants/arith.py
// derives the three.
struct SumTest {
  u64 ambiguous_below;
  u64 lowest;
  u64 width;
};

RNS_INLINE bool sum_fits(u64 x, u64 y, bool subtract, SumTest test) {
  const u64 h = subtract ? (x >> 1) - (y >> 1) : (x >> 1) + (y >> 1);
  const bool certain = x >= test.ambiguous_below && y >= test.ambiguous_below;
  return certain && h - test.lowest < test.width;
}

}  // namespace rns
