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

// What products by P. Montgomery modulo an odd m < 2^32 take, for R = 2^32: 1 / m modulo R, and R and R^3
// modulo m.
struct Montgomery {
  u32 m;
  u32 inverse;
  u32 one;
  u32 cube;
};

RNS_INLINE Montgomery montgomery_of(Modulus m) {
  const u32 odd = m.last + 1u;
  u32 inverse = odd;                                                      // right modulo 2^3
  for (i32 bits = 3; bits < 32; bits *= 2) inverse *= 2 - odd * inverse;  // each step doubles the bits
  const u32 one = mod_reduce(static_cast<u64>(1) << 32, m);
  return {odd, inverse, one, mod_mul(mod_mul(one, one, m), one, m)};
}

// |x / R| modulo m, for x < R m.
RNS_INLINE u32 montgomery_reduce(u64 x, Montgomery m) {
  const u32 q = static_cast<u32>(x) * m.inverse;
  const u32 high = static_cast<u32>(x >> 32), less = static_cast<u32>((static_cast<u64>(q) * m.m) >> 32);
  return high - less + (high < less ? m.m : 0u);
}

// |a b / R|, for a < m and any b.
RNS_INLINE u32 montgomery_mul(u32 a, u32 b, Montgomery m) {
  return montgomery_reduce(static_cast<u64>(a) * b, m);
}

// |(a b + c d) / R|, for a b + c d < R m.
RNS_INLINE u32 montgomery_muladd(u32 a, u32 b, u32 c, u32 d, Montgomery m) {
  return montgomery_reduce(static_cast<u64>(a) * b + static_cast<u64>(c) * d, m);
}

// |R / a| modulo a prime m, for 0 < a < m, which is a^(m - 2) R by P. Fermat: two bits of the exponent at a
// time, as quick for all lanes of a warp as for one.
RNS_INLINE u32 montgomery_inverse(u32 a, Montgomery m) {
  const u32 first = montgomery_mul(montgomery_mul(m.cube, 1u, m), a, m);
  const u32 second = montgomery_mul(first, first, m), third = montgomery_mul(second, first, m);
  u32 power = m.one;
  for (i32 shift = 30; shift >= 0; shift -= 2) {
    power = montgomery_mul(power, power, m);
    power = montgomery_mul(power, power, m);
    const u32 digit = (m.m - 2u) >> shift & 3u;
    if (digit != 0) power = montgomery_mul(power, digit == 1 ? first : digit == 2 ? second : third, m);
  }
  return power;
}

// |(a b - c d) / R|, for a, b, c, d < m: a negative difference gains R m.
RNS_INLINE u32 montgomery_mulsub(u32 a, u32 b, u32 c, u32 d, Montgomery m) {
  const u64 ab = static_cast<u64>(a) * b, cd = static_cast<u64>(c) * d;
  return montgomery_reduce(ab - cd + (ab < cd ? static_cast<u64>(m.m) << 32 : 0), m);
}

// A sum of at most 32 products of residues: the sum modulo 2^64, and what is carried.
struct CarriedSum {
  u64 low = 0;
  u32 high = 0;

  RNS_INLINE void add(u32 a, u32 b) {
#if defined(__CUDA_ARCH__)
    // Two instructions, where compilers make eight of what is below.
    u32 first = static_cast<u32>(low), second = static_cast<u32>(low >> 32);
    asm("mad.lo.cc.u32 %0, %3, %4, %0;\n"
        "madc.hi.cc.u32 %1, %3, %4, %1;\n"
        "addc.u32 %2, %2, 0;"
        : "+&r"(first), "+&r"(second), "+&r"(high)
        : "r"(a), "r"(b));
    low = static_cast<u64>(second) << 32 | first;
#else
    const u64 product = static_cast<u64>(a) * b;
    low += product;
    high += low < product ? 1u : 0u;
#endif
  }

  // |sum / R^2|: two steps of Montgomery's. The first leaves from 1 to 32 m^2 / R + m, less than R m.
  RNS_INLINE u32 reduce(Montgomery m) const {
    const u32 q = static_cast<u32>(low) * m.inverse;
    const u64 upper = static_cast<u64>(high) << 32 | static_cast<u32>(low >> 32);
    return montgomery_reduce(upper + m.m - ((static_cast<u64>(q) * m.m) >> 32), m);
  }
};

}  // namespace rns
