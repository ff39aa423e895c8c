// 64-bit fixed-point evaluations ("keys") of one tile of numbers.
#pragma once

#include "residues.hpp"
#include "rns/modular.cuh"

namespace rns {

// While rows of residues are added, the sums of keys are in an order of their own: within each full block of
// 16 numbers, those of the even ones come before those of the odd ones, for so vector instructions multiply
// them without a shuffle.

// How residues are added to keys: each instruction set has a way, and all give the same keys.
enum class KeyMethod { kPortable, kAvx2, kAvx512, kWholeProducts };

bool is_supported(KeyMethod method);

// The quickest of those that this processor supports.
KeyMethod best_key_method();

// How numbers are taken where each of their residues is read once.
struct KeyTiles {
  i64 length;
  i64 ahead;  // as of KeyRows
};
KeyTiles key_tiles(i64 moduli);

// Rows of residues that are `stride` apart, each with its coefficient.
struct KeyRows {
  const u32* x;
  i64 stride;
  const u64* c;
  i64 ahead = 0;        // numbers so far on in each row are brought near; 0: where blocks are taken in turn
  u64* sums = nullptr;  // if given, each row's residues are added to its sum
};

// Adds residue(i, j) c[i] to the sum of each number j < width, for `count` rows. A part of a longer strip
// must start at a multiple of 16.
void add_to_keys(KeyRows rows, i64 count, i64 width, u64* keys, KeyMethod method = best_key_method());

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
  u64 *x_keys, *y_keys;
};
void add_keyed(const KeyedSum& sum, i64 rows, i64 width);

// The keys, start included, in the numbers' own order.
void finish_keys(const u64* sums, u64 start, i64 width, u64* keys);

// The sums of residue(i, first + j) c[i] for `width` numbers, not in the numbers' own order. If
// row_sums is given, the tile's residues modulo m_i are added to row_sums[i] in the same pass.
void sum_keys(const Residues& residues, const u64* c, i64 first, i64 width, u64* sums,
              u64* row_sums = nullptr);

// keys[j] = start + sum of residue(i, first + j) c[i], modulo 2^64, for width <= kTile numbers.
void evaluate_keys(const Residues& residues, const u64* c, u64 start, i64 first, i64 width, u64* keys);

u64 sum_row(const u32* x, i64 width);

}  // namespace rns
