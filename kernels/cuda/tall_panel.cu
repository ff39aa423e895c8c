// Elimination in some columns of great matrices of any number of rows: all multiprocessors share a matrix,
// and meet between launches, two for each column. The first brings a pivot; the second clears its column, a
// warp for each row, and finds the next one.
#include <rns/matrix.cuh>

#include "elimination.cuh"
#include "grid.cuh"

using namespace rns;

namespace {

constexpr i32 kWarp = 32;
constexpr u32 kAll = ~0u;
constexpr i64 kSegment = 1024;  // columns beside the panel in which a warp exchanges two rows

// Exchanges two rows in some columns that are not those of the panel. Where the number of the pivot is left
// of it, there is 0 in both, and the factor of the second one, which another warp writes.
__device__ void exchange(const Elimination& e, u32* x, i64 rank, i64 place, i64 begin) {
  const i64 end = begin + kSegment < e.columns ? begin + kSegment : e.columns;
  for (i64 j = begin + threadIdx.x % kWarp; j < end; j += kWarp) {
    if ((j >= e.start && j < e.stop) || j == rank) continue;
    const u32 word = x[rank * e.columns + j];
    x[rank * e.columns + j] = x[place * e.columns + j];
    x[place * e.columns + j] = word;
  }
}

}  // namespace

extern "C" {

// Exchanges rows, in the columns from `start` to `stop` alone, so that the pivot that was found in a column
// comes to the place of its number. Of each matrix `found` is the pivot's row, or the number of rows, which
// it becomes again; `places` gets it, or -1; `inverses` the inverse of the pivot, and `pivot_rows` its row in
// these columns.
__global__ void __launch_bounds__(128)
    bring_pivot(Elimination e, i64 column, i32* found, i32* places, u32* inverses, u32* pivot_rows) {
  for (i64 t = blockIdx.x; t < e.moduli_count * e.count; t += gridDim.x) {
    const i64 place = found[t], rank = e.new_ranks[t];
    __syncthreads();  // all threads have read them
    if (place >= e.rows) {
      if (threadIdx.x == 0) places[t] = -1;
      continue;
    }
    u32* x = e.out + t * e.rows * e.columns;
    for (i64 j = e.start + threadIdx.x; j < e.stop; j += blockDim.x) {
      const u32 word = x[place * e.columns + j];
      if (place != rank) {
        x[place * e.columns + j] = x[rank * e.columns + j];
        x[rank * e.columns + j] = word;
      }
      pivot_rows[t * (e.stop - e.start) + j - e.start] = word;
      if (j != column) continue;
      const Modulus m = e.moduli[t / e.count];
      const u32 product = mod_mul(e.products[t], word, m);
      e.products[t] = place == rank ? product : mod_sub(0u, product, m.last);
      inverses[t] = prime_inverse(word, m.last);
      i32* order = e.order + t * e.rows;
      const i32 row = order[rank];
      order[rank] = order[place];
      order[place] = row;
      e.pivots[t * e.most + rank] = static_cast<i32>(column);
      e.new_ranks[t] = static_cast<i32>(rank + 1);
      places[t] = static_cast<i32>(place);
      found[t] = static_cast<i32>(e.rows);
    }
  }
}

// Clears a column below its pivot, if `places` has one, takes the rest of both rows to their places, and
// finds the pivot of the next column. Factors stand in the column of the number of their pivot. No matrix has
// fewer than `first` pivots.
__global__ void __launch_bounds__(256)
    clear_column(Elimination e, i64 column, i64 first, i32* found, const i32* places, const u32* inverses,
                 const u32* pivot_rows) {
  const i32 lane = threadIdx.x % kWarp;
  const i64 left = e.rows - first, each = left + (e.columns + kSegment - 1) / kSegment, next = column + 1;
  const i64 warps = thread_count() / kWarp, all = e.moduli_count * e.count * each;
  for (i64 w = thread_index() / kWarp; w < all; w += warps) {
    const i64 t = w / each, i = first + w % each, rank = e.new_ranks[t];
    u32* x = e.out + t * e.rows * e.columns;
    if (i >= e.rows) {
      if (places[t] >= rank) exchange(e, x, rank - 1, places[t], (i - e.rows) * kSegment);
      continue;
    }
    if (i < rank) continue;
    u32* row = x + i * e.columns;
    u32 factor = 0;
    const Modulus m = e.moduli[t / e.count];
    if (places[t] >= 0) {
      if (lane == 0) factor = mod_mul(row[column], inverses[t], m);
      factor = __shfl_sync(kAll, factor, 0);
    }
    const u32* pivot_row = pivot_rows + t * (e.stop - e.start) - e.start;
    u32 follows = lane == 0 && factor == 0 && next < e.stop ? row[next] : 0u;
    for (i64 j = column + lane; factor != 0 && j < e.stop; j += kWarp) {
      const u32 word = j == column ? 0u : mod_sub(row[j], mod_mul(factor, pivot_row[j], m), m.last);
      row[j] = word;
      if (j == next) follows = word;
    }
    if (factor != 0 && lane == 0) row[rank - 1] = factor;  // after 0, where it is the same column
    if (follows != 0 && i < *static_cast<volatile i32*>(found + t)) atomicMin(found + t, static_cast<i32>(i));
  }
}

}  // extern "C"
