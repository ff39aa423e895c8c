// Products of matrices modulo one m < 2^64, for the kernels that are made of them.
#pragma once

#include "matmul.hpp"
#include "wide.hpp"

namespace rns {

// Adds the product of two matrices, modulo m, to `out`, (rows, columns) contiguous. `panel` is memory of
// kProductDepth * kProductWidth words.
void add_product(WideView a, WideView b, Shape shape, WideModulus m, u64* panel, u64* out);

// Sum of the products of two vectors modulo m.
u64 dot_product(const u64* a, const u64* b, i64 terms, WideModulus m);

}  // namespace rns
