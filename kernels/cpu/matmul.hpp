// Products of matrices modulo one m, for the kernels that are made of them.
#pragma once

#include "residues.hpp"
#include "rns/product_sum.cuh"

namespace rns {

// Terms of a tile of the second matrix, and its columns.
constexpr i64 kProductDepth = kProductTerms;
constexpr i64 kProductWidth = 128;

// A matrix of residues modulo one m, of any layout.
template <class Word>
struct MatrixView {
  const Word* data;
  i64 row_step;
  i64 column_step;

  const Word* at(i64 row, i64 column) const { return data + row * row_step + column * column_step; }
};
using View = MatrixView<u32>;
using WideView = MatrixView<u64>;

// Of a product: (rows, terms) times (terms, columns).
struct Shape {
  i64 rows;
  i64 terms;
  i64 columns;
};

// Words of memory that `add_product` needs.
inline i64 product_space(View, Shape) { return kProductDepth * kProductWidth; }

// Adds the product of two matrices, modulo m, to `out`, (rows, columns) contiguous. `panel` is memory of
// `product_space` words.
void add_product(View a, View b, Shape shape, Modulus m, u32* panel, u32* out);

// Sum of the products of two vectors modulo m.
u32 dot_product(const u32* a, const u32* b, i64 terms, Modulus m);

}  // namespace rns
