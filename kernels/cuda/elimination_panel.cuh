// Elimination in a panel of 32 columns modulo an odd prime, with a thread for each row, by a block or by a
// cluster of RNS_CLUSTER blocks.
//
// It divides by nothing: at each column a row becomes |pivot row - factor pivot_row| / R by Montgomery's
// product, which scales all rows that are left alike. Both products are of numbers of which the first is at
// most m / 2, so that their sum is below m^2: the pivot or its negative, by which the whole is negated, and
// the factor, or its negative and that of the pivot's row. Only four columns at a time are changed so. What
// becomes of a row is a sum of multiples of the rows before these columns, its own and up to four of pivots,
// whose factors are changed like words; the words right of the four columns are such sums, reduced once.
//
// Row k of the panel is scaled in the end by the product of the pivots before, or of their negatives, over
// R^k; all pivots are inverted side by side, and rows and factors divided. Rows that are exchanged stay with
// their threads, which know their places.
#pragma once

#include <rns/matrix.cuh>

#ifndef RNS_CLUSTER
#define RNS_CLUSTER 1
#endif

namespace rns {

constexpr u32 kAll = ~0u;
constexpr i32 kRow = 32;        // columns of a panel, in registers
constexpr i32 kTurn = 8;        // columns after which fewer of a row's words are left
constexpr i32 kFew = 4;         // columns that are changed one by one
constexpr i32 kNegative = 12;   // where negatives begin, in other banks
constexpr i32 kNone = 1 << 20;  // the pivot of a column that has none

// Shared memory of a panel. Pivots are numbered from 0.
struct Board {
  alignas(16) u32 row[2][kNegative + 2 * kFew];  // a pivot's row in few columns, its factors, their negatives
  u32 rest[2][kFew][kRow - kFew];                // the pivots' rows to the right as they were before
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

// A panel's columns from `start` on, pivots' rows from place `first` on, and a thread's own row of it. Once
// eight columns are done with, their words come last but for those of columns before: column c of `padded`
// is in the end x[place_of(c)].
struct Panel {
  u32 x[kRow];
  i32 place;  // of the row, -1 if the thread has none
  i32 first;
  i32 rank;
  i32 rows;
  i32 start;
  i32 columns;
  i32 padded;  // columns, up to a multiple of kTurn
  bool is_negative;
  bool is_exchanged;

