// Matrices modulo m_i split into matrices of 8-bit residues modulo small moduli, and sums of products of
// these joined to residues modulo m_i. Both go through memory once; the products between are a library's.
#include <rns/int8_product.cuh>

#include "grid.cuh"
#include "stack.cuh"

using namespace rns;

namespace {

constexpr i32 kBlock = 256;
constexpr i32 kRows = 32;      // of a tile that is split
constexpr i32 kColumns = 128;  // four for each thread of a warp
constexpr i32 kWide = 4;       // numbers that a thread packs into a word

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
  i64 padded_rows;  // of the 8-bit matrices and of the sums, multiples of 16
  i64 padded_columns;
  SmallModulus small[kSmallModuli];
  i32 small_count;
};

// The block's own part of the window of matrix t.
__device__ Window window_of(const Int8Task& s, i64 t) {
  const i64 row = s.row_start.of(t) + s.row, column = s.column_start.of(t) + s.column;
  return {row, min(s.row_end.of(t), row + s.rows), column, min(s.column_end.of(t), column + s.columns)};
}

}  // namespace

extern "C" {

// parts: (count, small_count, padded_rows, padded_columns).
__global__ void __launch_bounds__(kBlock, 5) int8_split(Int8Task s, const Recombination* moduli, u32* parts) {
  __shared__ i32 tile[kColumns][kRows + 1];
  const i64 down = (s.padded_rows + kRows - 1) / kRows, across = (s.padded_columns + kColumns - 1) / kColumns;
  const i32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (i64 n = blockIdx.x; n < s.count * down * across; n += gridDim.x) {
    const i64 column = n % across * kColumns, row = n / across % down * kRows, t = n / (across * down);
    const i64 i = (s.first + t) / s.batch, b = (s.first + t) % s.batch;
    const Window w = window_of(s, s.first + t);
    const u32* x = s.x.of(i, b) + (w.row + row) * s.x.stride + (w.column + column) * s.x.step;
    const i64 rows = w.row_end - w.row - row, columns = w.column_end - w.column - column;
    const u32 last = moduli[i].modulus.last;
    __syncthreads();  // the tile before is done with
    // Neighbouring threads take numbers that are neighbours in memory.
    const bool is_turned = s.x.step != 1;
#pragma unroll 8
    for (i32 k = 0; k < kRows * kColumns / kBlock; ++k) {
      const i32 place = k * kBlock + threadIdx.x;
      const i32 r = is_turned ? place % kRows : place / kColumns;
      const i32 c = is_turned ? place / kRows : place % kColumns;
      tile[c][r] = r < rows && c < columns ? centred(x[r * s.x.stride + c * s.x.step], last) : 0;
    }
    __syncthreads();
    const i64 size = s.padded_rows * s.padded_columns;
    if (column + lane * kWide < s.padded_columns) {
      for (i32 r = warp; r < kRows && row + r < s.padded_rows; r += kBlock / 32) {
        i32 own[kWide];
#pragma unroll
        for (i32 c = 0; c < kWide; ++c) own[c] = tile[lane * kWide + c][r];
        const i64 place = t * s.small_count * size + (row + r) * s.padded_columns + column + lane * kWide;
#pragma unroll
        for (i32 j = 0; j < kSmallModuli; ++j) {
          if (j >= s.small_count) break;
          const SmallModulus q = s.small[j];
          u32 word = 0;
#pragma unroll
          for (i32 c = 0; c < kWide; ++c) word |= (small_residue(own[c], q) & 0xffu) << (8 * c);
          parts[(place + j * size) / kWide] = word;
        }
      }
    }
  }
}

// sums: (count, small_count, padded_rows, padded_columns), of which those of the block go to
// the windows of s.x: what is there is replaced, added to, or lessened.
__global__ void __launch_bounds__(kBlock)
    int8_join(Int8Task s, const Recombination* moduli, const i32* sums, i32 mode) {
  const i64 groups = (s.columns + kWide - 1) / kWide, size = s.padded_rows * s.padded_columns;
  for (i64 k = thread_index(); k < s.count * s.rows * groups; k += thread_count()) {
    const i64 column = k % groups * kWide, row = k / groups % s.rows, t = k / (groups * s.rows);
    const i64 i = (s.first + t) / s.batch, b = (s.first + t) % s.batch;
    const Window w = window_of(s, s.first + t);
    if (w.row + row >= w.row_end) continue;
    const i32* from = sums + t * s.small_count * size + row * s.padded_columns + column;
    const Recombination& m = moduli[i];
    SmallResidues results[kWide];
#pragma unroll
    for (i32 j = 0; j < kSmallModuli; ++j) {
      if (j < s.small_count) {
        const int4 sum = *reinterpret_cast<const int4*>(from + j * size);
        const SmallModulus q = s.small[j];
        const i32 weight = m.weights[j];
        results[0].add(sum.x, q, weight);
        results[1].add(sum.y, q, weight);
        results[2].add(sum.z, q, weight);
        results[3].add(sum.w, q, weight);
      }
    }
    u32* out = const_cast<u32*>(s.x.of(i, b)) + (w.row + row) * s.x.stride + w.column + column;
#pragma unroll
    for (i32 c = 0; c < kWide; ++c) {
      if (w.column + column + c < w.column_end) {
        const u32 found = results[c].reduce(m.modulus, m.weights[kSmallModuli]);
        out[c] = mode == 0  ? found
                 : mode > 0 ? mod_add(out[c], found, m.modulus.last)
                            : mod_sub(out[c], found, m.modulus.last);
      }
    }
  }
}

}  // extern "C"
