// Products of a table of constants with columns of 32-bit terms, one number a thread: what conversions and
// base extension spend their time on.
#pragma once

#include <rns/product_sum.cuh>

namespace rns {

// Results of a table that a thread accumulates at a time; a table's rows are padded to a multiple of it.
constexpr i32 kResults = 8;

struct Sums {
  ProductSum of[kResults];
};

// A table of constants: row r holds what term r contributes to each result.
struct Table {
  const u32* data;
  i32 padded;  // results in a row

  // Adds the products of a term with its contributions to the results from `first` on.
  __device__ void add(Sums& sums, u32 term, i32 row, i32 first) const {
    const uint4* results = reinterpret_cast<const uint4*>(data + static_cast<i64>(row) * padded + first);
    const uint4 a = __ldg(results);
    const uint4 b = __ldg(results + 1);
    sums.of[0].add(term, a.x);
    sums.of[1].add(term, a.y);
    sums.of[2].add(term, a.z);
    sums.of[3].add(term, a.w);
    sums.of[4].add(term, b.x);
    sums.of[5].add(term, b.y);
    sums.of[6].add(term, b.z);
    sums.of[7].add(term, b.w);
  }
  // The same of the terms of `rows` rows from `row` on; term(k) gives the k-th of them.
  template <class Term>
  __device__ void add(Sums& sums, i32 row, i32 rows, i32 first, Term term) const {
    for (i32 k = 0; k < rows; ++k) add(sums, term(k), row + k, first);
  }
};

}  // namespace rns
