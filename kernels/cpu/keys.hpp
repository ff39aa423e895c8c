// 64-bit fixed-point evaluations ("keys") of one tile of numbers.
#pragma once

#include "residues.hpp"
#include "rns/modular.cuh"

namespace rns {

// The running sums of kWidth keys while rows of residues are added: two lanes each (rns/keys.cuh).
// Within each full block of 16 numbers, the low lanes of the even ones come before those of the odd ones, for
// so vector instructions multiply them without a shuffle.
template <i64 kWidth>
struct KeyLanes {
  alignas(64) u64 low[kWidth];
  alignas(64) u32 high[kWidth];
};

// Adds residue(i, j) c[i] to the sum of each number j < width, for `rows` rows that are `stride` apart. A
// part of a longer strip must start at a multiple of 16. As many rows from `next` on are those to come; where
// that is not known, `next` is x.
void add_to_keys(const u32* x, const u32* next, i64 stride, i64 rows, const u64* c, i64 width, u64* low,
                 u32* high);

// What add_to_keys does for two arrays, together with the sums (differences) of their residues modulo each
// m_i, so that each residue is loaded once.
struct KeyedSum {
  bool subtract;
  const u32 *x, *y;
  i64 x_stride, y_stride;
  const u64* c;
  const Modulus* moduli;
  u32* out;
  i64 out_stride;
  u64 *x_low, *y_low;
  u32 *x_high, *y_high;
};
void add_keyed(const KeyedSum& sum, i64 rows, i64 width);

// The keys, start included, in the numbers' own order.
void finish_keys(const u64* low, const u32* high, u64 start, i64 width, u64* keys);

// keys[j] = start + sum of residue(i, first + j) c[i], modulo 2^64, for width <= kTile numbers. If row_sums
// is given, the tile's residues modulo m_i are added to row_sums[i] while they are in cache.
void evaluate_keys(const Residues& residues, const u64* c, u64 start, i64 first, i64 width, u64* keys,
                   u64* row_sums = nullptr);

u64 sum_row(const u32* x, i64 width);

}  // namespace rns
