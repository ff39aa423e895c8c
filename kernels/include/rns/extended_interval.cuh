// Interval arithmetic with rounding outwards and exponents of its own: equation 3 of K. Isupov and V.
// Knyazkov, "Efficient GPU Implementation of Multiple-Precision Addition based on Residue Arithmetic" (2020).
//
// Bounds of a result are found at the operands' common exponent. Where one operand lies so far below the
// other that it cannot be brought there, the smallest step outwards stands for it: sound for every gap.
// docs/exact-intervals.md derives it.
#pragma once

#include "rounding.cuh"

namespace rns {

// The numbers from low 2^exponent to upp 2^exponent. Normalised: the greater magnitude of the two bounds is
// in [1/2, 1), and the other one is 0 or at least kTiny; zero is [0, 0] with the exponent 0.
struct ExtendedInterval {
  double low;
  double upp;
  i32 exponent;
};

constexpr double kTiny = 0x1p-200;

// Gap of exponents from which on an operand counts as a step outwards; far from where doubles vanish.
constexpr i32 kFar = 400;

// 2^k, for k from -1022 to 1023.
RNS_INLINE double power_of_two(i32 k) { return double_of_bits(static_cast<i64>(k + 1023) << 52); }

RNS_INLINE bool is_zero(ExtendedInterval x) { return x.low == 0.0 && x.upp == 0.0; }

RNS_INLINE ExtendedInterval negated(ExtendedInterval x) { return {-x.upp, -x.low, x.exponent}; }

// A lower bound that is 0 or not tiny; of an upper bound it is used negated.
RNS_INLINE double without_tiny(double low) {
  const double replaced = low < 0.0 ? -kTiny : 0.0;
  return low > -kTiny && low < kTiny ? (low == 0.0 ? 0.0 : replaced) : low;
}

// For bounds that are 0 or from 2^-700 to 2^700 in magnitude. Exact, but for tiny bounds, which move
// outwards.
RNS_INLINE ExtendedInterval normalised(ExtendedInterval x) {
  const double a = x.low < 0.0 ? -x.low : x.low;
  const double b = x.upp < 0.0 ? -x.upp : x.upp;
  const double greater = a > b ? a : b;
  if (greater == 0.0) return {0.0, 0.0, 0};
  const i32 k = static_cast<i32>(double_bits(greater) >> 52) - 1022;
  const double scale = power_of_two(-k);
  return {without_tiny(x.low * scale), -without_tiny(-(x.upp * scale)), x.exponent + k};
}

// The four operations take normalised intervals and return normalised ones.

RNS_INLINE ExtendedInterval interval_sum(ExtendedInterval x, ExtendedInterval y) {
  if (is_zero(x)) return y;
  if (is_zero(y)) return x;
  const bool swap = x.exponent < y.exponent;
  const ExtendedInterval a = swap ? y : x, b = swap ? x : y;
  const i32 gap = a.exponent - b.exponent;
  const bool is_far = gap > kFar;
  const double scale = power_of_two(is_far ? -kFar : -gap);
  const double step_low = b.low < 0.0 ? -scale : 0.0, step_upp = b.upp > 0.0 ? scale : 0.0;
  const double low = is_far ? step_low : b.low * scale;
  const double upp = is_far ? step_upp : b.upp * scale;
  return normalised({add_down(a.low, low), add_up(a.upp, upp), a.exponent});
}

RNS_INLINE ExtendedInterval interval_difference(ExtendedInterval x, ExtendedInterval y) {
  return interval_sum(x, negated(y));
}

// For x, y >= 0.
RNS_INLINE ExtendedInterval interval_product(ExtendedInterval x, ExtendedInterval y) {
  return normalised({mul_down(x.low, y.low), mul_up(x.upp, y.upp), x.exponent + y.exponent});
}

// For x >= 0, y > 0.
RNS_INLINE ExtendedInterval interval_quotient(ExtendedInterval x, ExtendedInterval y) {
  return normalised({div_down(x.low, y.upp), div_up(x.upp, y.low), x.exponent - y.exponent});
}

// What the four do to fractions X/M and Y/M, with bounds of M: to (X + Y)/M, (X - Y)/M, X Y/M and (X/Y)/M.
// The paper divides by bounds of 1/M instead of multiplying by those of M.
enum IntervalOperation : i32 { kIntervalAdd, kIntervalSubtract, kIntervalMultiply, kIntervalDivide };

RNS_INLINE ExtendedInterval fraction_operation(i32 operation, ExtendedInterval x, ExtendedInterval y,
                                               ExtendedInterval product) {
  if (operation == kIntervalAdd) return interval_sum(x, y);
  if (operation == kIntervalSubtract) return interval_difference(x, y);
  if (operation == kIntervalMultiply) return interval_product(interval_product(x, y), product);
  return interval_quotient(interval_quotient(x, y), product);
}

}  // namespace rns
