// Elimination in a panel of 32 columns modulo an odd prime, with a thread for each row, by a block or by a
// cluster of RNS_CLUSTER blocks. The panel lies in shared memory.
//
// It divides by nothing: at each column a row becomes |pivot row - factor pivot_row| / R by Montgomery's
// product, which scales all rows that are left alike. Both products are of numbers of which the first is at
// most m / 2, so that their sum is below m^2: the pivot or its negative, by which the whole is negated, and
// the factor, or its negative and that of the pivot's row. Only four columns at a time, in registers, are
// changed so. What becomes of a row is a sum of multiples of the rows before these columns, its own and up to
// four of pivots, whose factors are changed like words; the words right of the four columns are such sums,
// reduced once.
//
// Row k of the panel is scaled in the end by the product of the pivots before, or of their negatives, over
// R^k; all pivots are inverted side by side, and rows and factors divided. Rows that are exchanged stay with
// their threads, which know their places.
#pragma once

#include <rns/matrix.cuh>

#include "pivots.cuh"

#ifndef RNS_CLUSTER
#define RNS_CLUSTER 1
#endif

namespace rns {

constexpr u32 kAll = ~0u;
constexpr i32 kRow = 32;        // columns of a panel
constexpr i32 kFew = 4;         // columns that are changed one by one
constexpr i32 kNegative = 12;   // where negatives begin, in other banks
constexpr i32 kNone = 1 << 20;  // the pivot of a column that has none

// Shared memory of a panel. Pivots are numbered from 0.
struct Board {
  alignas(16) u32 row[2][kNegative + 2 * kFew];  // a pivot's row in few columns, its factors, their negatives
  u32 rest[kFew][kRow - kFew];                   // what is right of few columns of their pivots' rows, before
  u32 factors[kRow];                             // what each column's factors are divided by, inverted
  i32 number[kRow];                              // of each column its pivot's number
  i32 column[kRow];                              // of each pivot its column
  u32 pivots[kRow];                              // as they are found
  u32 scales[kRow];                              // what each pivot's row is multiplied by in the end
  i32 other[kRow];                               // the place that each pivot's row came from
  i32 found;                                     // the least place of a row that can be the next pivot's
  u32 product;
};
static_assert(sizeof(Board) % 16 == 0, "what follows is read in vectors");

#if RNS_CLUSTER > 1 && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

constexpr i32 kBlocks = RNS_CLUSTER;
#define RNS_CLUSTERED __cluster_dims__(RNS_CLUSTER, 1, 1)

__device__ i32 block_of_cluster() {
  u32 rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<i32>(rank);
}

// The same shared memory of another block of the cluster.
template <class T>
__device__ T* of_block(T* x, i32 block) {
  u64 there;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(x), "r"(block));
  return reinterpret_cast<T*>(there);
}

// All threads of the cluster wait, and see what the others wrote.
__device__ void wait_for_cluster() {
  asm volatile(
      "barrier.cluster.arrive.release;\n"
      "barrier.cluster.wait.acquire;" ::
          : "memory");
}

#else

constexpr i32 kBlocks = 1;
#define RNS_CLUSTERED

__device__ i32 block_of_cluster() { return 0; }

template <class T>
__device__ T* of_block(T* x, i32) {
  return x;
}

__device__ void wait_for_cluster() { __syncthreads(); }

#endif

// A panel's columns from `start` on, pivots' rows from place `first` on, and a thread's own row of it.
struct Panel {
  u32* row;   // in shared memory
  i32 place;  // of the row, -1 if the thread has none
  i32 first;
  i32 rank;
  i32 rows;
  i32 start;
  i32 columns;
  bool is_negative;
  bool is_exchanged;

  __device__ bool is_row() const { return place >= 0; }
  __device__ u32 word(i32 column) const { return is_row() && column < columns ? row[column] : 0u; }
};

// Few columns of a thread's row, and what they have done to all of it: it is `own` times itself, and factors
// times the pivots' rows, as they were before, over R^2.
struct Few {
  u32 x[kFew];
  u32 own;
  u32 factors[kFew];
  i32 pivot;  // the column of few whose pivot the row has, -1 if none
};

__device__ __forceinline__ void write_four(u32* to, const u32* x) {
  *reinterpret_cast<uint4*>(to) = make_uint4(x[0], x[1], x[2], x[3]);
}

__device__ __forceinline__ void write_negative_four(u32* to, const u32* x, u32 m) {
  *reinterpret_cast<uint4*>(to) = make_uint4(m - x[0], m - x[1], m - x[2], m - x[3]);
}

