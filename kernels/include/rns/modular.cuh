// Arithmetic modulo one m, for every 2 <= m <= 2^32 inclusive, even and composite ones included.
//
// A residue fits 32 bits always, m itself does not when it is 2^32. So m travels as `last` = m - 1.
#pragma once

#include "base.cuh"

namespace rns {

// |a + b| mod m, for a, b < m.
RNS_INLINE u32 mod_add(u32 a, u32 b, u32 last) {
  // b <= last - a means no reduction is needed; otherwise a + b - m, where the two wraps cancel.
  return b <= last - a ? a + b : a + b - last - 1u;
}

// |a - b| mod m, for a, b < m.
RNS_INLINE u32 mod_sub(u32 a, u32 b, u32 last) { return a >= b ? a - b : a - b + last + 1u; }

// A constant factor w < m with its quotient floor(w 2^32 / m), as V. Shoup uses it (NTL): the
// quotient estimate floor(x quotient / 2^32) is exact or one too small, for every 32-bit x.
struct Factor {
  u32 value;
  u32 quotient;
};

// |x w| mod m for any 32-bit x (x need not be reduced) and a precomputed factor w.
RNS_INLINE u32 mod_mul(u32 x, Factor w, u32 last) {
  const u32 q = static_cast<u32>((static_cast<u64>(x) * w.quotient) >> 32);
  // x w - q m, written with m - 1 so that both products are 32 x 32 bits; it is below 2 m.
  const u64 r = static_cast<u64>(x) * w.value - static_cast<u64>(q) * last - q;
  return static_cast<u32>(r > last ? r - last - 1u : r);
}

}  // namespace rns
