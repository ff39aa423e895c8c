// MAX as K. Isupov, "High-Performance Computation in Residue Number System Using Floating-Point Arithmetic",
// Computation 9(2):9, 2021, describes it, for scripts/bench_paper.py to compare with. The product uses none
// of this. The names of the algorithms are the paper's. As there, the number of moduli is known to the
// compiler, and they ascend.
#pragma once

#include <rns/interval.cuh>
#include <rns/mixed_radix.cuh>

#ifndef RNS_MODULI
#define RNS_MODULI 8
#endif

// Unlike RNS_INLINE it leaves it to the compiler what to inline.
#if defined(__CUDACC__)
#define RNS_FUNCTION __host__ __device__ inline
#define RNS_PRAGMA(text) _Pragma(#text)
#define RNS_UNROLL(times) RNS_PRAGMA(unroll times)
#else
#define RNS_FUNCTION inline
#define RNS_UNROLL(times)
#endif

namespace rns {

constexpr i32 kModuli = RNS_MODULI;
static_assert(kModuli > 1 && (kModuli & (kModuli - 1)) == 0, "the pairwise sums are for powers of two");

// How far loops over the moduli are unrolled. Whole loops are for small sets only, whose numbers stay in
// registers: for others they take the compiler minutes and spill.
constexpr i32 kUnroll = kModuli > 16 ? 8 : kModuli;

// A number with an exponent of its own, since X/M may be far below the range of doubles: the fraction is in
// [1, 2), or it is 0 with the least exponent.
struct Extended {
  double fraction;
  i64 exponent;
};

RNS_FUNCTION Extended extended(double x, i64 exponent) {
  if (x == 0.0) return {0.0, -0x7fffffffffffffffll};
  const i64 power = (double_bits(x) >> 52) - 1023;
  return {double_of_bits(double_bits(x) - power * (1ll << 52)), exponent + power};
}

RNS_FUNCTION bool is_less(const Extended& a, const Extended& b) {
  return a.exponent != b.exponent ? a.exponent < b.exponent : a.fraction < b.fraction;
}

// An element of the array Eval: 40 bytes, as in the paper. The index -1 stands for no number.
struct Evaluation {
  Extended low;
  Extended upp;
  i64 index;
};

RNS_FUNCTION Evaluation no_evaluation() { return {{0.0, 0}, {0.0, 0}, -1}; }

// The mixed-radix digits of a number.
struct DigitRecord {
  u32 digit[kModuli];
  i64 index;
};

// What the moduli determine: the tables of the product's own constants, the paper's psi and k, and 1/M
// rounded down.
struct PaperTables {
  const u32* last;
  const Factor* inverses;  // w_i, `blocks` apart
  i64 blocks;
  const Factor* powers;  // 2^k for k < kPowers
  const Bounds* reciprocals;
  const Factor* mixed_radix;  // |1/m_j| modulo m_i from inverse_row(i) on
  double psi;
  Extended least;
  i32 factor;
};

// paper_baselines.py has the same layouts.
static_assert(sizeof(Evaluation) == 40 && sizeof(PaperTables) == 80 &&
              sizeof(DigitRecord) == 4 * kModuli + 8);

// ---- layouts ------------------------------------------------------------------------------------------

// One number's residues, `step` apart.
struct Number {
  const u32* data;
  i64 step;

  RNS_INLINE u32 operator[](i32 i) const { return data[i * step]; }
};

// Number after number: the paper's layout.
struct NumberAfterNumber {
  const u32* data;

  RNS_INLINE Number operator[](i64 j) const { return {data + j * kModuli, 1}; }
};

// Residue i of all numbers side by side: the layout that the paper plans, and the product's.
struct Interleaved {
  const u32* data;
  i64 count;

