// Linear algebra of matrices modulo primes: a block for each matrix and prime, which lies in shared memory if
// it fits, else where the result goes.
//
// Elimination divides by nothing: a row becomes |pivot row - factor pivot_row|, which scales all rows that
// are left alike. The scales are the products of the pivots before; they are divided out at the end, when all
// pivots are inverted side by side.
#include <rns/matrix.cuh>
#include <rns/product_sum.cuh>

#include "grid.cuh"
#include "stack.cuh"

using namespace rns;

namespace {

constexpr i32 kWarp = 32;
constexpr u32 kAll = ~0u;

// Results are (n, count, ...), contiguous; `space` is memory for the scales, two of each pivot.
struct Elimination {
  Stack x;
  u32* out;
  i32* order;
  i32* pivots;
  u32* products;
  u32* space;
  const Modulus* moduli;
  i64 moduli_count;
  i64 count;
  i64 rows;
  i64 columns;
  i64 pivot_columns;
  i64 is_shared;
  i64 lanes;  // threads along a row, a power of two
};

struct Triangular {
  Stack upper;
  Stack right;
  const u32* inverses;  // (n, count, rows), of the diagonals
  u32* out;
  const Modulus* moduli;
  i64 moduli_count;
  i64 count;
  i64 rows;
  i64 columns;
  i64 lanes;  // columns of a warp, a power of two
};

// `space` is memory for the polynomials of all leading rows and columns, (length + 1)^2 words of each matrix;
// `work`, unless it is shared, for the matrix and two of its rows.
struct Polynomials {
  Stack x;
  u32* out;
  u32* space;
  u32* work;
  const Modulus* moduli;
  i64 moduli_count;
  i64 count;
  i64 length;
  i64 is_shared;
};

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
                        u32* to) {
  for (Index i = t.row; i < rows; i += t.rows) {
    for (Index j = t.column; j < columns; j += t.columns) {
      to[i * columns + j] = from[i * stack.stride + j * stack.step];
    }
  }
}

template <class Index>
__device__ void swap_rows(u32* x, Index columns, Index i, Index k) {
  for (Index j = threadIdx.x; j < columns; j += blockDim.x) {
    const u32 word = x[i * columns + j];
    x[i * columns + j] = x[k * columns + j];
    x[k * columns + j] = word;
  }
}

// The first row from `first` on that has no 0 in a column, `rows` if there is none; for all threads.
template <class Index>
__device__ Index find_pivot(const u32* x, Index rows, Index columns, Index first, Index column, i32& found) {
  __syncthreads();  // the column is written
  if (x[first * columns + column] != 0) return first;
  if (threadIdx.x == 0) found = static_cast<i32>(rows);
  __syncthreads();
  for (Index i = first + static_cast<Index>(threadIdx.x); i < rows; i += blockDim.x) {
    if (x[i * columns + column] != 0) {
      atomicMin(&found, static_cast<i32>(i));
      break;
    }
  }
  __syncthreads();
  const Index pivot = found;
  __syncthreads();  // before the next answer
  return pivot;
}

// Rows below `rank` without their multiples of this row, scaled by its pivot; columns right of the pivot's.
template <class Index>
__device__ void reduce_below(u32* x, Index rows, Index columns, Index rank, Index column, Walk<Index> t,
                             Modulus m) {
  const u32* top = x + rank * columns;
  const u32 pivot = top[column];
  for (Index j = column + 1 + t.column; j < columns; j += t.columns) {
    const u32 above = top[j];
    for (Index i = rank + 1 + t.row; i < rows; i += t.rows) {
      u32* row = x + i * columns;
      row[j] = mod_mulsub(pivot, row[j], row[column], above, m);
    }
  }
  if (rank == column) return;
  // Factors stand below the diagonal.
  __syncthreads();
  for (Index i = rank + 1 + static_cast<Index>(threadIdx.x); i < rows; i += blockDim.x) {
    x[i * columns + rank] = x[i * columns + column];
    x[i * columns + column] = 0;
  }
}

