// Elimination modulo odd primes of whole matrices in shared memory: a block for each, with a thread for each
// row.
#include "eliminate_rows.cuh"

using namespace rns;

namespace {

constexpr i32 kMostRows = 256;  // of a whole matrix
constexpr i32 kMostWarps = 32;  // of small matrices on a multiprocessor
constexpr i32 kTile = 32;       // columns of pivots' rows that are in shared memory
constexpr i32 kLoads = 32;      // words that a thread reads at once

// Copies a matrix of any layout to shared memory, all that a thread reads of a column at once.
__device__ void copy_in(const Elimination& e, i64 t, u32* x, i32 width) {
  const i32 rows = static_cast<i32>(e.rows), columns = static_cast<i32>(e.columns);
  const i32 lane = threadIdx.x % kRow, warp = threadIdx.x / kRow, warps = blockDim.x / kRow;
  for (i32 j = lane; j < columns; j += kRow) {
    for (i32 top = warp; top < rows; top += kLoads * warps) {
      const u32* from = e.x.of(t / e.count, t % e.count) + j * e.x.step + top * e.x.stride;
      u32 words[kLoads];
#pragma unroll
      for (i32 k = 0; k < kLoads; ++k) {
        words[k] = top + k * warps < rows ? *from : 0u;
        from += warps * e.x.stride;
      }
#pragma unroll
      for (i32 k = 0; k < kLoads; ++k) {
        if (top + k * warps < rows) x[(top + k * warps) * width + j] = words[k];
      }
    }
  }
}

// Writes an echelon form with its factors, and the factors P, L and U, of these what there is memory for.
__device__ void write_out(const Elimination& e, i64 t, const u32* x, i32 width) {
  const i32 rows = static_cast<i32>(e.rows), columns = static_cast<i32>(e.columns);
  const i32 least = min(rows, columns), most = max(rows, columns);
  const i32 lane = threadIdx.x % kRow, warp = threadIdx.x / kRow, warps = blockDim.x / kRow;
  const bool has_factors = e.upper != nullptr, is_wanted = e.out != nullptr;
  u32* out = e.out + t * rows * columns;
  u32* permutation = e.permutation + t * rows * rows;
  u32* lower = e.lower + t * rows * least;
  u32* upper = e.upper + t * least * columns;
  for (i32 j = lane; j < most; j += kRow) {
    const i32 source = has_factors && j < rows ? e.order[t * rows + j] : -1;
#pragma unroll 4
    for (i32 r = warp; r < rows; r += warps) {
      const u32 word = j < columns ? x[r * width + j] : 0u;
      const bool is_below = j < r;
      if (is_wanted && j < columns) out[r * columns + j] = word;
      if (has_factors && j < rows) permutation[r * rows + j] = source == r;
      if (has_factors && j < least) lower[r * least + j] = is_below ? word : j == r;
      if (has_factors && r < least && j < columns) upper[r * columns + j] = is_below ? 0u : word;
    }
  }
}

template <i32 Words>
__device__ __forceinline__ void write_words(u32* to, const u32 (&x)[Words]) {
  if constexpr (Words == 4) {
    write_four(to, x);
  } else {
    to[0] = x[0];
  }
}

// The same of a matrix of one panel and one warp, whose rows are still to be divided and taken to their
// places: each lane has so many words of a row at once, in the same columns of each row. Rows and columns are
// multiples of Words, and results, arrays of their own, begin at multiples of 16 bytes.
template <i32 Words>
__device__ __forceinline__ void divide_and_write(const Elimination& e, i64 t, i32 rank, const Board& board,
                                                 const u32* x, i32 width, Montgomery m) {
  const i32 rows = static_cast<i32>(e.rows), columns = static_cast<i32>(e.columns);
  const i32 least = min(rows, columns), lane = threadIdx.x;
  const i32 top = lane * Words / kRow, left = lane * Words % kRow;
  const bool has_factors = e.upper != nullptr, is_wanted = e.out != nullptr;
  const i32 order = lane < rows ? e.order[t * rows + lane] : 0;
  u32* out = e.out + t * rows * columns + left;
  u32* to_permutation = e.permutation + t * rows * rows + left;
  u32* to_lower = e.lower + t * rows * least + left;
  u32* to_upper = e.upper + t * least * columns + left;
  // Factors of pivot j stand in its column, and go to column j.
  i32 source[Words], column[Words], number[Words];
  u32 factor[Words];
#pragma unroll
  for (i32 c = 0; c < Words; ++c) {
    const i32 j = left + c;
    source[c] = __shfl_sync(kAll, order, j);
    column[c] = j < rank ? board.column[j] : j;
    factor[c] = j < rank ? board.factors[column[c]] : 0u;
    number[c] = board.number[j];
  }
#pragma unroll 1
  for (i32 r = top; r < rows; r += Words) {
    const u32* row = x + __shfl_sync(kAll, order, r) * width;
    const u32 scale = r < rank ? board.scales[r] : 0u;
    u32 words[Words], lower[Words], upper[Words], permutation[Words];
#pragma unroll
    for (i32 c = 0; c < Words; ++c) {
      const i32 j = left + c;
      const bool is_below = j < r;
      const u32 word = j < columns ? row[is_below ? column[c] : j] : 0u;
      words[c] = montgomery_mul(is_below ? factor[c] : number[c] >= r ? scale : 0u, word, m);
      lower[c] = is_below ? words[c] : j == r;
      upper[c] = is_below ? 0u : words[c];
      permutation[c] = source[c] == r;
    }
    if (is_wanted && left < columns) write_words(out + r * columns, words);
    if (!has_factors) continue;
    if (left < rows) write_words(to_permutation + r * rows, permutation);
    if (left < least) write_words(to_lower + r * least, lower);
    if (left < columns && r < least) write_words(to_upper + r * columns, upper);
  }
}

extern __shared__ uint4 memory[];

// Whole matrices, with memory for `Right` unless Tile is 0.
template <i32 Tile>
__device__ __forceinline__ void eliminate_matrices(const Elimination& e) {
  const i32 rows = static_cast<i32>(e.rows), columns = static_cast<i32>(e.columns);
  const i32 width = columns | 1;  // against conflicts of banks
  Board& board = *reinterpret_cast<Board*>(memory);
  Right<Tile>& right = *reinterpret_cast<Right<Tile>*>(&board + 1);
  u32* x = Tile > 0 ? reinterpret_cast<u32*>(&right + 1) : reinterpret_cast<u32*>(&board + 1);
  const bool is_wanted = e.out != nullptr || e.upper != nullptr;
  for (i64 t = blockIdx.x; t < e.moduli_count * e.count; t += gridDim.x) {
    copy_in(e, t, x, width);
    __syncthreads();
    const Modulus m = e.moduli[t / e.count];
    Matrix<i32> w = {x, width, rows, columns, e.order + t * rows, e.pivots + t * e.most, 0, 1u};
    eliminate_columns<Tile>(w, 0, static_cast<i32>(e.stop), columns, is_wanted, m, board, right, nullptr);
    if (is_wanted && Tile > 0) write_out(e, t, x, width);
    if (is_wanted && Tile == 0) {
      if (rows % 4 == 0 && columns % 4 == 0) {
        divide_and_write<4>(e, t, w.rank, board, x, width, montgomery_of(m));
      } else {
        divide_and_write<1>(e, t, w.rank, board, x, width, montgomery_of(m));
      }
    }
    if (threadIdx.x == 0) e.products[t] = w.product;
    __syncthreads();  // before the memory is another matrix's
  }
}

}  // namespace

extern "C" {

// Matrices of one panel, and one warp.
__global__ void __launch_bounds__(kRow, kMostWarps) eliminate_small(Elimination e) {
  eliminate_matrices<0>(e);
}

// Those of at most as many rows as there are threads.
__global__ void __launch_bounds__(kMostRows) eliminate_whole(Elimination e) { eliminate_matrices<kTile>(e); }

}  // extern "C"
