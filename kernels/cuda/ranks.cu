// Orders, pivots and ranks of matrices: what elimination begins with, and where it is divided.
#include <rns/base.cuh>

#include "grid.cuh"

using namespace rns;

extern "C" {

// What elimination begins with, of `count` matrices: rows in their order, no pivots, and products of none.
__global__ void no_pivots(i64 count, i64 rows, i64 most, i32* order, i32* pivots, u32* products) {
  const i64 first = thread_index(), step = thread_count();
  for (i64 k = first; k < count * rows; k += step) order[k] = static_cast<i32>(k % rows);
  for (i64 k = first; k < count * most; k += step) pivots[k] = -1;
  for (i64 k = first; k < count; k += step) products[k] = 1;
}

// Ranks `half` above the first ones, but not above the last ones.
__global__ void middle_ranks(const i32* first, const i32* last, i64 count, i32 half, i32* middle) {
  for (i64 k = thread_index(); k < count; k += thread_count()) middle[k] = min(first[k] + half, last[k]);
}

}  // extern "C"
