// What kernels share that work on one number each of several matrices or systems in step.
#pragma once

#include <vector>

#include "residues.hpp"
#include "rns/matrix.cuh"

namespace rns {

// Words of a vector.
constexpr i64 kLanes = 16;

// kLanes numbers, each of a matrix of its own.
struct alignas(64) Vector {
  u32 of[kLanes];
};

// What products modulo kLanes odd primes take; `square` and `cube` are R^2 and R^3, for R = 2^32.
struct Primes {
  Vector m, inverse, square, cube, last;

  RNS_INLINE Montgomery at(i64 lane) const { return {m.of[lane], inverse.of[lane], 0, cube.of[lane]}; }
  void set(i64 lane, Montgomery prime);
};

// The moduli of the rows of a table, as many as there are rows of residues.
std::vector<Montgomery> odd_moduli(const Table32& table, i64 rows);

// Inverses of kLanes numbers, each modulo its prime; what is 0 stays 0.
void invert_together(u32* values, const u32* last);

// |a b / R|.
void multiply(const Vector& a, const Vector& b, const Primes& primes, Vector& out);

// kLanes matrices of one layout, each modulo its prime.
struct Group {
  const u32* data[kLanes];
  i64 row_step;
  i64 column_step;

  // Writes the words of all to vectors, `stride` of them a row.
  void load(i64 rows, i64 columns, i64 stride, Vector* out) const;
};

// The matrices of a stack (n, count, rows, columns) from number `first` on, the last one again where there
// are fewer; sets the primes, of n moduli.
using Stack = nb::ndarray<const u32, nb::ndim<4>, nb::device::cpu>;
Group group_of(const Stack& x, i64 first, const std::vector<Montgomery>& moduli, Primes& primes);

// Vectors that lie in rows and columns: that of term m of sum q is data[m term_step + q step].
struct Terms {
  const Vector* data;
  i64 term_step;
  i64 step;
};

// out[q out_step] = |out[q out_step] - the sum of `terms` products of factors[m] and term m of sum q / R|, of
// `count`. The sums are reduced once.
void subtract_sums(const Vector* factors, Terms x, i64 terms, i64 count, const Primes& primes, Vector* out,
                   i64 out_step);

}  // namespace rns
