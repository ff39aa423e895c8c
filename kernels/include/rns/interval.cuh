// Floating-point interval evaluation of X/M with refinement: Algorithm 1 of K. Isupov, "High-Performance
// Computation in Residue Number System Using Floating-Point Arithmetic", Computation 9(2):9, 2021, for signed
// numbers too. docs/mathematics.md derives why the bounds hold and the refinement ends.
//
// Unlike the paper, the terms u_i/m_i are added modulo 1 one after the other, not pairwise: no partial sum
// grows, so the error is that of n roundings at 1 instead of log2(n) levels of larger ones, and no stack of
// partial sums is needed. And a sum around an integer (X near 0 or near M?) is decided by refining, too.
#pragma once

#include "modular.cuh"
#include "rounding.cuh"

namespace rns {

struct Bounds {
  double low;
  double upp;
};

// Adds u/m to bounds of a sum modulo 1, both in [0, 1), for u < m and bounds of 1/m.
RNS_INLINE void interval_accumulate(Bounds& sum, u32 u, Bounds reciprocal) {
  const double low = add_down(sum.low, mul_down(u, reciprocal.low));
  const double upp = add_up(sum.upp, mul_up(u, reciprocal.upp));
  sum.low = low >= 1.0 ? low - 1.0 : low;
  sum.upp = upp >= 1.0 ? upp - 1.0 : upp;
}

// |x w_i 2^shift| mod m_i from two tables: w_i 2^(64 k) and 2^k, for k < 64, modulo m_i.
constexpr i32 kPowers = 64;
RNS_INLINE u32 shifted_term(u32 x, const Factor* inverses, const Factor* powers, i32 shift, u32 last) {
  return mod_mul(mod_mul(x, inverses[shift / kPowers], last), powers[shift % kPowers], last);
}

// What to compute: the wanted relative width, the range, and the factor that the bounds get at the end,
// [scale_low, scale_upp] * 2^scale_exponent.
struct IntervalGoal {
  double accuracy;
  double scale_low;
  double scale_upp;
  i32 scale_exponent;
  i32 is_signed;
};

// A number's evaluation on its way: advance() takes the sums of 2^shift X and asks for another shift, or
// leaves the result in bounds and exponent.
struct IntervalSearch {
  Bounds bounds = {0.0, 0.0};
  i32 exponent = 0;
  i32 shift = 0;
  i32 steps = 0;
  bool at_middle = false;
};

// The representative in [-1/2, 1/2) of a number modulo 1; exact.
RNS_INLINE double centred(double x) { return x >= 0.5 ? x - 1.0 : x; }

RNS_INLINE bool is_accurate(Bounds value, double accuracy) {
  const double least = value.low > 0.0 ? value.low : value.upp < 0.0 ? -value.upp : 0.0;
  return add_up(value.upp, -value.low) <= mul_down(accuracy, least);
}

// The greatest r with 2^r |v| <= 1/4 for each v within the bounds, which are not both 0.
RNS_INLINE i32 safe_shift(Bounds value) {
  const double magnitude = -value.low > value.upp ? -value.low : value.upp;
  // The first term is ceil(log2(magnitude)) + 1022.
  return 1020 - static_cast<i32>((double_bits(magnitude) - 1) >> 52);
}

// The sums' bounds may be a whole turn apart: low > upp says that the value is around an integer.
RNS_INLINE bool advance(IntervalSearch& search, Bounds sum, const IntervalGoal& goal) {
  if (search.shift == 0) {
    search.bounds = sum;
    if (!goal.is_signed && sum.low <= sum.upp && is_accurate(sum, goal.accuracy)) return true;
    search.at_middle = goal.is_signed && sum.low < 0.5 && sum.upp >= 0.5;
    if (search.at_middle) {
      // X is near M/2 or near -M/2; 2 X is congruent to a small number, negative or not.
      search.shift = 1;
      ++search.steps;
      return false;
    }
  }
  const Bounds value = {centred(sum.low), centred(sum.upp)};
  if (!is_accurate(value, goal.accuracy)) {
    search.shift += safe_shift(value);
    ++search.steps;
    return false;
  }
  if (search.at_middle) {
    // 2 X - M < 0 for X below M/2, 2 X + M >= 0 for X from -M/2.
    if (value.low >= 0.0) search.bounds = {search.bounds.low - 1.0, search.bounds.upp - 1.0};
  } else if (!goal.is_signed && value.low < 0.0) {
    search.bounds.upp = 1.0;  // X - M is small and negative
  } else {
    search.bounds = value;
    search.exponent = -search.shift;
  }
  return true;
}

// Applies the goal's factor, away from the value at both ends; 0 stays [0, 0] with the exponent 0.
RNS_INLINE void apply_scale(IntervalSearch& search, const IntervalGoal& goal) {
  const Bounds b = search.bounds;
  if (b.upp == 0.0 && b.low == 0.0) return;
  search.bounds.low = b.low < 0.0 ? -mul_up(-b.low, goal.scale_upp) : mul_down(b.low, goal.scale_low);
  search.bounds.upp = b.upp < 0.0 ? -mul_down(-b.upp, goal.scale_low) : mul_up(b.upp, goal.scale_upp);
  search.exponent += goal.scale_exponent;
}

}  // namespace rns
