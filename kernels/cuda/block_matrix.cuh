// How a block of threads goes over a matrix of its own, in shared memory or not: copies, exchanges and
// pivots.
#pragma once

#include <rns/base.cuh>

#include "stack.cuh"

namespace rns {

constexpr i32 kWarp = 32;
constexpr u32 kAll = ~0u;

// How the threads of a block go over rows and columns. Index is 32 bits in shared memory, else 64.
template <class Index>
struct Walk {
  Index row;
  Index rows;
  Index column;
  Index columns;

  __device__ explicit Walk(i32 lanes)
      : row(threadIdx.x / lanes), rows(blockDim.x / lanes), column(threadIdx.x % lanes), columns(lanes) {}
};

template <class Index>
__device__ void copy_in(const u32* from, const Stack& stack, Index rows, Index columns, Walk<Index> t,
                        u32* to, Index width) {
  for (Index i = t.row; i < rows; i += t.rows) {
    for (Index j = t.column; j < columns; j += t.columns) {
      to[i * width + j] = from[i * stack.stride + j * stack.step];
    }
  }
}

template <class Index>
__device__ void swap_rows(u32* x, Index width, Index columns, Index i, Index k) {
  for (Index j = threadIdx.x; j < columns; j += blockDim.x) {
    const u32 word = x[i * width + j];
    x[i * width + j] = x[k * width + j];
    x[k * width + j] = word;
  }
}

// The first row from `first` on that has no 0 in a column, `rows` if there is none; for all threads.
template <class Index>
__device__ Index find_pivot(const u32* x, Index rows, Index width, Index first, Index column, i32& found) {
  __syncthreads();  // the column is written
  if (x[first * width + column] != 0) return first;
  if (threadIdx.x == 0) found = static_cast<i32>(rows);
  __syncthreads();
  for (Index i = first + static_cast<Index>(threadIdx.x); i < rows; i += blockDim.x) {
    if (x[i * width + column] != 0) {
      atomicMin(&found, static_cast<i32>(i));
      break;
    }
  }
  __syncthreads();
  const Index pivot = found;
  __syncthreads();  // before the next answer
  return pivot;
}

}  // namespace rns
