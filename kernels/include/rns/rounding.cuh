// Double-precision sums and products rounded down or up, of operands that give no negative result and no
// subnormal one. The GPU has instructions for them. The host rounds to nearest, takes the exact error of that
// (TwoSum; a fused multiply-add) and, where it rounded the wrong way, the neighbour: the same bits.
// Needs a compiler that fuses and reorders nothing (-ffp-contract=off, no -ffast-math).
#pragma once

#include "base.cuh"

namespace rns {

#if defined(__CUDA_ARCH__)

RNS_INLINE i64 double_bits(double x) { return __double_as_longlong(x); }

RNS_INLINE double add_down(double a, double b) { return __dadd_rd(a, b); }
RNS_INLINE double add_up(double a, double b) { return __dadd_ru(a, b); }
RNS_INLINE double mul_down(double a, double b) { return __dmul_rd(a, b); }
RNS_INLINE double mul_up(double a, double b) { return __dmul_ru(a, b); }

#else

RNS_INLINE i64 double_bits(double x) {
  i64 bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}

// The neighbours of a positive double are those of its bits, read as an integer.
RNS_INLINE double step(double x, i64 ulps) {
  const i64 bits = double_bits(x) + ulps;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

// a + b - sum, exactly, for sum = a + b rounded to nearest (Knuth's TwoSum).
RNS_INLINE double sum_error(double a, double b, double sum) {
  const double of_b = sum - a;
  const double of_a = sum - of_b;
  return (a - of_a) + (b - of_b);
}

RNS_INLINE double add_down(double a, double b) {
  const double sum = a + b;
  return step(sum, -static_cast<i64>(sum_error(a, b, sum) < 0.0));
}
RNS_INLINE double add_up(double a, double b) {
  const double sum = a + b;
  return step(sum, static_cast<i64>(sum_error(a, b, sum) > 0.0));
}
RNS_INLINE double mul_down(double a, double b) {
  const double product = a * b;
  return step(product, -static_cast<i64>(__builtin_fma(a, b, -product) < 0.0));
}
RNS_INLINE double mul_up(double a, double b) {
  const double product = a * b;
  return step(product, static_cast<i64>(__builtin_fma(a, b, -product) > 0.0));
}

#endif

}  // namespace rns
