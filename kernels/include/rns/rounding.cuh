// Double-precision operations rounded down or up. The GPU has instructions for them. The host rounds to
// nearest, finds the sign of the exact error and, where it rounded the wrong way, takes the neighbour: the
// same bits. Needs a compiler that fuses and reorders nothing (-ffp-contract=off, no -ffast-math).
#pragma once

#include "base.cuh"

namespace rns {

#if defined(__CUDA_ARCH__)

RNS_INLINE i64 double_bits(double x) { return __double_as_longlong(x); }
RNS_INLINE double double_of_bits(i64 bits) { return __longlong_as_double(bits); }

RNS_INLINE double add_down(double a, double b) { return __dadd_rd(a, b); }
RNS_INLINE double add_up(double a, double b) { return __dadd_ru(a, b); }
RNS_INLINE double div_down(double a, double b) { return __ddiv_rd(a, b); }
RNS_INLINE double div_up(double a, double b) { return __ddiv_ru(a, b); }
RNS_INLINE double mul_down(double a, double b) { return __dmul_rd(a, b); }
RNS_INLINE double mul_up(double a, double b) { return __dmul_ru(a, b); }
RNS_INLINE double fma_down(double a, double b, double c) { return __fma_rd(a, b, c); }
RNS_INLINE double fma_up(double a, double b, double c) { return __fma_ru(a, b, c); }

#else

RNS_INLINE i64 double_bits(double x) {
  i64 bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}

RNS_INLINE double double_of_bits(i64 bits) {
  double x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

// The neighbours of a positive double are those of its bits, read as an integer.
RNS_INLINE double step_down_if(bool wanted, double x) {
  return double_of_bits(double_bits(x) - (wanted ? 1 : 0));
}
RNS_INLINE double step_up_if(bool wanted, double x) {
  return double_of_bits(double_bits(x) + (wanted ? 1 : 0));
}

// a + b. A sum of 0 is exact, so that the one rounded is a positive or a negative double.
RNS_INLINE double add_up(double a, double b) {
  const double sum = a + b;
  // Knuth's TwoSum gives the error exactly.
  const double of_b = sum - a;
  const double error = (a - (sum - of_b)) + (b - of_b);
  const i64 bits = double_bits(sum), up = bits < 0 ? -1 : 1;
  return double_of_bits(bits + (error > 0.0 ? up : 0));
}
RNS_INLINE double add_down(double a, double b) { return -add_up(-a, -b); }

// a b for a, b >= 0, neither overflowing nor underflowing: then the fused operation gives the error exactly.
RNS_INLINE double mul_down(double a, double b) {
  const double product = a * b;
  return step_down_if(__builtin_fma(a, b, -product) < 0.0, product);
}
RNS_INLINE double mul_up(double a, double b) {
  const double product = a * b;
  return step_up_if(__builtin_fma(a, b, -product) > 0.0, product);
}

// a / b for a >= 0 and b > 0, far from the ends of the range: the remainder a - quotient b is exact.
RNS_INLINE double div_down(double a, double b) {
  const double quotient = a / b;
  return step_down_if(__builtin_fma(-quotient, b, a) < 0.0, quotient);
}
RNS_INLINE double div_up(double a, double b) {
  const double quotient = a / b;
  return step_up_if(__builtin_fma(-quotient, b, a) > 0.0, quotient);
}

// a b + c for 0 <= a b < 1 <= c < 2. Then result - c is exact: a multiple of 2^-52 not above 1 + 2^-51. So
// a b - (result - c) is the error, and one more fused operation gives its sign.
RNS_INLINE double fma_down(double a, double b, double c) {
  const double sum = __builtin_fma(a, b, c);
  return step_down_if(__builtin_fma(a, b, c - sum) < 0.0, sum);
}
RNS_INLINE double fma_up(double a, double b, double c) {
  const double sum = __builtin_fma(a, b, c);
  return step_up_if(__builtin_fma(a, b, c - sum) > 0.0, sum);
}

#endif

// Exactly u: the significand of a double that starts at 2^52 counts units. Vector units have no conversion of
// unsigned integers before AVX-512, and the GPU's is slower than this.
RNS_INLINE double exact_double(u32 u) {
  return double_of_bits(0x4330000000000000 | static_cast<i64>(u)) - 0x1p52;
}

}  // namespace rns
