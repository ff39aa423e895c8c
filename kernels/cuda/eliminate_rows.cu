// Elimination modulo odd primes with a thread for each row: 32 columns of it, a panel, are in registers, and
// pivots' rows go to all threads through shared memory. Whole matrices lie in shared memory, a block for
// each; great ones where their results go, a cluster of RNS_CLUSTER blocks for each, which eliminates some
// columns.
//
// In a panel it divides by nothing: a row becomes |pivot row - factor pivot_row| / R by Montgomery's product,
// which scales all rows that are left alike. Both products are of numbers of which the first is at most m /
// 2, so that their sum is below m^2: the pivot or its negative, by which the whole is negated, and the
// factor, or its negative and that of the pivot's row. Row k of the panel is scaled in the end by the product
// of the pivots before, or of their negatives, over R^k; all pivots are inverted side by side, and rows and
// factors divided. Rows that are exchanged stay with their threads, which know their places. What is right of
// the panel loses a product of matrices: a thread has its row's factors in registers, and the pivots' rows
// are in shared memory.
#include <rns/matrix.cuh>

#include "elimination.cuh"

using namespace rns;

#ifndef RNS_CLUSTER
#define RNS_CLUSTER 1
#endif

namespace {

constexpr u32 kAll = ~0u;
constexpr i32 kRow = 32;             // columns of a panel, in registers
constexpr i32 kTurn = 8;             // columns after which fewer of a row's words are left
constexpr i32 kNegative = kRow + 4;  // where a row's negative begins, in other banks
constexpr i32 kNone = 1 << 20;       // the pivot of a column that has none
constexpr i32 kMostRows = 256;       // of a whole matrix
constexpr i32 kTile = 32;            // columns of pivots' rows that are in shared memory, of whole matrices
constexpr i32 kGreatTile = 128;      // the same of great ones

// Shared memory of a panel. Pivots are numbered from 0.
struct Board {
  alignas(16) u32 row[2][kNegative + kRow];  // a pivot's row and its negative, and those of the one before
  u32 pivots[kRow];                          // as they are found
  u32 scales[kRow];                          // what each pivot's row is multiplied by in the end
  u32 factors[kRow];                         // what each column's factors are
  i32 number[kRow];                          // of each column its pivot's number
  i32 column[kRow];                          // of each pivot its column
  i32 other[kRow];                           // the place that each pivot's row came from
  i32 found;                                 // the least place of a row that can be the next pivot's
  u32 product;
};
static_assert(sizeof(Board) % 16 == 0, "what follows is read in vectors");

// Shared memory for what is right of a panel: the pivots' factors, and their rows in some columns, in the
// order in which a thread has its factors.
template <i32 Tile>
struct Right {
  alignas(16) u32 lower[kRow][kRow];
  alignas(16) u32 upper[kRow][Tile];
};

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

  __device__ i32 place_of(i32 column) const {
    return (padded - kTurn - column / kTurn * kTurn) + column % kTurn;
  }
  __device__ bool is_row() const { return place >= 0; }
};

// Takes the first words of the thread's row, and their negatives, to all blocks.
template <i32 Words>
__device__ __forceinline__ void publish(const Panel& p, u32* row, u32 m) {
#pragma unroll
  for (i32 block = 0; block < kBlocks; ++block) {
    uint4* to = reinterpret_cast<uint4*>(of_block(row, block));
#pragma unroll
    for (i32 k = 0; k < Words / 4; ++k) {
      const uint4 u = make_uint4(p.x[4 * k], p.x[4 * k + 1], p.x[4 * k + 2], p.x[4 * k + 3]);
      to[k] = u;
      to[kNegative / 4 + k] = make_uint4(m - u.x, m - u.y, m - u.z, m - u.w);
    }
  }
}

// Where the row in the pivot's place begins with 0: takes the first one below that does not there, and to all
// blocks. False if there is none.
template <i32 Words>
__device__ bool exchange(Panel& p, Board& board, u32* row, u32 m) {
  if (p.place > p.rank && p.x[0] != 0) atomicMin(&board.found, p.place);
  wait_for_cluster();
  i32 found = p.rows;
  for (i32 block = 0; block < kBlocks; ++block) found = min(found, of_block(&board, block)->found);
  wait_for_cluster();
  if (threadIdx.x == 0) board.found = p.rows;
  if (found < p.rows) {
    if (p.place == p.rank) {
      p.place = found;
    } else if (p.place == found) {
      p.place = p.rank;
      publish<Words>(p, row, m);
    }
    if (threadIdx.x == 0) board.other[p.rank - p.first] = found;
    p.is_negative = !p.is_negative;
  }
  wait_for_cluster();
  return found < p.rows;
}

