// What kernels of elimination modulo odd primes with a thread for each row (elimination_panel.cuh) share:
// panels one after another, and what is right of each.
//
// What is right of a panel loses a product of matrices: a thread has its row's factors in registers, and the
// pivots' rows are in shared memory.
#pragma once

#include "elimination.cuh"
#include "elimination_panel.cuh"

namespace rns {

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

}  // namespace rns
