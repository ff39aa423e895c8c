// What kernels of products by 8-bit residues take: windows in stacks of matrices.
#pragma once

#include <rns/int8_product.cuh>

#include "stack.cuh"

namespace rns {

// A row or a column of each matrix of a stack, or the same of all.
struct Bound {
  const i32* each;
  i64 all;

  __device__ i64 of(i64 t) const { return each != nullptr ? each[t] : all; }
};

// The part of a matrix that is meant: rows and columns from the first up to the end.
struct Window {
  i64 row;
  i64 row_end;
  i64 column;
  i64 column_end;
};

// Matrix t of `count` is number t % batch of those modulo m_(t / batch), from `first` on.
struct Int8Task {
  Stack x;
  Bound row_start;  // the window: beyond it there are zeros, and nothing is written
  Bound row_end;
  Bound column_start;
  Bound column_end;
  i64 first;
  i64 count;
  i64 batch;
  i64 row;  // where a block begins in its window
  i64 column;
  i64 rows;  // of a block
  i64 columns;
  i64 padded_rows;  // of the 8-bit matrices that are written, and of sums; columns are multiples of 4
  i64 padded_columns;
  SmallModulus small[kSmallModuli];
  i32 small_count;
};

constexpr i32 kStep = 64;  // terms that lie together

// 8-bit matrices: where modulus 0 of the first matrix has term 0 of row 0, and how far on the next modulus
// (of the last one that of the next matrix), kStep terms and row are; some are before.
struct Image {
  i8* data;
  i64 plane;
  i64 step;
  i64 row;
};

// Residues of four numbers around 0 modulo q, times its factor if it has one, beside one another.
template <bool HasFactor>
__device__ u32 packed_parts(const i32* numbers, const SmallModulus& q) {
  u32 word = 0;
#pragma unroll
  for (i32 c = 0; c < 4; ++c) word |= (small_part<HasFactor>(numbers[c], q) & 0xffu) << (8 * c);
  return word;
}

// The same of parts of four numbers.
template <bool HasFactor>
__device__ u32 packed_parts(const NumberParts<HasFactor> (&numbers)[4], const SmallModulus& q) {
  u32 word = 0;
#pragma unroll
  for (i32 c = 0; c < 4; ++c) word |= (numbers[c].residue(q) & 0xffu) << (8 * c);
  return word;
}

// The block's own part of the window of matrix t.
__device__ inline Window window_of(const Int8Task& s, i64 t) {
  const i64 row = s.row_start.of(t) + s.row, column = s.column_start.of(t) + s.column;
  return {row, min(s.row_end.of(t), row + s.rows), column, min(s.column_end.of(t), column + s.columns)};
}

}  // namespace rns
