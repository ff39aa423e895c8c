// Products of a table of constants with columns of 32-bit terms, a tile of numbers at a time with the numbers
// side by side: what conversions and base extension spend their time on.
#pragma once

#include <vector>

#include "residues.hpp"
#include "rns/product_sum.cuh"

namespace rns {

// Numbers in a tile. Its terms, limbs or residues, are read once for each result, so they should stay
// in the first-level cache: 64 numbers of 64 terms are 16 KiB.
constexpr i64 kNumbers = 64;

// One term, or one result, of each number.
struct alignas(64) Row {
  u32 x[kNumbers];
};

struct alignas(64) SumRow {
  u64 low[kNumbers];
  u64 high[kNumbers];

  RNS_INLINE ProductSum at(i64 j) const { return {low[j], high[j]}; }
};

// A table of constants: row r holds what term r contributes to each result.
struct Table {
  const u32* data;
  i64 rows;
  i64 stride;

  explicit Table(const Table32& array)
      : data(array.data()), rows(static_cast<i64>(array.shape(0))), stride(array.stride(0)) {}

  // The sum of the products of all terms of `width` numbers with their contributions to one result.
  void sum(const std::vector<Row>& terms, i64 result, i64 width, SumRow& sums) const;
};

}  // namespace rns