  // The same way in both directions.
  __device__ i32 place_of(i32 column) const {
    return (padded - kTurn - column / kTurn * kTurn) + column % kTurn;
  }
  __device__ bool is_row() const { return place >= 0; }
};

// What few columns have done to a thread's row: it is `own` times itself, and factors times the pivots' rows,
// as they were before, over R^2.
struct Change {
  u32 own;
  u32 factors[kFew];
};

__device__ __forceinline__ void write_four(u32* to, const u32* x) {
  *reinterpret_cast<uint4*>(to) = make_uint4(x[0], x[1], x[2], x[3]);
}

__device__ __forceinline__ void write_negative_four(u32* to, const u32* x, u32 m) {
  *reinterpret_cast<uint4*>(to) = make_uint4(m - x[0], m - x[1], m - x[2], m - x[3]);
}

// Takes a pivot's row to all blocks.
template <i32 Words>
__device__ __forceinline__ void publish(const Panel& p, const Change& change, u32* row, u32* rest, u32 m) {
#pragma unroll
  for (i32 block = 0; block < kBlocks; ++block) {
    u32* to = of_block(row, block);
    write_four(to, p.x);
    write_four(to + kFew, change.factors);
    write_negative_four(to + kNegative, p.x, m);
    write_negative_four(to + kNegative + kFew, change.factors, m);
    u32* right = of_block(rest, block);
#pragma unroll
    for (i32 j = kFew; j < Words; j += 4) write_four(right + j - kFew, p.x + j);
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
template <i32 Words>
__device__ __forceinline__ u32 find_pivot(Panel& p, Board& board, const Change& change, i32 k, u32* row,
                                          u32* rest, u32 m) {
  for (bool is_other = false;; is_other = true) {
    if (p.place == p.rank) publish<Words>(p, change, row, rest, m);
    wait_for_cluster();
    const u32 pivot = row[k];
    if (pivot != 0 || is_other) return pivot;
    const i32 found = find_row(p.x[k], p.place, p.rank, p.rows, board);
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
__device__ __forceinline__ void clear_column(Panel& p, Change& change, u32 pivot, const u32* row,
                                             bool is_below, Montgomery m) {
  const u32 own = p.x[K], half = m.m / 2, negative = m.m - own;
  const bool is_great = pivot > half, is_turned = (is_great ? own : negative) > half;
  const u32 left = is_below ? (is_great ? m.m - pivot : pivot) : m.one;
  const u32 factor = is_below ? (is_great != is_turned ? own : negative) : 0;
  const uint4* words = reinterpret_cast<const uint4*>(row + (is_turned ? kNegative : 0));
  const uint4 u = words[0], f = words[1];
  if (K < 1) p.x[1] = montgomery_muladd(left, p.x[1], factor, u.y, m);
  if (K < 2) p.x[2] = montgomery_muladd(left, p.x[2], factor, u.z, m);
  if (K < 3) p.x[3] = montgomery_muladd(left, p.x[3], factor, u.w, m);
  if (K > 0) change.factors[0] = montgomery_muladd(left, change.factors[0], factor, f.x, m);
  if (K > 1) change.factors[1] = montgomery_muladd(left, change.factors[1], factor, f.y, m);
  if (K > 2) change.factors[2] = montgomery_muladd(left, change.factors[2], factor, f.z, m);
  // Rows below are all scaled alike, and so is the pivot's.
  change.factors[K] = montgomery_mul(is_turned ? m.m - change.own : change.own, factor, m);
  change.own = montgomery_mul(change.own, left, m);
}

// The words right of few columns, which they take the place of.
template <i32 Words>
__device__ __forceinline__ void change_rest(Panel& p, const Change& change, const u32* rest, Montgomery m) {
#pragma unroll
  for (i32 j = kFew; j < Words; j += 4) {
    CarriedSum sums[4];
#pragma unroll
    for (i32 c = 0; c < 4; ++c) sums[c].low = static_cast<u64>(change.own) * p.x[j + c];
#pragma unroll
    for (i32 k = 0; k < kFew; ++k) {
      const uint4 u = *reinterpret_cast<const uint4*>(rest + k * (kRow - kFew) + j - kFew);
      sums[0].add(change.factors[k], u.x);
      sums[1].add(change.factors[k], u.y);
      sums[2].add(change.factors[k], u.z);
      sums[3].add(change.factors[k], u.w);
    }
#pragma unroll
    for (i32 c = 0; c < 4; ++c) p.x[j - kFew + c] = sums[c].reduce(m);
  }
}

// Column k of few, if there is so much of the panel; whether it changed rows of the warp.
template <i32 Words, i32 K>
__device__ __forceinline__ bool eliminate_column(Panel& p, Board& board, Change& change, i32 few, u32* rest,
                                                 Montgomery m) {
  const i32 column = few + K;
  if (column >= p.columns || p.rank >= p.rows) return false;
  u32* row = board.row[K % 2];
  const u32 pivot = find_pivot<Words>(p, board, change, K, row, rest + K * (kRow - kFew), m.m);
  if (pivot == 0) return false;
  if (threadIdx.x == 0) {
    const i32 number = p.rank - p.first;
    board.number[column] = number;
    board.column[number] = column;
    board.pivots[number] = pivot;
  }
  ++p.rank;
  const bool is_below = p.place >= p.rank;
  if (!__any_sync(kAll, is_below)) return false;
  clear_column<K>(p, change, pivot, row, is_below, m);
  return true;
}

// Eight columns of a panel, of which so many words of a row are left: they move on. What clears a column
// comes to the end once all eight are done.
template <i32 Words>
__device__ __forceinline__ void eliminate_eight(Panel& p, Board& board, i32& column, Montgomery m) {
  u32 done[kTurn] = {};
#pragma unroll 1
  for (i32 turn = 0; turn < kTurn / kFew; ++turn, column += kFew) {
    Change change = {montgomery_mul(m.cube, 1u, m), {}};  // R^2
    u32* rest = board.rest[turn][0];
    bool is_changed = eliminate_column<Words, 0>(p, board, change, column, rest, m);
    is_changed |= eliminate_column<Words, 1>(p, board, change, column, rest, m);
    is_changed |= eliminate_column<Words, 2>(p, board, change, column, rest, m);
    is_changed |= eliminate_column<Words, 3>(p, board, change, column, rest, m);
#pragma unroll
    for (i32 k = 0; k < kFew; ++k) {
      done[k] = done[kFew + k];
      done[kFew + k] = p.x[k];
    }
    if (is_changed) {
      change_rest<Words>(p, change, rest, m);
    } else {
#pragma unroll
      for (i32 j = kFew; j < Words; ++j) p.x[j - kFew] = p.x[j];
    }
  }
#pragma unroll
  for (i32 j = 0; j < kTurn; ++j) p.x[Words - kTurn + j] = done[j];
}

__device__ __forceinline__ void find_pivots(Panel& p, Board& board, Montgomery m) {
  if (threadIdx.x < kRow) {
    board.number[threadIdx.x] = kNone;
    board.other[threadIdx.x] = -1;
  }
  if (threadIdx.x == 0) board.found = p.rows;
  wait_for_cluster();
  i32 column = 0;
  if (p.padded > 24) eliminate_eight<32>(p, board, column, m);
  if (p.padded > 16) eliminate_eight<24>(p, board, column, m);
  if (p.padded > 8) eliminate_eight<16>(p, board, column, m);
  eliminate_eight<8>(p, board, column, m);
  __syncthreads();
}

// Inverts `count` pivots by one warp, and multiplies them.
__device__ void invert_pivots(Board& board, i32 count, Modulus m, Montgomery montgomery) {
  if (threadIdx.x >= kRow) return;
  const i32 lane = threadIdx.x;
  const u32 pivot = lane < count ? board.pivots[lane] : 1u;
  const u32 factor = montgomery_inverse(pivot, montgomery);
  // The product of those of the pivots before, or of their negatives.
  u32 scale = pivot > montgomery.m / 2 ? montgomery.m - factor : factor;
  for (i32 offset = 1; offset < kRow; offset *= 2) {
    const u32 other = __shfl_up_sync(kAll, scale, offset);
    if (lane >= offset) scale = mod_mul(scale, other, m);
  }
  scale = __shfl_up_sync(kAll, scale, 1);
  if (lane == 0) scale = 1;
  u32 product = lane < count ? mod_mul(pivot, scale, m) : 1u;
  for (i32 offset = kRow / 2; offset > 0; offset /= 2) {
    product = mod_mul(product, __shfl_xor_sync(kAll, product, offset), m);
  }
  if (lane == 0) board.product = product;
  if (lane < count) {
    board.scales[lane] = mod_mul(scale, montgomery.one, m);
    board.factors[board.column[lane]] = factor;
  }
}

// Divides the words of a row by what they are scaled by.
__device__ __forceinline__ void divide(Panel& p, const Board& board, Montgomery m) {
  const i32 own = p.place - p.first, count = p.rank - p.first;
  const u32 scale = p.is_row() && own < count ? board.scales[own] : 0u;  // rows below have only factors
#pragma unroll
  for (i32 k = 0; k < kRow; k += 4) {
    const i32 column = p.place_of(k);
    if (column < 0) continue;
    const uint4 numbers = *reinterpret_cast<const uint4*>(board.number + column);
    const uint4 factors = *reinterpret_cast<const uint4*>(board.factors + column);
    p.x[k] = montgomery_mul(static_cast<i32>(numbers.x) < own ? factors.x : scale, p.x[k], m);
    p.x[k + 1] = montgomery_mul(static_cast<i32>(numbers.y) < own ? factors.y : scale, p.x[k + 1], m);
    p.x[k + 2] = montgomery_mul(static_cast<i32>(numbers.z) < own ? factors.z : scale, p.x[k + 2], m);
    p.x[k + 3] = montgomery_mul(static_cast<i32>(numbers.w) < own ? factors.w : scale, p.x[k + 3], m);
  }
}

}  // namespace rns