template <class Index>
__device__ void eliminate_one(const Elimination& e, i64 i, i64 b, u32* x, u32* inverses, u32* scales) {
  __shared__ i32 found;
  const Modulus m = e.moduli[i];
  const Index rows = static_cast<Index>(e.rows), columns = static_cast<Index>(e.columns);
  const Index pivot_columns = static_cast<Index>(e.pivot_columns);
  const Index most = rows < pivot_columns ? rows : pivot_columns;
  const i64 t = i * e.count + b;
  i32 *order = e.order + t * rows, *pivots = e.pivots + t * most;
  const Walk<Index> walk(static_cast<i32>(e.lanes));
  copy_in(e.x.of(i, b), e.x, rows, columns, walk, x);
  for (Index k = threadIdx.x; k < rows; k += blockDim.x) order[k] = static_cast<i32>(k);
  for (Index k = threadIdx.x; k < most; k += blockDim.x) pivots[k] = -1;
  Index rank = 0;
  bool is_odd = false;
  for (Index column = 0; column < pivot_columns && rank < rows; ++column) {
    const Index pivot = find_pivot(x, rows, columns, rank, column, found);
    if (pivot == rows) continue;
    if (pivot != rank) {
      swap_rows(x, columns, pivot, rank);
      is_odd = !is_odd;
      __syncthreads();
    }
    if (threadIdx.x == 0) {
      const i32 row = order[pivot];
      order[pivot] = order[rank];
      order[rank] = row;
      pivots[rank] = static_cast<i32>(column);
      scales[rank] = x[rank * columns + column];
    }
    reduce_below(x, rows, columns, rank, column, walk, m);
    ++rank;
  }
  __syncthreads();
  for (Index k = threadIdx.x; k < rank; k += blockDim.x) inverses[k] = prime_inverse(scales[k], m.last);
  __syncthreads();
  // scales[k] becomes the inverse of the product of the pivots, as they were found, before row k.
  if (threadIdx.x == 0) {
    u32 scale = 1, product = 1;
    for (Index k = 0; k < rank; ++k) {
      product = mod_mul(product, mod_mul(scales[k], scale, m), m);
      scales[k] = scale;
      scale = mod_mul(scale, inverses[k], m);
    }
    scales[rank] = scale;
    e.products[t] = is_odd && product != 0 ? m.last - product + 1u : product;
  }
  __syncthreads();
  u32* out = e.out + t * e.rows * e.columns;
  for (Index r = walk.row; r < rows; r += walk.rows) {
    const Index factors = r < rank ? r : rank;
    const u32 scale = scales[factors];
    for (Index j = walk.column; j < columns; j += walk.columns) {
      out[r * columns + j] = mod_mul(x[r * columns + j], j < factors ? inverses[j] : scale, m);
    }
  }
  __syncthreads();  // before the memory is another matrix's
}

__device__ void solve_columns(const Triangular& s, i64 i, i64 b, i64 first) {
  const i64 lane = threadIdx.x % kWarp, column = first + lane % s.lanes;
  const i64 part = lane / s.lanes, parts = kWarp / s.lanes, t = i * s.count + b;
  const bool inside = column < s.columns;
  const Modulus m = s.moduli[i];
  const u32* right = s.right.of(i, b) + (inside ? column : first) * s.right.step;
  u32* x = s.out + t * s.rows * s.columns + (inside ? column : first);
  for (i64 k = s.rows - 1; k >= 0; --k) {
    const u32* row = s.upper.of(i, b) + k * s.upper.stride;
    u32 known = 0;
    i64 j = k + 1 + part;
    while (j < s.rows) {
      ProductSum sum;
      for (i32 n = 0; n < kProductTerms && j < s.rows; ++n, j += parts) {
        sum.add(row[j * s.upper.step], x[j * s.columns]);
      }
      known = mod_add(known, sum.reduce(m), m.last);
    }
    for (i64 offset = s.lanes; offset < kWarp; offset *= 2) {
      known = mod_add(known, __shfl_xor_sync(kAll, known, static_cast<i32>(offset)), m.last);
    }
    const u32 rest = mod_sub(right[k * s.right.stride], known, m.last);
    if (part == 0 && inside) x[k * s.columns] = mod_mul(rest, s.inverses[t * s.rows + k], m);
    __syncwarp();
  }
}

// Sum over a warp of every kWarp-th product of two vectors from the lane's own on, modulo m.
__device__ u32 warp_dot(const u32* a, const u32* b, i64 count, Modulus m) {
  u32 result = 0;
  i64 k = threadIdx.x % kWarp;
  while (k < count) {
    ProductSum sum;
    for (i32 n = 0; n < kProductTerms && k < count; ++n, k += kWarp) sum.add(a[k], b[k]);
    result = mod_add(result, sum.reduce(m), m.last);
  }
  for (i32 offset = kWarp / 2; offset > 0; offset /= 2) {
    result = mod_add(result, __shfl_xor_sync(kAll, result, offset), m.last);
  }
  return result;
}

