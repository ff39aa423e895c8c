// 64-bit fixed-point evaluations ("keys") of one tile of numbers.
#pragma once

#include "residues.hpp"

namespace rns {

// keys[j] = start + sum of residue(i, first + j) c[i], modulo 2^64, for width <= kTile numbers. If row_sums
// is given, the tile's residues modulo m_i are added to row_sums[i] while they are in cache.
void evaluate_keys(const Residues& residues, const u64* c, u64 start, i64 first, i64 width, u64* keys,
                   u64* row_sums = nullptr);

u64 sum_row(const u32* x, i64 width);

}  // namespace rns
