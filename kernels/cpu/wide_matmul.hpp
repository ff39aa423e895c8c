// Products of matrices modulo one m < 2^64, for the kernels that are made of them.
#pragma once

#include "matmul.hpp"
#include "wide.hpp"

namespace rns {

// Words that products in double precision work in.
constexpr i64 kDoublesSpace = 5 * (2 * (96 * 136 + 8) + 96 * 96) + 128;

// Whether this processor multiplies a shape more quickly in double precision.
bool is_for_doubles(Shape shape);

inline i64 product_space(WideView, Shape shape) {
  return is_for_doubles(shape) ? kDoublesSpace : kProductDepth * kProductWidth;
}

// Adds the product of two matrices, modulo m, to `out`, (rows, columns) contiguous. `space` is memory of
// `product_space` words.
void add_product(WideView a, WideView b, Shape shape, WideModulus m, u64* space, u64* out);

// The same in double precision.
void add_product_by_doubles(WideView a, WideView b, Shape shape, WideModulus m, u64* space, u64* out);

// Sum of the products of two vectors modulo m.
u64 dot_product(const u64* a, const u64* b, i64 terms, WideModulus m);

}  // namespace rns