  RNS_INLINE Number operator[](i64 j) const { return {data + j, count}; }
};

RNS_FUNCTION bool are_equal(const Number& x, const Number& y) {
  RNS_UNROLL(kUnroll)
  for (i32 i = 0; i < kModuli; ++i) {
    if (x[i] != y[i]) return false;
  }
  return true;
}

// ---- mixed-radix conversion -----------------------------------------------------------------------------

// N. Szabo and R. Tanaka's: digit i leaves all later residues at once; n (n - 1) operations modulo m_i. A
// digit is below the moduli after its own, for they ascend.
RNS_FUNCTION void mixed_radix_digits(const Number& x, const PaperTables& t, u32* a) {
  RNS_UNROLL(kUnroll)
  for (i32 i = 0; i < kModuli; ++i) a[i] = x[i];
  RNS_UNROLL(kModuli > 8 ? 1 : kModuli)
  for (i32 j = 0; j + 1 < kModuli; ++j) {
    RNS_UNROLL(kUnroll)
    for (i32 i = j + 1; i < kModuli; ++i) {
      a[i] = mod_mul(mod_sub(a[i], a[j], t.last[i]), t.mixed_radix[inverse_row(i) + j], t.last[i]);
    }
  }
}

RNS_FUNCTION i32 compare_digits(const u32* a, const u32* b) {
  RNS_UNROLL(1)
  for (i32 i = kModuli - 1; i >= 0; --i) {
    if (a[i] != b[i]) return a[i] > b[i] ? 1 : -1;
  }
  return 0;
}

RNS_FUNCTION i32 compare_by_digits(const Number& x, const Number& y, const PaperTables& t) {
  u32 a[kModuli];
  u32 b[kModuli];
  mixed_radix_digits(x, t, a);
  mixed_radix_digits(y, t, b);
  return compare_digits(a, b);
}

RNS_FUNCTION u32 most_significant_digit(const Number& x, const PaperTables& t) {
  u32 a[kModuli];
  mixed_radix_digits(x, t, a);
  return a[kModuli - 1];
}

// ---- interval evaluation: Algorithm 1
// ----------------------------------------------------------------------

// One term u_i/m_i of a sum and the sum of two partial sums, all rounded down or all rounded up. The quotient
// is a product with the reciprocal, rounded the same way: one multiplication and one addition for each
// modulus and bound, the 4 n operations that the paper counts.
struct Down {
  static RNS_INLINE double term(u32 u, Bounds reciprocal) {
    return mul_down(exact_double(u), reciprocal.low);
  }
  static RNS_INLINE double add(double a, double b) { return add_down(a, b); }
};

struct Up {
  static RNS_INLINE double term(u32 u, Bounds reciprocal) { return mul_up(exact_double(u), reciprocal.upp); }
  static RNS_INLINE double add(double a, double b) { return add_up(a, b); }
};

// The sum of u_i/m_i, pairwise. Groups of eight terms are added in registers; partial[k] waits for the sum of
// as many groups, 2^k. A long loop is kept a loop: unrolled, it spills.
template <class Direction>
RNS_FUNCTION double sum_of_fractions(const u32* u, const Bounds* reciprocals) {
  constexpr i32 kGroup = kModuli < 8 ? kModuli : 8;
  constexpr i32 kGroups = kModuli / kGroup;
  double partial[kGroups];
  double sum = 0.0;
  RNS_UNROLL(kGroups > 2 ? 1 : kGroups)
  for (i32 g = 0; g < kGroups; ++g) {
    double term[kGroup];
    for (i32 i = 0; i < kGroup; ++i) {
      term[i] = Direction::term(u[g * kGroup + i], reciprocals[g * kGroup + i]);
    }
    for (i32 width = kGroup / 2; width > 0; width /= 2) {
      for (i32 i = 0; i < width; ++i) term[i] = Direction::add(term[2 * i], term[2 * i + 1]);
    }
    sum = term[0];
    i32 k = 0;
    for (; g >> k & 1; ++k) sum = Direction::add(partial[k], sum);
    partial[k] = sum;
  }
  return sum;
}

RNS_FUNCTION double fraction_of(double x) { return x - static_cast<double>(static_cast<i64>(x)); }

// Steps 15 to 25: doubles X r times a step until it is large enough, from the u_i of X and an upper bound.
// The factor r is k in the original algorithm; the improved one takes as much as the bound allows.
RNS_FUNCTION u32 refine(u32* u, double upp, bool improved, const PaperTables& t, Evaluation& result) {
  i64 exponent = 0;
  u32 steps = 0;
  while (upp < t.psi) {
    const i32 ceil_log2 = static_cast<i32>((double_bits(upp) - 1) >> 52) - 1022;
    const i32 r = improved && -(ceil_log2 + 1) > t.factor ? -(ceil_log2 + 1) : t.factor;
    RNS_UNROLL(kUnroll)
    for (i32 i = 0; i < kModuli; ++i) u[i] = mod_mul(u[i], t.powers[i * kPowers + r], t.last[i]);
    upp = fraction_of(sum_of_fractions<Up>(u, t.reciprocals));
    exponent -= r;
    ++steps;
  }
  const double low = fraction_of(sum_of_fractions<Down>(u, t.reciprocals));
  result.low = extended(low, exponent);
  result.upp = extended(upp, exponent);
  return steps;
}

// Bounds of X/M; returns the number of refinement steps.
RNS_FUNCTION u32 compute_eval(const Number& x, const PaperTables& t, bool improved, Evaluation& result) {
  u32 u[kModuli];
  RNS_UNROLL(kUnroll)
  for (i32 i = 0; i < kModuli; ++i) u[i] = mod_mul(x[i], t.inverses[i * t.blocks], t.last[i]);
  const double low = sum_of_fractions<Down>(u, t.reciprocals);
  const double upp = sum_of_fractions<Up>(u, t.reciprocals);
  result.low = extended(fraction_of(low), 0);
  result.upp = extended(fraction_of(upp), 0);
  if (upp == 0.0) return 0;
  if (static_cast<i64>(low) != static_cast<i64>(upp)) {
    if (most_significant_digit(x, t) != 0) {
      result.upp = extended(1.0, 0);  // (M - 1)/M, rounded up
      return 0;
    }
    result.low = t.least;
  }
  if (fraction_of(upp) >= t.psi) return 0;
  return refine(u, fraction_of(upp), improved, t, result);
}

// ---- comparison: Algorithm 4
// ---------------------------------------------------------------------------------

// The tests for no number come first, for its bounds mean nothing.
template <class Layout>
RNS_FUNCTION i32 compare_evaluations(const Evaluation& a, const Evaluation& b, const Layout& numbers,
                                     const PaperTables& t) {
  if (b.index < 0) return 1;
  if (a.index < 0) return -1;
  if (is_less(b.upp, a.low)) return 1;
  if (is_less(a.upp, b.low)) return -1;
  const Number x = numbers[a.index];
  const Number y = numbers[b.index];
  return are_equal(x, y) ? 0 : compare_by_digits(x, y, t);
}

// The naive way: both evaluations anew at each comparison of the numbers i and j, of which -1 is none.
template <class Layout>
RNS_FUNCTION i32 compare_naively(i64 i, i64 j, const Layout& numbers, const PaperTables& t) {
  if (j < 0) return 1;
  if (i < 0) return -1;
  Evaluation a;
  Evaluation b;
  compute_eval(numbers[i], t, true, a);
  compute_eval(numbers[j], t, true, b);
  a.index = i;
  b.index = j;
  return compare_evaluations(a, b, numbers, t);
}

}  // namespace rns
