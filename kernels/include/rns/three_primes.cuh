// Remainders modulo m of integers that are known modulo three primes, by mixed-radix conversion.
#pragma once

#include "modular.cuh"

namespace rns {

// Primes p0 < p1 < p2 < 2^31 as p - 1, and the inverses of p0 and p1 modulo those after them.
struct ThreePrimes {
  u32 last[3];
  Factor inverse01;
  Factor inverse02;
  Factor inverse12;
};
static_assert(sizeof(ThreePrimes) == 9 * sizeof(u32), "a row of a table");

// A modulus m with |p0| and |p0 p1| modulo m.
struct PrimeWeights {
  Modulus modulus;
  u32 first;
  u32 second;
};
static_assert(sizeof(PrimeWeights) == 6 * sizeof(u32), "a row of a table");

// |X| mod m of the X < p0 p1 p2 with these residues. The digits d < 2^31 of X = d0 + d1 p0 + d2 p0 p1 are
// below the primes after their own, so that no step reduces them; and d0 + d1 |p0| + d2 |p0 p1| < 2^32 m.
RNS_INLINE u32 three_prime_remainder(u32 x0, u32 x1, u32 x2, const ThreePrimes& p, const PrimeWeights& w) {
  const u32 d1 = mod_mul(mod_sub(x1, x0, p.last[1]), p.inverse01, p.last[1]);
  const u32 rest = mod_mul(mod_sub(x2, x0, p.last[2]), p.inverse02, p.last[2]);
  const u32 d2 = mod_mul(mod_sub(rest, d1, p.last[2]), p.inverse12, p.last[2]);
  return mod_reduce(x0 + static_cast<u64>(d1) * w.first + static_cast<u64>(d2) * w.second, w.modulus);
}

}  // namespace rns
