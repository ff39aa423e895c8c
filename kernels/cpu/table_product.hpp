// Products of a table of constants with columns of 32-bit terms, a tile of numbers at a time with the numbers
// side by side: what conversions and base extension spend their time on.
#pragma once

#include <vector>

#include "residues.hpp"
#include "rns/product_sum.cuh"

namespace rns {

// Numbers in a tile. Its terms, limbs or residues, are read once for every few results, so they should stay
// in the first-level cache: 64 numbers of 64 terms are 16 KiB.
constexpr i64 kNumbers = 64;

// Results that are summed together, so that each term is loaded once for all of them.
constexpr i64 kResults = 8;

// One term, or one result, of each number.
struct alignas(64) Row {
  u32 x[kNumbers];
};

struct alignas(64) SumRow {
  u64 low[kNumbers];
  u64 high[kNumbers];

  RNS_INLINE ProductSum at(i64 j) const { return {low[j], high[j]}; }
};

// How products are summed: each instruction set has a way, and all give the same sums, though not always as
// the same two lanes.
enum class SumMethod { kPortable, kAvx2, kAvx512 };

bool is_supported(SumMethod method);

// The quickest of those that this processor supports.
SumMethod best_sum_method();

// A table of constants: row r holds what term r contributes to each result.
class Table {
 public:
  explicit Table(const Table32& array, SumMethod method = best_sum_method());

  i64 rows() const { return rows_; }

  // The sums of the products of all terms of `width` numbers with their contributions to `results` of the
  // results, at most kResults, from `first` on. Terms past `width` are read, but their sums mean nothing.
  void sum(const std::vector<Row>& terms, i64 first, i64 results, i64 width, SumRow* sums) const;

 private:
  const u32* data_;
  i64 rows_;
  i64 stride_;
  SumMethod method_;
  std::vector<float> estimates_;  // the constants, scaled, for methods that estimate a sum besides
};

}  // namespace rns