// Takes few columns of a pivot's row to all blocks.
__device__ __forceinline__ void publish(const Few& few, u32* row, u32 m) {
#pragma unroll
  for (i32 block = 0; block < kBlocks; ++block) {
    u32* to = of_block(row, block);
    write_four(to, few.x);
    write_four(to + kFew, few.factors);
    write_negative_four(to + kNegative, few.x, m);
    write_negative_four(to + kNegative + kFew, few.factors, m);
  }
}

// The least place below a pivot's of a row whose word is not 0, the number of rows if there is none; for all
// threads.
__device__ __noinline__ i32 find_row(u32 word, i32 place, i32 rank, i32 rows, Board& board) {
  if (place > rank && word != 0) atomicMin(&board.found, place);
  wait_for_cluster();
  i32 found = rows;
  for (i32 block = 0; block < kBlocks; ++block) found = min(found, of_block(&board, block)->found);
  wait_for_cluster();
  if (threadIdx.x == 0) board.found = rows;  // before the next barrier, and so the next search
  return found;
}

// The pivot of column k of few, whose row is published; 0 if there is none. Where the row in its place begins
// with 0, it is exchanged.
__device__ __forceinline__ u32 find_pivot(Panel& p, Board& board, const Few& few, i32 k, u32* row, u32 m) {
  for (bool is_other = false;; is_other = true) {
    if (p.place == p.rank) publish(few, row, m);
    wait_for_cluster();
    const u32 pivot = row[k];
    if (pivot != 0 || is_other) return pivot;
    const i32 found = find_row(few.x[k], p.place, p.rank, p.rows, board);
    if (found == p.rows) return 0;
    if (p.place == p.rank) {
      p.place = found;
    } else if (p.place == found) {
      p.place = p.rank;
    }
    if (threadIdx.x == 0) board.other[p.rank - p.first] = found;
    p.is_negative = !p.is_negative;
    p.is_exchanged = true;
  }
}

// Clears column k of few in the rows below its pivot's: of the words and factors that it changes.
template <i32 K>
__device__ __forceinline__ void clear_column(Few& few, u32 pivot, const u32* row, bool is_below,
                                             Montgomery m) {
  const u32 own = few.x[K], half = m.m / 2, negative = m.m - own;
  const bool is_great = pivot > half, is_turned = (is_great ? own : negative) > half;
  const u32 left = is_below ? (is_great ? m.m - pivot : pivot) : m.one;
  const u32 factor = is_below ? (is_great != is_turned ? own : negative) : 0;
  const uint4* words = reinterpret_cast<const uint4*>(row + (is_turned ? kNegative : 0));
  const uint4 u = words[0], f = words[1];
  if (K < 1) few.x[1] = montgomery_muladd(left, few.x[1], factor, u.y, m);
  if (K < 2) few.x[2] = montgomery_muladd(left, few.x[2], factor, u.z, m);
  if (K < 3) few.x[3] = montgomery_muladd(left, few.x[3], factor, u.w, m);
  if (K > 0) few.factors[0] = montgomery_muladd(left, few.factors[0], factor, f.x, m);
  if (K > 1) few.factors[1] = montgomery_muladd(left, few.factors[1], factor, f.y, m);
  if (K > 2) few.factors[2] = montgomery_muladd(left, few.factors[2], factor, f.z, m);
  // Rows below are all scaled alike, and so is the pivot's.
  few.factors[K] = montgomery_mul(is_turned ? m.m - few.own : few.own, factor, m);
  few.own = montgomery_mul(few.own, left, m);
}

// Takes what is right of few columns of their pivots' rows to all blocks, each row by the warp that has it.
__device__ __forceinline__ void publish_rest(const Panel& p, const Few& few, Board& board, i32 first) {
  const i32 lane = threadIdx.x % kRow;
  __syncwarp();  // rows are written
#pragma unroll
  for (i32 k = 0; k < kFew; ++k) {
    const u32 owner = __ballot_sync(kAll, few.pivot == k);
    if (owner == 0) continue;
    const u64 row = __shfl_sync(kAll, reinterpret_cast<u64>(p.row), 31 - __clz(static_cast<i32>(owner)));
    if (first + lane >= p.columns) continue;
    const u32 word = reinterpret_cast<const u32*>(row)[first + lane];
#pragma unroll
    for (i32 block = 0; block < kBlocks; ++block) of_block(board.rest[k], block)[lane] = word;
  }
}

// Changes so many words of a row, of which `rest` are those of the pivots' rows.
template <i32 Count>
__device__ __forceinline__ void change_words(u32* x, const Few& few, const u32* rest, Montgomery m) {
  CarriedSum sums[Count];
#pragma unroll
  for (i32 c = 0; c < Count; ++c) sums[c].low = static_cast<u64>(few.own) * x[c];
#pragma unroll
  for (i32 k = 0; k < kFew; ++k) {
    u32 others[Count];
    if constexpr (Count == 4) {
      const uint4 u = *reinterpret_cast<const uint4*>(rest + k * (kRow - kFew));
      others[0] = u.x, others[1] = u.y, others[2] = u.z, others[3] = u.w;
    } else {
      others[0] = rest[k * (kRow - kFew)];
    }
#pragma unroll
    for (i32 c = 0; c < Count; ++c) sums[c].add(few.factors[k], others[c]);
  }
#pragma unroll
  for (i32 c = 0; c < Count; ++c) x[c] = sums[c].reduce(m);
}

