// Elimination modulo odd primes with a thread for each row (elimination_panel.cuh). Whole matrices lie in
// shared memory, a block for each; great ones where their results go, a cluster of RNS_CLUSTER blocks for
// each, which eliminates some columns.
//
// What is right of a panel loses a product of matrices: a thread has its row's factors in registers, and the
// pivots' rows are in shared memory.
#include "elimination.cuh"
#include "elimination_panel.cuh"

using namespace rns;

namespace {

constexpr i32 kMostRows = 256;       // of a whole matrix
constexpr i32 kMostWarps = 32;       // of small matrices on a multiprocessor
constexpr i32 kTile = 32;            // columns of pivots' rows that are in shared memory, of whole matrices
constexpr i32 kGreatTile = 128;      // the same of great ones
constexpr i32 kLoads = 32;           // words that a thread reads at once
constexpr i32 kRowWidth = kRow + 1;  // words of a row of a panel's copy, against conflicts of banks

// Shared memory for what is right of a panel: the pivots' factors, and their rows in some columns, in the
// order in which a thread has its factors.
template <i32 Tile>
struct Right {
  alignas(16) u32 lower[kRow][kRow];
  alignas(16) u32 upper[kRow][Tile];
};
template <>
struct Right<0> {};

// A matrix that is worked on, in rows of `width` words. Index is 32 bits in shared memory, else 64.
template <class Index>
struct Matrix {
  u32* x;
  Index width;
  i32 rows;
  i32 columns;
  i32* order;
  i32* pivots;
  i32 rank;
  u32 product;
};

// Copies a row of a panel, of which the thread has its own from there on.
__device__ __forceinline__ void copy_row(Panel& p, u32* to) {
  u32 x[kRow];
#pragma unroll
  for (i32 k = 0; k < kRow; ++k) x[k] = p.word(k);
#pragma unroll
  for (i32 k = 0; k < kRow; ++k) to[k] = x[k];
  p.row = to;
}

// Exchanges rows of what is left and right of a panel, whose own rows stay with their threads.
template <class Index>
__device__ void exchange_rows(const Matrix<Index>& w, const Panel& p, const Board& board) {
  if (!p.is_exchanged) return;
  const i32 thread = block_of_cluster() * blockDim.x + threadIdx.x, threads = kBlocks * blockDim.x;
  for (i32 k = 0; k < p.rank - p.first; ++k) {
    const i32 other = board.other[k], place = p.first + k;
    if (other < 0) continue;
    for (i32 j = thread; j < w.columns; j += threads) {
      if (j >= p.start && j < p.start + p.columns) continue;
      const u32 word = w.x[place * w.width + j];
      w.x[place * w.width + j] = w.x[other * w.width + j];
      w.x[other * w.width + j] = word;
    }
    if (thread == 0) {
      const i32 row = w.order[place];
      w.order[place] = w.order[other];
      w.order[other] = row;
    }
  }
}

// Takes a row to its place. Factors stand below the diagonal, left of the panel if pivots are missing.
template <class Index>
__device__ __forceinline__ void write_row(const Matrix<Index>& w, const Panel& p, const Board& board,
                                          const u32 (&x)[kRow]) {
  const i32 own = p.place - p.first, count = p.rank - p.first;
  const bool is_plain = p.first == p.start && count > 0 && board.column[count - 1] == count - 1;
  if (!p.is_row()) return;
  u32* row = w.x + p.place * w.width;
#pragma unroll
  for (i32 k = 0; k < kRow; ++k) {
    if (k < p.columns) row[p.start + k] = is_plain || board.number[k] >= own ? x[k] : 0u;
  }
  if (is_plain) return;
#pragma unroll
  for (i32 k = 0; k < kRow; ++k) {
    if (k < p.columns && board.number[k] < own) row[p.first + board.number[k]] = x[k];
  }
}

// Solves L y = b in some columns of the pivots' rows, from `left` up to `reach`, and writes y to shared
// memory.
template <i32 Tile, class Index>
__device__ void solve_tile(const Matrix<Index>& w, const Panel& p, const Board& board, Right<Tile>& right,
                           i32 left, i32 reach, Montgomery m) {
  const i32 count = p.rank - p.first;
  for (i32 j = threadIdx.x; j < Tile; j += blockDim.x) {
    u32 y[kRow];
#pragma unroll
    for (i32 k = 0; k < kRow; ++k) {
      y[k] = k < count && left + j < reach ? w.x[(p.first + k) * w.width + left + j] : 0u;
      right.upper[k][j] = 0;
    }
#pragma unroll
    for (i32 k = 0; k < kRow; ++k) {
      if (k < count) {
        CarriedSum sum;
#pragma unroll
        for (i32 i = 0; i < k; ++i) sum.add(right.lower[k][i], y[i]);
        if (k > 0) y[k] = mod_sub(y[k], sum.reduce(m), m.m - 1u);
        right.upper[board.column[k]][j] = y[k];
      }
    }
  }
}

// Subtracts from a row its factors times the pivots' rows, in the same columns.
template <i32 Tile>
__device__ __forceinline__ void subtract_product(u32* row, const u32 (&x)[kRow], const Right<Tile>& right,
                                                 i32 count, Montgomery m) {
#pragma unroll 1
  for (i32 j = 0; j < count; j += 4) {
    CarriedSum sums[4];
#pragma unroll
    for (i32 k = 0; k < kRow; ++k) {
      const uint4 u = *reinterpret_cast<const uint4*>(&right.upper[k][j]);
      sums[0].add(x[k], u.x);
      sums[1].add(x[k], u.y);
      sums[2].add(x[k], u.z);
      sums[3].add(x[k], u.w);
    }
#pragma unroll
    for (i32 c = 0; c < 4; ++c) {
      if (j + c < count) row[j + c] = mod_sub(row[j + c], sums[c].reduce(m), m.m - 1u);
    }
  }
}

// What is right of a panel, up to the column `reach`.
template <i32 Tile, class Index>
__device__ __forceinline__ void reduce_right(const Matrix<Index>& w, const Panel& p, const Board& board,
                                             u32 (&x)[kRow], Right<Tile>& right, i32 reach, Montgomery m) {
  const i32 count = p.rank - p.first;
  // Sums are divided by R^2: so that one factor of each product is multiplied by it.
#pragma unroll
  for (i32 k = 0; k < kRow; ++k) x[k] = montgomery_mul(x[k], m.cube, m);
  for (i32 t = threadIdx.x; t < kRow * kRow; t += blockDim.x) {
    const i32 k = t / kRow, j = t % kRow;
    right.lower[k][j] =
        k < count && j < k ? montgomery_mul(w.x[(p.first + k) * w.width + p.first + j], m.cube, m) : 0u;
  }
  for (i32 left = p.start + p.columns; left < reach; left += Tile) {
    __syncthreads();  // the rows before are done with
    solve_tile(w, p, board, right, left, reach, m);
    wait_for_cluster();
    if (block_of_cluster() == 0) {
      for (i32 t = threadIdx.x; t < count * Tile; t += blockDim.x) {
        const i32 k = t / Tile, j = t % Tile;
        if (left + j < reach) {
          w.x[(p.first + k) * w.width + left + j] = right.upper[board.column[k]][j];
        }
      }
    }
    if (p.place >= p.rank)
      subtract_product(w.x + p.place * w.width + left, x, right, min(Tile, reach - left), m);
  }
}

// Eliminates with pivots of columns `start` to `stop`; rows are changed up to the column `reach`. Unless it
// is wanted, what is left of the last panel's columns is not written. Where Tile is 0 there is one panel,
// whose rows stay where they are, and are not divided.
// Panels are copied to the shared memory `copy`, if the matrix is not there.
template <i32 Tile, class Index>
__device__ __forceinline__ void eliminate_columns(Matrix<Index>& w, i32 start, i32 stop, i32 reach,
                                                  bool is_wanted, Modulus m, Board& board, Right<Tile>& right,
                                                  u32* copy) {
  const Montgomery montgomery = montgomery_of(m);
  const i32 thread = block_of_cluster() * blockDim.x + threadIdx.x;
  for (i32 left = start; left < stop && w.rank < w.rows; left += kRow) {
    Panel p;
    p.columns = min(kRow, stop - left);
    p.start = left;
    p.first = p.rank = w.rank;
    p.rows = w.rows;
    p.is_negative = p.is_exchanged = false;
    p.place = w.rank + thread < w.rows ? w.rank + thread : -1;
    p.row = w.x + (p.is_row() ? p.place : 0) * w.width + left;
    if (copy != nullptr) copy_row(p, copy + threadIdx.x * kRowWidth);
    find_pivots(p, board, montgomery);
    const i32 count = p.rank - p.first;
    invert_pivots(board, count, m, montgomery);
    __syncthreads();
    exchange_rows(w, p, board);
    if (thread < kRow && board.number[thread] < kNone) {
      w.pivots[p.first + board.number[thread]] = left + thread;
    }
    if (count > 0) {
      w.product = mod_mul(w.product, board.product, m);
      if (p.is_negative) w.product = mod_sub(0u, w.product, m.last);
    }
    w.rank = p.rank;
    if constexpr (Tile > 0) {
      const bool is_right = left + p.columns < reach;
      if (is_right || is_wanted) {
        u32 x[kRow];
        divide(p, board, montgomery, x);
        wait_for_cluster();  // rows go where others were, and factors left of the panel
        write_row(w, p, board, x);
        wait_for_cluster();
        if (count > 0 && is_right) reduce_right(w, p, board, x, right, reach, montgomery);
      }
    }
    wait_for_cluster();  // before the board is another panel's
  }
}

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

// Some columns of great matrices, which are in their results, of as many rows below the rank as the threads
// of a cluster at most.
__global__ void RNS_CLUSTERED __launch_bounds__(512) eliminate_panel(Elimination e) {
  Board& board = *reinterpret_cast<Board*>(memory);
  Right<kGreatTile>& right = *reinterpret_cast<Right<kGreatTile>*>(&board + 1);
  for (i64 t = blockIdx.x / kBlocks; t < e.moduli_count * e.count; t += gridDim.x / kBlocks) {
    Matrix<i64> w = {e.out + t * e.rows * e.columns,
                     e.columns,
                     static_cast<i32>(e.rows),
                     static_cast<i32>(e.columns),
                     e.order + t * e.rows,
                     e.pivots + t * e.most,
                     e.ranks[t],
                     e.products[t]};
    eliminate_columns<kGreatTile>(w, static_cast<i32>(e.start), static_cast<i32>(e.stop),
                                  static_cast<i32>(e.reach), true, e.moduli[t / e.count], board, right,
                                  reinterpret_cast<u32*>(&right + 1));
    wait_for_cluster();
    if (block_of_cluster() == 0 && threadIdx.x == 0) {
      e.products[t] = w.product;
      e.new_ranks[t] = w.rank;
    }
  }
}

}  // extern "C"
