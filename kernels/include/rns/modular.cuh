// Arithmetic modulo one m, for every 2 <= m <= 2^32 inclusive, even and composite ones included.
//
// A residue fits 32 bits always, m itself does not when it is 2^32. So m travels as `last` = m - 1.
#pragma once

#include "base.cuh"

namespace rns {

// |a + b| mod m, for a, b < m. U is u32, or on the host a vector of them.
template <class U>
RNS_INLINE U mod_add(const U& a, const U& b, const U& last) {
  // b <= last - a means no reduction is needed; otherwise a + b - m, where the two wraps cancel.
  return b <= last - a ? a + b : a + b - last - 1u;
}

// |a - b| mod m, for a, b < m, likewise.
template <class U>
RNS_INLINE U mod_sub(const U& a, const U& b, const U& last) {
  return a >= b ? a - b : a - b + last + 1u;
}

// A constant factor w < m with its quotient floor(w 2^32 / m), as V. Shoup uses it (NTL): the
// quotient estimate floor(x quotient / 2^32) is exact or one too small, for every 32-bit x.
struct Factor {
  u32 value;
  u32 quotient;
};
static_assert(sizeof(Factor) == 2 * sizeof(u32), "a pair of a table");

// |x w| mod m for any 32-bit x (x need not be reduced) and a precomputed factor w.
RNS_INLINE u32 mod_mul(u32 x, Factor w, u32 last) {
  const u32 q = static_cast<u32>((static_cast<u64>(x) * w.quotient) >> 32);
  // x w - q m, written with m - 1 so that both products are 32 x 32 bits; it is below 2 m.
  const u64 r = static_cast<u64>(x) * w.value - static_cast<u64>(q) * last - q;
  return static_cast<u32>(r > last ? r - last - 1u : r);
}

// A modulus for products of two residues, scaled so that its highest bit is bit 31: divisor = m 2^shift,
// and reciprocal = floor((2^64 - 1) / divisor) - 2^32. For m = 2^32 all of them are 0 but `last`.
struct Modulus {
  u32 last;
  u32 divisor;
  u32 reciprocal;
  u32 shift;
};
static_assert(sizeof(Modulus) == 4 * sizeof(u32), "a row of a table");

// x mod m for x < 2^32 m: Algorithm 4 of N. Moller and T. Granlund, "Improved division by invariant
// integers", IEEE Trans. Computers 60(2), 2011. Only the remainder is wanted, so the quotient is kept modulo
// 2^32. Where the divisor 2^32 is stored as 0, every step leaves the lower half of x: that is the remainder
// too.
RNS_INLINE u32 mod_reduce(u64 x, Modulus m) {
  x <<= m.shift;
  const u64 q = (x >> 32) * m.reciprocal + x;
  u32 r = static_cast<u32>(x) - (static_cast<u32>(q >> 32) + 1u) * m.divisor;
  r += r > static_cast<u32>(q) ? m.divisor : 0u;
  r -= r >= m.divisor ? m.divisor : 0u;
  return r >> m.shift;
}

// |a b| mod m, for a, b < m.
RNS_INLINE u32 mod_mul(u32 a, u32 b, Modulus m) { return mod_reduce(static_cast<u64>(a) * b, m); }

// |a b + c| mod m, for a, b, c < m: the sum is at most m (m - 1).
RNS_INLINE u32 mod_fma(u32 a, u32 b, u32 c, Modulus m) { return mod_reduce(static_cast<u64>(a) * b + c, m); }

// |a b - c d| mod m, for a, b, c, d < m. A negative difference is at least -(m - 1)^2, so with m (m - 1)
// added it is from m - 1 to m (m - 1): one reduction for both products.
RNS_INLINE u32 mod_mulsub(u32 a, u32 b, u32 c, u32 d, Modulus m) {
  const u64 ab = static_cast<u64>(a) * b;
  const u64 cd = static_cast<u64>(c) * d;
  const u64 last = m.last;
  return mod_reduce(ab - cd + (ab < cd ? last * last + last : 0), m);
}

// |a b + c d| mod m, for a, b, c, d < m. Both products are below m (m - 1), of which the sum is taken modulo,
// for it may have 65 bits: one reduction again.
RNS_INLINE u32 mod_muladd(u32 a, u32 b, u32 c, u32 d, Modulus m) {
  const u64 ab = static_cast<u64>(a) * b;
  const u64 cd = static_cast<u64>(c) * d;
  const u64 last = m.last;
  const u64 room = last * last + last - cd;
  return mod_reduce(ab < room ? ab + cd : ab - room, m);
}

// |a^k| mod m, for a < m; 1 modulo m for k = 0.
RNS_INLINE u32 mod_pow(u32 a, u64 k, Modulus m) {
  u32 result = 1;
  for (; k != 0; k >>= 1) {
    if (k & 1) result = mod_mul(result, a, m);
    a = mod_mul(a, a, m);
  }
  return result;
}

// The inverse of a modulo m = last + 1, for a < m; 0 where a and m have a common factor. Euclid's algorithm,
// extended: remainder = a factor (mod m) at each step, where the factors, of alternating signs, are at most m
// in magnitude.
RNS_INLINE u32 mod_inverse(u32 a, u32 last) {
  u64 previous = static_cast<u64>(last) + 1, remainder = a;
  i64 previous_factor = 0, factor = 1;
  while (remainder != 0) {
    const u64 quotient = previous / remainder;
    const u64 next = previous - quotient * remainder;
    const i64 next_factor = previous_factor - static_cast<i64>(quotient) * factor;
    previous = remainder;
    remainder = next;
    previous_factor = factor;
    factor = next_factor;
  }
  if (previous != 1) return 0;
  return static_cast<u32>(previous_factor < 0 ? previous_factor + last + 1 : previous_factor);
}

}  // namespace rns
