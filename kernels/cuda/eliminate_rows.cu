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

constexpr i32 kMostRows = 256;   // of a whole matrix
constexpr i32 kTile = 32;        // columns of pivots' rows that are in shared memory, of whole matrices
constexpr i32 kGreatTile = 128;  // the same of great ones
constexpr i32 kLoads = 32;       // words that a thread reads at once

// Shared memory for what is right of a panel: the pivots' factors, and their rows in some columns, in the
// order in which a thread has its factors.
template <i32 Tile>
struct Right {
  alignas(16) u32 lower[kRow][kRow];
  alignas(16) u32 upper[kRow][Tile];
};

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
__device__ __forceinline__ void write_row(const Matrix<Index>& w, const Panel& p, const Board& board) {
  const i32 own = p.place - p.first, count = p.rank - p.first;
  const bool is_plain = p.first == p.start && count > 0 && board.column[count - 1] == count - 1;
  if (!p.is_row()) return;
  u32* row = w.x + p.place * w.width;
#pragma unroll
  for (i32 k = 0; k < kRow; ++k) {
    const i32 column = p.place_of(k);
    if (column >= 0 && column < p.columns) {
      row[p.start + column] = is_plain || board.number[column] >= own ? p.x[k] : 0u;
    }
  }
  if (is_plain) return;
#pragma unroll
  for (i32 k = 0; k < kRow; ++k) {
    const i32 column = p.place_of(k);
    if (column >= 0 && column < p.columns && board.number[column] < own) {
      row[p.first + board.number[column]] = p.x[k];
    }
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
        right.upper[p.place_of(board.column[k])][j] = y[k];
      }
    }
  }
}

// Subtracts from a row its factors times the pivots' rows, in the same columns.
template <i32 Tile>
__device__ __forceinline__ void subtract_product(u32* row, const Panel& p, const Right<Tile>& right,
                                                 i32 count, Montgomery m) {
#pragma unroll 1
  for (i32 j = 0; j < count; j += 4) {
    CarriedSum sums[4];
#pragma unroll
    for (i32 k = 0; k < kRow; ++k) {
      const uint4 u = *reinterpret_cast<const uint4*>(&right.upper[k][j]);
      sums[0].add(p.x[k], u.x);
      sums[1].add(p.x[k], u.y);
      sums[2].add(p.x[k], u.z);
      sums[3].add(p.x[k], u.w);
    }
#pragma unroll
    for (i32 c = 0; c < 4; ++c) {
      if (j + c < count) row[j + c] = mod_sub(row[j + c], sums[c].reduce(m), m.m - 1u);
    }
  }
}

// What is right of a panel, up to the column `reach`.
template <i32 Tile, class Index>
__device__ __forceinline__ void reduce_right(const Matrix<Index>& w, Panel& p, const Board& board,
                                             Right<Tile>& right, i32 reach, Montgomery m) {
  const i32 count = p.rank - p.first;
  // Sums are divided by R^2: so that one factor of each product is multiplied by it.
#pragma unroll
  for (i32 k = 0; k < kRow; ++k) p.x[k] = montgomery_mul(p.x[k], m.cube, m);
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
          w.x[(p.first + k) * w.width + left + j] = right.upper[p.place_of(board.column[k])][j];
        }
      }
    }
    if (p.place >= p.rank)
      subtract_product(w.x + p.place * w.width + left, p, right, min(Tile, reach - left), m);
  }
}

