// The key of a number: its fixed-point evaluation (fixed_point.cuh) with 64 fraction bits.
#pragma once

#include "base.cuh"

namespace rns {

// A key as two lanes while terms are added: low + 2^32 high, modulo 2^64. The upper half of c only reaches
// the upper half of the sum, so 32 bits of it are enough.
RNS_INLINE void key_accumulate(u64& low, u32& high, u32 x, u64 c) {
  low += static_cast<u64>(x) * static_cast<u32>(c);
  high += x * static_cast<u32>(c >> 32);
}

RNS_INLINE u64 key_of(u64 low, u32 high) { return low + (static_cast<u64>(high) << 32); }

// The lanes of one number; loops over many numbers keep equal lanes side by side.
struct Key {
  u64 low;
  u32 high;

  RNS_INLINE void accumulate(u32 x, u64 c) { key_accumulate(low, high, x, c); }
  RNS_INLINE u64 value() const { return key_of(low, high); }
};

}  // namespace rns