// Changes the words of a row from column `first` on, right of few.
__device__ __forceinline__ void change_rest(const Panel& p, const Few& few, const Board& board, i32 first,
                                            Montgomery m) {
  if (!p.is_row()) return;
  const u32* rest = board.rest[0];
  i32 j = first;
#pragma unroll 1
  for (; j + 4 <= p.columns; j += 4) change_words<4>(p.row + j, few, rest + (j - first), m);
#pragma unroll 1
  for (; j < p.columns; ++j) change_words<1>(p.row + j, few, rest + (j - first), m);
}

// Column K of few from column `start` on, if there is so much of the panel; whether it changed rows of the
// warp.
template <i32 K>
__device__ __forceinline__ bool eliminate_column(Panel& p, Board& board, Few& few, i32 start, Montgomery m) {
  const i32 column = start + K;
  if (column >= p.columns || p.rank >= p.rows) return false;
  u32* row = board.row[K % 2];
  const u32 pivot = find_pivot(p, board, few, K, row, m.m);
  if (pivot == 0) return false;
  if (threadIdx.x == 0) {
    const i32 number = p.rank - p.first;
    board.number[column] = number;
    board.column[number] = column;
    board.pivots[number] = pivot;
  }
  if (p.place == p.rank) few.pivot = K;
  ++p.rank;
  const bool is_below = p.place >= p.rank;
  if (!__any_sync(kAll, is_below)) return false;
  clear_column<K>(few, pivot, row, is_below, m);
  return true;
}

__device__ __forceinline__ void find_pivots(Panel& p, Board& board, Montgomery m) {
  if (threadIdx.x < kRow) {
    board.number[threadIdx.x] = kNone;
    board.other[threadIdx.x] = -1;
  }
  if (threadIdx.x == 0) board.found = p.rows;
  wait_for_cluster();
  const u32 square = montgomery_mul(m.cube, 1u, m);
#pragma unroll 1
  for (i32 start = 0; start < p.columns; start += kFew) {
    Few few = {{}, square, {}, -1};
#pragma unroll
    for (i32 k = 0; k < kFew; ++k) few.x[k] = p.word(start + k);
    const i32 rank = p.rank, right = start + kFew;
    bool is_changed = eliminate_column<0>(p, board, few, start, m);
    is_changed |= eliminate_column<1>(p, board, few, start, m);
    is_changed |= eliminate_column<2>(p, board, few, start, m);
    is_changed |= eliminate_column<3>(p, board, few, start, m);
#pragma unroll
    for (i32 k = 0; k < kFew; ++k) {
      if (p.is_row() && start + k < p.columns) p.row[start + k] = few.x[k];
    }
    if (p.rank > rank && right < p.columns) {
      publish_rest(p, few, board, right);
      wait_for_cluster();
      if (is_changed) change_rest(p, few, board, right, m);
    }
  }
  __syncthreads();
}

// Inverts `count` pivots by one warp, and multiplies them.
__device__ void invert_pivots(Board& board, i32 count, Modulus m, Montgomery montgomery) {
  if (threadIdx.x >= kRow) return;
  const i32 lane = threadIdx.x;
  const u32 pivot = lane < count ? board.pivots[lane] : 1u;
  const u32 factor = montgomery_inverse(pivot, montgomery);
  // Rows are scaled by the pivots before, or by their negatives.
  const u32 scale = pivot > montgomery.m / 2 ? montgomery.m - factor : factor;
  const PivotScale found = scale_of_pivots(pivot, scale, count, m);
  if (lane == 0) board.product = found.product;
  if (lane < count) {
    board.scales[lane] = mod_mul(found.row, montgomery.one, m);
    board.factors[board.column[lane]] = factor;
  }
}

// Divides the words of a row by what they are scaled by.
__device__ __forceinline__ void divide(const Panel& p, const Board& board, Montgomery m, u32 (&x)[kRow]) {
  const i32 own = p.place - p.first, count = p.rank - p.first;
  const u32 scale = p.is_row() && own < count ? board.scales[own] : 0u;  // rows below have only factors
#pragma unroll
  for (i32 k = 0; k < kRow; ++k) {
    x[k] = montgomery_mul(board.number[k] < own ? board.factors[k] : scale, p.word(k), m);
  }
}

}  // namespace rns
