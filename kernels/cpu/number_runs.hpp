// Numbers of operands that positional kernels copy together, and what these require of arrays of limbs.
#pragma once

#include "residues.hpp"

namespace rns {

// In runs of two cache lines: rows are often a great power of two apart, so that few lines of them fit the
// cache at once.
constexpr i64 kRun = 32;

// Whether arrays are the same numbers in memory, so that a product is a square.
inline bool are_same(const Matrix32& x, const Matrix32& y) {
  return x.data() == y.data() && x.shape(0) == y.shape(0) && x.shape(1) == y.shape(1) &&
         x.stride(0) == y.stride(0) && x.stride(1) == y.stride(1);
}

// The limbs of so many numbers, or of one for all.
inline Residues operand_rows(const Matrix32& array, i64 count) {
  const Residues rows(array);
  require(rows.count == count || rows.count == 1, "an operand must have the result's columns, or one column");
  require(rows.moduli > 0, "an operand must have a limb");
  return rows;
}

}  // namespace rns
