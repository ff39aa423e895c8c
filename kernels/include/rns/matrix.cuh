// Steps of elimination in matrices modulo a prime p <= 2^32.
#pragma once

#include "modular.cuh"

namespace rns {

// w with its quotient for products by Shoup (modular.cuh), for w < p.
RNS_INLINE Factor factor_of(u32 w, u32 last) {
  const u64 p = static_cast<u64>(last) + 1;
  return {w, static_cast<u32>((static_cast<u64>(w) << 32) / p)};
}

// The inverse of 0 < a < p modulo a prime p < 2^32: Euclid's algorithm, extended, in 32 bits. The factors'
// signs alternate, so that their magnitudes, at most p, add up.
RNS_INLINE u32 prime_inverse(u32 a, u32 last) {
  u32 previous = last + 1u, remainder = a, previous_factor = 0, factor = 1;
  bool is_negative = true;
  while (remainder != 0) {
    const u32 quotient = previous / remainder;
    const u32 next = previous - quotient * remainder;
    const u32 next_factor = previous_factor + quotient * factor;
    previous = remainder;
    remainder = next;
    previous_factor = factor;
    factor = next_factor;
    is_negative = !is_negative;
  }
  return is_negative ? last - previous_factor + 1u : previous_factor;
}

// Whether twice p fits 32 bits, so that eliminated_narrow can be taken.
RNS_INLINE bool is_narrow(u32 last) { return last < 0x7fffffffu; }

// |y - x w| modulo any p, for x, y < p.
RNS_INLINE u32 eliminated_wide(u32 y, u32 x, Factor w, u32 last) {
  return mod_sub(y, mod_mul(x, w, last), last);
}

// The same modulo p < 2^31, where 32 bits hold every value: the product is found below 2 p, and what is
// negative wraps to more than what it is with p added.
RNS_INLINE u32 eliminated_narrow(u32 y, u32 x, Factor w, u32 last) {
  const u32 p = last + 1u;
  const u32 q = static_cast<u32>((static_cast<u64>(x) * w.quotient) >> 32);
  const u32 product = x * w.value - q * p;
  const u32 less = product - p;
  const u32 difference = y - (less < product ? less : product);
  const u32 more = difference + p;
  return more < difference ? more : difference;
}

}  // namespace rns
