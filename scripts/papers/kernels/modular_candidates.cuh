// Ways to reduce a product of two residues, for scripts/bench_modular.py to compare with mod_mul. The product
// uses none of these. Each is a struct with the constants of one modulus, and |a b| mod m for a, b < m.
#pragma once

#include <rns/modular.cuh>

namespace rns {

RNS_INLINE u64 multiply_high(u64 a, u64 b) {
#if defined(__CUDA_ARCH__)
  return __umul64hi(a, b);
#else
  return static_cast<u64>((static_cast<unsigned __int128>(a) * b) >> 64);
#endif
}

// The processor's own division of 64 by 64 bits; 2 <= m <= 2^32.
struct Division {
  u64 m;

  static RNS_INLINE Division of(u64 m) { return {m}; }
  RNS_INLINE u32 multiply(u32 a, u32 b) const { return static_cast<u32>(static_cast<u64>(a) * b % m); }
};

// The normalised 32-bit reciprocal of modular.cuh, which the product uses; 2 <= m <= 2^32.
struct NormalisedReciprocal {
  Modulus m;

  static RNS_INLINE NormalisedReciprocal of(u64 m) {
    u32 shift = 0;
    while (m >> (31 - shift) == 0) ++shift;
    const u64 divisor = m << shift;
    const u32 reciprocal = m >> 32 ? 0 : static_cast<u32>(~0ull / divisor);
    return {{static_cast<u32>(m - 1), static_cast<u32>(divisor), reciprocal, shift}};
  }
  RNS_INLINE u32 multiply(u32 a, u32 b) const { return mod_mul(a, b, m); }
};

// Barrett's reduction with floor((2^64 - 1) / m): the quotient is exact or one too small; 2 <= m <= 2^32.
struct Barrett64 {
  u64 m;
  u64 reciprocal;

  static RNS_INLINE Barrett64 of(u64 m) { return {m, ~0ull / m}; }
  RNS_INLINE u32 multiply(u32 a, u32 b) const {
    const u64 x = static_cast<u64>(a) * b;
    const u64 r = x - multiply_high(x, reciprocal) * m;
    return static_cast<u32>(r >= m ? r - m : r);
  }
};

// Montgomery's reduction, which divides by 2^32: a second one with the factor 2^64 mod m takes that back.
// Odd m below 2^32 only.
struct Montgomery {
  u32 m;
  u32 inverse;  // of m modulo 2^32
  u32 square;   // 2^64 mod m

  static RNS_INLINE Montgomery of(u64 m) {
    u32 inverse = static_cast<u32>(m);
    for (i32 k = 0; k < 4; ++k) inverse *= 2u - static_cast<u32>(m) * inverse;
    return {static_cast<u32>(m), inverse, static_cast<u32>((~0ull % m + 1) % m)};
  }
  RNS_INLINE u32 reduce(u64 x) const {
    const u32 q = static_cast<u32>(x) * inverse;
    const u32 high = static_cast<u32>(x >> 32);
    const u32 low = static_cast<u32>((static_cast<u64>(q) * m) >> 32);
    return high >= low ? high - low : high - low + m;
  }
  RNS_INLINE u32 multiply(u32 a, u32 b) const {
    return reduce(static_cast<u64>(reduce(static_cast<u64>(a) * b)) * square);
  }
};

// A quotient by the floating-point reciprocal. Double precision leaves it at most one wrong either way, which
// the sign of the 64-bit remainder and a comparison put right; 2 <= m <= 2^32.
struct FloatingPoint {
  u64 m;
  double reciprocal;

  static RNS_INLINE FloatingPoint of(u64 m) { return {m, 1.0 / static_cast<double>(m)}; }
  RNS_INLINE u32 multiply(u32 a, u32 b) const {
    const double estimate = static_cast<double>(a) * static_cast<double>(b) * reciprocal;
    const u64 q = static_cast<u64>(static_cast<i64>(estimate));
    i64 r = static_cast<i64>(static_cast<u64>(a) * b - q * m);
    r += r < 0 ? static_cast<i64>(m) : 0;
    r -= r >= static_cast<i64>(m) ? static_cast<i64>(m) : 0;
    return static_cast<u32>(r);
  }
};

}  // namespace rns
