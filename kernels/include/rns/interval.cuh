// Floating-point interval evaluation of X/M with refinement: Algorithm 1 of K. Isupov, "High-Performance
// Computation in Residue Number System Using Floating-Point Arithmetic", Computation 9(2):9, 2021, for signed
// numbers too. docs/mathematics.md derives why the bounds hold and the refinement ends.
//
// Unlike the paper, the terms u_i/m_i are added modulo 1 one after the other, not pairwise: no partial sum
// grows, so the error is that of n roundings of numbers near 1 instead of log2(n) levels of larger ones, no
// stack of partial sums is needed, and a term costs one fused multiply-add for each bound. And refining also
// decides whether a sum around an integer belongs to an X near 0 or near M.
#pragma once

#include "modular.cuh"
#include "rounding.cuh"

namespace rns {

struct Bounds {
  double low;
  double upp;
};
static_assert(sizeof(Bounds) == 2 * sizeof(double), "a pair of a table");

// Bounds of a sum modulo 1 are kept 1 too high, in [1, 2), where doubles are 2^-52 apart.
RNS_INLINE Bounds empty_sum() { return {1.0, 1.0}; }

// Takes a number in [1, 3) to [1, 2), exactly. The exponent's highest bit is set from 2 on; a comparison
// would keep compilers from vectorising.
RNS_INLINE double wrapped(double x) {
  constexpr i64 kOne = 0x3ff0000000000000;
  return x - double_of_bits(-(double_bits(x) >> 62) & kOne);
}

// Adds u/m to bounds of a sum, for u < m and bounds of 1/m.
RNS_INLINE void add_fraction(Bounds& sum, u32 u, Bounds reciprocal) {
  const double term = exact_double(u);
  sum.low = wrapped(fma_down(term, reciprocal.low, sum.low));
  sum.upp = wrapped(fma_up(term, reciprocal.upp, sum.upp));
}

constexpr i32 kPowers = 64;

// What the moduli determine: m - 1; w 2^(64 k) for `blocks` values of k and 2^k for k < kPowers, modulo m;
// and bounds of 1/m.
struct IntervalTables {
  const u32* last;
  const Factor* inverses;
  i64 blocks;
  const Factor* powers;
  const Bounds* reciprocals;
};

// One modulus of the tables.
struct IntervalModulus {
  const Factor* inverses;
  const Factor* powers;
  u32 last;
  Bounds reciprocal;
};

RNS_INLINE IntervalModulus modulus_of(const IntervalTables& tables, i64 i) {
  return {tables.inverses + i * tables.blocks, tables.powers + i * kPowers, tables.last[i],
          tables.reciprocals[i]};
}

// Adds the term of the residue x of X, or of 2^shift X.
RNS_INLINE void interval_accumulate(Bounds& sum, u32 x, const IntervalModulus& m) {
  add_fraction(sum, mod_mul(x, m.inverses[0], m.last), m.reciprocal);
}
RNS_INLINE void interval_accumulate(Bounds& sum, u32 x, const IntervalModulus& m, i32 shift) {
  const u32 term = mod_mul(x, m.inverses[shift / kPowers], m.last);
  add_fraction(sum, mod_mul(term, m.powers[shift % kPowers], m.last), m.reciprocal);
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

// A number's evaluation on its way: advance() takes the sum for 2^shift X and asks for another shift, or
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

// Takes the bounds of the sum, as kept by interval_accumulate. They may have wrapped apart: low > upp says
// that the sum is around an integer.
RNS_INLINE bool advance(IntervalSearch& search, Bounds sum, const IntervalGoal& goal) {
  sum = {sum.low - 1.0, sum.upp - 1.0};
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