// Eight columns of a panel, of which so many words of a row are left: at each the words move on by one. What
// clears a column comes to the end once all eight are done.
template <i32 Words>
__device__ __forceinline__ void eliminate_eight(Panel& p, Board& board, i32& column, Montgomery m) {
  u32 done[kTurn] = {};
#pragma unroll 1
  for (i32 k = 0; k < kTurn; ++k, ++column) {
    const u32 own = p.x[0];
    u32* row = board.row[k % 2];
    u32 pivot = 0;
    if (column < p.columns && p.rank < p.rows) {
      if (p.place == p.rank) publish<Words>(p, row, m.m);
      wait_for_cluster();
      pivot = row[0];
      if (pivot == 0 && exchange<Words>(p, board, row, m.m)) pivot = row[0];
    }
    if (pivot != 0) {
      if (threadIdx.x == 0) {
        board.number[column] = p.rank - p.first;
        board.column[p.rank - p.first] = column;
        board.pivots[p.rank - p.first] = pivot;
      }
      ++p.rank;
    }
    const bool is_below = pivot != 0 && p.place >= p.rank;
    if (__any_sync(kAll, is_below)) {
      const u32 half = m.m / 2, negative = m.m - own;
      const bool is_great = pivot > half, is_turned = (is_great ? own : negative) > half;
      const u32 left = is_below ? (is_great ? m.m - pivot : pivot) : m.one;
      const u32 factor = is_below ? (is_great != is_turned ? own : negative) : 0;
      const uint4* words = reinterpret_cast<const uint4*>(row + (is_turned ? kNegative : 0));
#pragma unroll
      for (i32 j = 0; j < Words / 4; ++j) {
        const uint4 u = words[j];
        if (j > 0) p.x[4 * j - 1] = montgomery_muladd(left, p.x[4 * j], factor, u.x, m);
        p.x[4 * j] = montgomery_muladd(left, p.x[4 * j + 1], factor, u.y, m);
        p.x[4 * j + 1] = montgomery_muladd(left, p.x[4 * j + 2], factor, u.z, m);
        p.x[4 * j + 2] = montgomery_muladd(left, p.x[4 * j + 3], factor, u.w, m);
      }
    } else {
#pragma unroll
      for (i32 j = 1; j < Words; ++j) p.x[j - 1] = p.x[j];
    }
    p.x[Words - 1] = 0;
#pragma unroll
    for (i32 j = 1; j < kTurn; ++j) done[j - 1] = done[j];
    done[kTurn - 1] = own;
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
  const u32 factor = mod_mul(prime_inverse(pivot, m.last), montgomery.one, m);
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
  for (i32 k = 0; k < kRow; ++k) {
    const i32 column = p.padded - kTurn - k / kTurn * kTurn + k % kTurn;
    if (column >= 0) {
      p.x[k] = montgomery_mul(board.number[column] < own ? board.factors[column] : scale, p.x[k], m);
    }
  }
}

// Exchanges rows of what is left and right of a panel, whose own rows stay with their threads.
template <class Index>
__device__ void exchange_rows(const Matrix<Index>& w, const Panel& p, const Board& board) {
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
    const i32 column = p.padded - kTurn - k / kTurn * kTurn + k % kTurn;
    if (column >= 0 && column < p.columns) {
      row[p.start + column] = is_plain || board.number[column] >= own ? p.x[k] : 0u;
    }
  }
  if (is_plain) return;
#pragma unroll
  for (i32 k = 0; k < kRow; ++k) {
    const i32 column = p.padded - kTurn - k / kTurn * kTurn + k % kTurn;
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

// Eliminates with pivots of columns `start` to `stop`; rows are changed up to the column `reach`.
template <i32 Tile, class Index>
__device__ __forceinline__ void eliminate_columns(Matrix<Index>& w, i32 start, i32 stop, i32 reach, Modulus m,
                                                  Board& board, Right<Tile>& right) {
  const Montgomery montgomery = montgomery_of(m);
  const i32 thread = block_of_cluster() * blockDim.x + threadIdx.x;
  for (i32 left = start; left < stop && w.rank < w.rows; left += kRow) {
    Panel p;
    p.columns = min(kRow, stop - left);
    p.padded = (p.columns + kTurn - 1) / kTurn * kTurn;
    p.start = left;
    p.first = p.rank = w.rank;
    p.rows = w.rows;
    p.is_negative = false;
    p.place = w.rank + thread < w.rows ? w.rank + thread : -1;
    const u32* row = w.x + (p.is_row() ? p.place : 0) * w.width + left;
#pragma unroll
    for (i32 k = 0; k < kRow; ++k) p.x[k] = p.is_row() && k < p.columns ? row[k] : 0u;
    find_pivots(p, board, montgomery);
    const i32 count = p.rank - p.first;
    invert_pivots(board, count, m, montgomery);
    __syncthreads();
    divide(p, board, montgomery);
    exchange_rows(w, p, board);
    wait_for_cluster();  // factors may go left of the panel
    write_row(w, p, board);
    if (thread < kRow && board.number[thread] < kNone)
      w.pivots[p.first + board.number[thread]] = left + thread;
    if (count > 0) {
      w.product = mod_mul(w.product, board.product, m);
      if (p.is_negative) w.product = mod_sub(0u, w.product, m.last);
    }
    w.rank = p.rank;
    wait_for_cluster();
    if (count > 0 && left + p.columns < reach) {
      reduce_right(w, p, board, right, reach, montgomery);
      wait_for_cluster();
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
  const i32 lane = threadIdx.x % kRow, warp = threadIdx.x / kRow, warps = blockDim.x / kRow;
  for (i64 t = blockIdx.x; t < e.moduli_count * e.count; t += gridDim.x) {
    const i64 i = t / e.count;
    const u32* from = e.x.of(i, t % e.count);
    for (i32 j = lane; j < columns; j += kRow) {
#pragma unroll 16
      for (i32 r = warp; r < rows; r += warps) x[r * width + j] = from[r * e.x.stride + j * e.x.step];
    }
    __syncthreads();
    Matrix<i32> w = {x, width, rows, columns, e.order + t * rows, e.pivots + t * e.most, 0, 1u};
    eliminate_columns<kTile>(w, 0, static_cast<i32>(e.stop), columns, e.moduli[i], board, right);
    u32* out = e.out + t * rows * columns;
    for (i32 r = warp; r < rows; r += warps) {
      for (i32 j = lane; j < columns; j += kRow) out[r * columns + j] = x[r * width + j];
    }
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
                                  static_cast<i32>(e.reach), e.moduli[t / e.count], board, right);
    wait_for_cluster();
    if (block_of_cluster() == 0 && threadIdx.x == 0) {
      e.products[t] = w.product;
      e.new_ranks[t] = w.rank;
    }
  }
}

}  // extern "C"
