// Elimination in matrices modulo primes p < 2^64, and triangular systems: a block takes a matrix, a warp a
// row of it.
#include <rns/wide_ntt.cuh>

#include "grid.cuh"

using namespace rns;

namespace {

constexpr i32 kWarp = 32;

// Matrices (rows, columns), contiguous, `count` of them modulo each prime.
struct WideMatrices {
  u64* words;
  i64 total;
  i64 count;
  i64 rows;
  i64 columns;
  const WideModulus* moduli;
};

__device__ __forceinline__ u64 multiply(u64 x, WideFactor w, u64 last) {
  return last >> 63 == 0 ? ShortWideField::multiply(x, w, last) : mod_mul(x, w, last);
}

// From each of the rows first to last, the multiple of the row x by its factor, in the columns begin to end.
__device__ void subtract(const u64* x, u64* words, i64 columns, i64 first, i64 last_row, i64 begin, i64 end,
                         const WideFactor* factors, u64 last) {
  const i32 lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  for (i64 i = first + warp; i < last_row; i += warps) {
    const WideFactor w = factors[i];
    if (w.value == 0) continue;
    u64* y = words + i * columns;
    for (i64 j = begin + lane; j < end; j += kWarp) y[j] = mod_sub(y[j], multiply(x[j], w, last), last);
  }
}

}  // namespace

extern "C" {

// As `eliminate` of kernels/cpu/elimination.cpp. `factors` are memory of `rows` for each matrix.
__global__ void wide_eliminate(WideMatrices task, i64 pivot_columns, WideFactor* factors, i32* order,
                               i32* pivots, u64* products) {
  __shared__ unsigned long long pivot;
  __shared__ WideFactor inverse;
  const i64 rows = task.rows, columns = task.columns;
  const i64 most = rows < pivot_columns ? rows : pivot_columns;
  for (i64 t = blockIdx.x; t < task.total; t += gridDim.x) {
    u64* words = task.words + t * rows * columns;
    WideFactor* multiples = factors + t * rows;
    i32* places = order + t * rows;
    const WideModulus m = task.moduli[t / task.count];
    u64 product = 1;
    bool is_odd = false;
    i64 rank = 0;
    for (i64 i = threadIdx.x; i < rows; i += blockDim.x) places[i] = static_cast<i32>(i);
    for (i64 i = threadIdx.x; i < most; i += blockDim.x) pivots[t * most + i] = -1;
    for (i64 column = 0; column < pivot_columns && rank < rows; ++column) {
      if (threadIdx.x == 0) pivot = static_cast<unsigned long long>(rows);
      __syncthreads();
      for (i64 i = rank + threadIdx.x; i < rows; i += blockDim.x) {
        if (words[i * columns + column] != 0) {
          atomicMin(&pivot, static_cast<unsigned long long>(i));
          break;
        }
      }
      __syncthreads();
      const i64 found = static_cast<i64>(pivot);
      __syncthreads();
      if (found == rows) continue;
      u64* x = words + rank * columns;
      if (found != rank) {
        u64* y = words + found * columns;
        for (i64 j = threadIdx.x; j < columns; j += blockDim.x) {
          const u64 word = x[j];
          x[j] = y[j];
          y[j] = word;
        }
        if (threadIdx.x == 0) {
          const i32 place = places[rank];
          places[rank] = places[found];
          places[found] = place;
        }
        is_odd = !is_odd;
        __syncthreads();
      }
      const u64 value = x[column];
      product = mod_mul(product, value, m);
      if (threadIdx.x == 0) {
        pivots[t * most + rank] = static_cast<i32>(column);
        inverse = wide_factor(prime_inverse(value, m.last), m);
      }
      __syncthreads();
      for (i64 i = rank + 1 + threadIdx.x; i < rows; i += blockDim.x) {
        const u64 factor = multiply(words[i * columns + column], inverse, m.last);
        multiples[i] = wide_factor(factor, m);
        words[i * columns + column] = 0;
        words[i * columns + rank] = factor;
      }
      __syncthreads();
      subtract(x, words, columns, rank + 1, rows, column + 1, columns, multiples, m.last);
      ++rank;
      __syncthreads();
    }
    if (threadIdx.x == 0) products[t] = is_odd && product != 0 ? m.last - product + 1u : product;
    __syncthreads();
  }
}

// Solves upper x = right in place of the right-hand sides; upper (rows, rows) is contiguous, and `factors`
// are memory of 2 rows for each.
__global__ void wide_solve_upper(WideMatrices task, const u64* upper, WideFactor* factors) {
  const i64 rows = task.rows, columns = task.columns;
  for (i64 t = blockIdx.x; t < task.total; t += gridDim.x) {
    u64* words = task.words + t * rows * columns;
    const u64* matrix = upper + t * rows * rows;
    WideFactor *multiples = factors + 2 * t * rows, *inverses = multiples + rows;
    const WideModulus m = task.moduli[t / task.count];
    for (i64 i = threadIdx.x; i < rows; i += blockDim.x) {
      inverses[i] = wide_factor(prime_inverse(matrix[i * rows + i], m.last), m);
    }
    __syncthreads();
    for (i64 k = rows - 1; k >= 0; --k) {
      const WideFactor inverse = inverses[k];
      u64* x = words + k * columns;
      for (i64 j = threadIdx.x; j < columns; j += blockDim.x) x[j] = multiply(x[j], inverse, m.last);
      for (i64 i = threadIdx.x; i < k; i += blockDim.x) multiples[i] = wide_factor(matrix[i * rows + k], m);
      __syncthreads();
      subtract(x, words, columns, 0, k, 0, columns, multiples, m.last);
      __syncthreads();
    }
  }
}

}  // extern "C"