// Eliminates with pivots of columns `start` to `stop`; rows are changed up to the column `reach`. Unless it
// is wanted, what is left of the last panel's columns is not written.
template <i32 Tile, class Index>
__device__ __forceinline__ void eliminate_columns(Matrix<Index>& w, i32 start, i32 stop, i32 reach,
                                                  bool is_wanted, Modulus m, Board& board,
                                                  Right<Tile>& right) {
  const Montgomery montgomery = montgomery_of(m);
  const i32 thread = block_of_cluster() * blockDim.x + threadIdx.x;
  for (i32 left = start; left < stop && w.rank < w.rows; left += kRow) {
    Panel p;
    p.columns = min(kRow, stop - left);
    p.padded = (p.columns + kTurn - 1) / kTurn * kTurn;
    p.start = left;
    p.first = p.rank = w.rank;
    p.rows = w.rows;
    p.is_negative = p.is_exchanged = false;
    p.place = w.rank + thread < w.rows ? w.rank + thread : -1;
    const u32* row = w.x + (p.is_row() ? p.place : 0) * w.width + left;
#pragma unroll
    for (i32 k = 0; k < kRow; ++k) p.x[k] = p.is_row() && k < p.columns ? row[k] : 0u;
    find_pivots(p, board, montgomery);
    const i32 count = p.rank - p.first;
    invert_pivots(board, count, m, montgomery);
    __syncthreads();
    const bool is_right = left + p.columns < reach;
    exchange_rows(w, p, board);
    if (is_right || is_wanted) {
      divide(p, board, montgomery);
      wait_for_cluster();  // factors may go left of the panel
      write_row(w, p, board);
    }
    if (thread < kRow && board.number[thread] < kNone)
      w.pivots[p.first + board.number[thread]] = left + thread;
    if (count > 0) {
      w.product = mod_mul(w.product, board.product, m);
      if (p.is_negative) w.product = mod_sub(0u, w.product, m.last);
    }
    w.rank = p.rank;
    wait_for_cluster();
    if (count > 0 && is_right) {
      reduce_right(w, p, board, right, reach, montgomery);
      wait_for_cluster();
    }
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
  const bool has_factors = e.upper != nullptr;
  for (i32 j = lane; j < most; j += kRow) {
    const i32 source = has_factors && j < rows ? e.order[t * rows + j] : -1;
#pragma unroll 4
    for (i32 r = warp; r < rows; r += warps) {
      const u32 word = j < columns ? x[r * width + j] : 0u;
      const bool is_below = j < r;
      if (e.out != nullptr && j < columns) e.out[(t * rows + r) * columns + j] = word;
      if (!has_factors) continue;
      if (j < rows) e.permutation[(t * rows + r) * rows + j] = source == r;
      if (j < least) e.lower[(t * rows + r) * least + j] = is_below ? word : j == r;
      if (r < least && j < columns) e.upper[(t * least + r) * columns + j] = is_below ? 0u : word;
    }
  }
}

extern __shared__ uint4 memory[];

}  // namespace

extern "C" {

// Whole matrices of at most as many rows as there are threads; memory for `Right` is there only if something
// is right of a panel.
__global__ void __launch_bounds__(kMostRows) eliminate_whole(Elimination e) {
  const i32 rows = static_cast<i32>(e.rows), columns = static_cast<i32>(e.columns);
  const i32 width = columns | 1;  // against conflicts of banks
  Board& board = *reinterpret_cast<Board*>(memory);
  Right<kTile>& right = *reinterpret_cast<Right<kTile>*>(&board + 1);
  u32* x = columns > min(kRow, static_cast<i32>(e.stop)) ? reinterpret_cast<u32*>(&right + 1)
                                                         : reinterpret_cast<u32*>(&board + 1);
  const bool is_wanted = e.out != nullptr || e.upper != nullptr;
  for (i64 t = blockIdx.x; t < e.moduli_count * e.count; t += gridDim.x) {
    copy_in(e, t, x, width);
    __syncthreads();
    Matrix<i32> w = {x, width, rows, columns, e.order + t * rows, e.pivots + t * e.most, 0, 1u};
    eliminate_columns<kTile>(w, 0, static_cast<i32>(e.stop), columns, is_wanted, e.moduli[t / e.count], board,
                             right);
    if (is_wanted) write_out(e, t, x, width);
    if (threadIdx.x == 0) e.products[t] = w.product;
    __syncthreads();  // before the memory is another matrix's
  }
}

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
                                  static_cast<i32>(e.reach), true, e.moduli[t / e.count], board, right);
    wait_for_cluster();
    if (block_of_cluster() == 0 && threadIdx.x == 0) {
      e.products[t] = w.product;
      e.new_ranks[t] = w.rank;
    }
  }
}

}  // extern "C"
