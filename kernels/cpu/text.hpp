// What reading and writing integers as text share.
#pragma once

#include "rns/base.cuh"

namespace rns {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "eight characters are taken as one word");

constexpr u64 kOnes = 0x0101010101010101;

// Decimal limbs are digits in base 10**9, the least significant first.
constexpr u32 kDecimalBase = 1'000'000'000;
constexpr i64 kDecimalDigits = 9;

// Negates an integer in two's complement; returns whether it is not 0.
inline bool negate_limbs(u32* limbs, i64 count) {
  i64 l = 0;
  while (l < count && limbs[l] == 0) ++l;
  if (l == count) return false;
  limbs[l] = -limbs[l];
  for (++l; l < count; ++l) limbs[l] = ~limbs[l];
  return true;
}

// The characters of eight values below 16.
RNS_INLINE u64 hexadecimal_characters(u64 values) {
  const u64 letters = (values + 6 * kOnes) >> 4 & kOnes;
  return values + '0' * kOnes + ('a' - '0' - 10) * letters;
}

}  // namespace rns
