// Resultants and greatest common divisors of polynomials modulo a prime p <= 2^32, by Euclid's algorithm on
// coefficients in the place of Sylvester's matrix.
#pragma once

#include "matrix.cuh"

namespace rns {

// |a x + b y + c z| modulo p < 2^31, for residues. The sum is below 3 p^2; 2^31 p less it is below 2^32 p.
RNS_INLINE u32 combined_narrow(u32 a, u32 x, u32 b, u32 y, u32 c, u32 z, Modulus m) {
  const u64 sum = static_cast<u64>(a) * x + static_cast<u64>(b) * y + static_cast<u64>(c) * z;
  const u64 less = sum - ((static_cast<u64>(m.last) + 1) << 31);
  return mod_reduce(less < sum ? less : sum, m);
}

// The same modulo any p.
RNS_INLINE u32 combined_wide(u32 a, u32 x, u32 b, u32 y, u32 c, u32 z, Modulus m) {
  return mod_add(mod_muladd(a, x, b, y, m), mod_mul(c, z, m), m.last);
}

// The factors of a division of f by g, of degrees n + 1 and n, without an inverse:
// |scale f + (linear x + constant) g| is of degree n - 1, and scale is the square of g's leading coefficient.
struct DivisionFactors {
  u32 scale;
  u32 linear;
  u32 constant;
};

RNS_INLINE DivisionFactors division_factors(u32 f_top, u32 f_next, u32 g_top, u32 g_next, Modulus m) {
  const u32 product = mod_mul(f_top, g_top, m);
  return {mod_mul(g_top, g_top, m), mod_sub(0u, product, m.last),
          mod_mulsub(f_top, g_next, f_next, g_top, m)};
}

// What is known of the leading coefficients of divisors that are divided by side by side.
enum class Leading { kZero, kNonzero, kMixed };

// Of polynomials f and g of formal degrees m >= n >= 0, whose leading coefficients may be 0, finds the
// resultant R(m, n), the determinant of Sylvester's matrix of m + n rows, as numerator / denominator: but for
// rows of one divisor each nothing is inverted. It is 0 where both leading coefficients are. False if pairs
// that are computed side by side go different ways, so that each must be computed alone.
//
// With c the leading coefficient of g, and that of f called b (G. Collins, "The calculation of multivariate
// polynomial resultants", J. ACM 18, 1971, has the same in other terms):
//   c = 0:  R(m, n) = b R(m, n - 1).
//   c != 0: h = c^d f - q g has formal degree n - 1, for d = m - n + 1, and
//           R(m, n) = (-1)^(n d) c^(d (1 - n)) R(n, n - 1) of g and h;
//           or h = f - q g, and then R(m, n) = (-1)^(n d) c^d R(n, n - 1).
// The power of c^d by 1 - n divides by the product of all these c^d once for each degree that g loses after,
// down to 1: that is what `weight` and `lower` do.
//
// Pair has m, n, and is_negative, the sign, and does the rest for one pair, or many with the same m and n:
//   leading()   of g
//   scale()     numerator *= b
//   lower()     n -= 1, and denominator *= weight unless n is 0
//   divide_once(), divide_twice()   f becomes h for d = 1 and 2, and weight *= c^d
//   divide()    f becomes f - q g, and numerator *= c^d
//   exchange()  f is g, and g is f, of formal degree m = n
//   finish()    numerator *= c^m, for n = 0
//   clear()     numerator = 0
// At the end g is a constant, and not 0, or n is 0 and f is the greatest common divisor, of degree m.
template <class Pair>
RNS_INLINE bool remainder_sequence(Pair& pair) {
  while (true) {
    const Leading leading = pair.leading();
    if (leading == Leading::kMixed) return false;
    if (pair.n == 0) {
      if (leading == Leading::kNonzero)
        pair.finish();
      else if (pair.m > 0)
        pair.clear();
      return true;
    }
    if (leading == Leading::kZero) {
      pair.scale();
      pair.lower();
      continue;
    }
    const i64 d = pair.m - pair.n + 1;
    if (pair.n & d & 1) pair.is_negative = !pair.is_negative;
    if (d == 1)
      pair.divide_once();
    else if (d == 2)
      pair.divide_twice();
    else
      pair.divide();
    pair.exchange();
    pair.lower();
  }
}

}  // namespace rns