// Column k of a matrix made 0 below place k + 1, by a similarity.
template <class Index>
__device__ void reduce_column(u32* x, u32* factors, Index length, Index k, Modulus m, i32& found,
                              u32& inverse) {
  const Index pivot = find_pivot(x, length, length, k + 1, k, found);
  if (pivot == length) return;
  if (pivot != k + 1) {
    swap_rows(x, length, pivot, k + 1);
    __syncthreads();
    for (Index i = threadIdx.x; i < length; i += blockDim.x) {
      const u32 word = x[i * length + pivot];
      x[i * length + pivot] = x[i * length + k + 1];
      x[i * length + k + 1] = word;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) inverse = prime_inverse(x[(k + 1) * length + k], m.last);
  __syncthreads();
  for (Index i = k + 2 + threadIdx.x; i < length; i += blockDim.x) {
    factors[i] = mod_mul(x[i * length + k], inverse, m);
    x[i * length + k] = 0;
  }
  __syncthreads();
  const Walk<Index> walk(kWarp);
  for (Index i = k + 2 + walk.row; i < length; i += walk.rows) {
    const u32 negative = mod_sub(0u, factors[i], m.last);
    for (Index j = k + 1 + walk.column; j < length; j += walk.columns) {
      x[i * length + j] = mod_fma(negative, x[(k + 1) * length + j], x[i * length + j], m);
    }
  }
  __syncthreads();
  for (Index i = walk.row; i < length; i += walk.rows) {
    u32* row = x + i * length;
    const u32 sum = warp_dot(row + k + 2, factors + k + 2, length - k - 2, m);
    if (walk.column == 0) row[k + 1] = mod_add(row[k + 1], sum, m.last);
  }
}

// The polynomial of the leading k rows and columns of a Hessenberg matrix H is P_k, with
// P_(k+1) = (z - H_kk) P_k - sum over i < k of H_ik H_(i+1)i ... H_k(k-1) P_i. The products below the
// diagonal are in `below`, the factors of the P_i in `factors`.
template <class Index>
__device__ void expand(const u32* x, u32* factors, u32* below, u32* polynomials, Index length, Modulus m) {
  const Index width = length + 1;
  if (threadIdx.x == 0) polynomials[0] = 1;
  for (Index k = 0; k < length; ++k) {
    __syncthreads();
    for (Index i = threadIdx.x; i <= k; i += blockDim.x) {
      const u32 product = i == k ? 1u : mod_mul(below[i], x[k * length + k - 1], m);
      below[i] = product;
      factors[i] = mod_mul(product, x[i * length + k], m);
    }
    __syncthreads();
    for (Index d = threadIdx.x; d <= k + 1; d += blockDim.x) {
      u32 known = 0;
      Index i = d;
      while (i <= k) {
        ProductSum sum;
        for (i32 n = 0; n < kProductTerms && i <= k; ++n, ++i)
          sum.add(factors[i], polynomials[i * width + d]);
        known = mod_add(known, sum.reduce(m), m.last);
      }
      const u32 shifted = d > 0 ? polynomials[k * width + d - 1] : 0u;
      polynomials[(k + 1) * width + d] = mod_sub(shifted, known, m.last);
    }
  }
  __syncthreads();
}

template <class Index>
__device__ void polynomial_of_one(const Polynomials& p, i64 i, i64 b, u32* x, u32* factors) {
  __shared__ i32 found;
  __shared__ u32 inverse;
  const Modulus m = p.moduli[i];
  const Index length = static_cast<Index>(p.length), width = length + 1;
  const i64 t = i * p.count + b;
  u32* polynomials = p.space + t * (p.length + 1) * (p.length + 1);
  copy_in(p.x.of(i, b), p.x, length, length, Walk<Index>(kWarp), x);
  for (Index k = 0; k + 2 < length; ++k) {
    reduce_column(x, factors, length, k, m, found, inverse);
  }
  expand(x, factors, factors + length, polynomials, length, m);
  for (Index k = threadIdx.x; k < width; k += blockDim.x) {
    p.out[t * (p.length + 1) + k] = polynomials[length * width + k];
  }
  __syncthreads();  // before the memory is another matrix's
}

extern __shared__ u32 memory[];

}  // namespace

extern "C" {

__global__ void __launch_bounds__(1024) eliminate(Elimination e) {
  const i64 most = e.rows < e.pivot_columns ? e.rows : e.pivot_columns;
  const i64 size = e.rows * e.columns;
  for (i64 t = blockIdx.x; t < e.moduli_count * e.count; t += gridDim.x) {
    const i64 i = t / e.count, b = t % e.count;
    if (e.is_shared) {
      u32* space = memory + size;
      eliminate_one<i32>(e, i, b, memory, space, space + most);
    } else {
      u32* space = e.space + t * (2 * most + 1);
      eliminate_one<i64>(e, i, b, e.out + t * size, space, space + most);
    }
  }
}

__global__ void __launch_bounds__(256) solve_upper(Triangular s) {
  const i64 across = (s.columns + s.lanes - 1) / s.lanes;
  for (i64 w = thread_index() / kWarp; w < s.moduli_count * s.count * across; w += thread_count() / kWarp) {
    const i64 first = w % across * s.lanes, b = w / across % s.count, i = w / across / s.count;
    solve_columns(s, i, b, first);
  }
}

__global__ void __launch_bounds__(512) characteristic_polynomials(Polynomials p) {
  const i64 size = p.length * p.length;
  for (i64 t = blockIdx.x; t < p.moduli_count * p.count; t += gridDim.x) {
    const i64 i = t / p.count, b = t % p.count;
    if (p.is_shared) {
      polynomial_of_one<i32>(p, i, b, memory, memory + size);
    } else {
      u32* x = p.work + t * (size + 2 * p.length);
      polynomial_of_one<i64>(p, i, b, x, x + size);
    }
  }
}

}  // extern "C"
