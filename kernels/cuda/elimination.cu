// Linear algebra of matrices modulo primes: a block for each matrix and prime, which lies in shared memory if
// it fits, else where the result goes.
//
// Elimination divides by nothing: a row becomes |pivot row - factor pivot_row|, which scales all rows that
// are left alike. The scales are the products of the pivots before; they are divided out at the end, when all
// pivots are inverted side by side.
#include <rns/matrix.cuh>
#include <rns/product_sum.cuh>

#include "grid.cuh"

using namespace rns;

namespace {

constexpr i32 kWarp = 32;
constexpr u32 kAll = ~0u;

// Number (row, column) of matrix b modulo m_i is data[i * plane + b * matrix + row * stride + column * step].
struct Stack {
  const u32* data;
  i64 plane;
  i64 matrix;
  i64 stride;
  i64 step;

  __device__ const u32* of(i64 i, i64 b) const { return data + i * plane + b * matrix; }
};

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

// How the threads of a block go over rows and columns.
struct Walk {
  i64 row;
  i64 rows;
  i64 column;
  i64 columns;

  __device__ explicit Walk(i64 lanes)
      : row(threadIdx.x / lanes), rows(blockDim.x / lanes), column(threadIdx.x % lanes), columns(lanes) {}
};

__device__ void copy_in(const u32* from, i64 stride, i64 step, i64 rows, i64 columns, Walk t, u32* to) {
  for (i64 i = t.row; i < rows; i += t.rows) {
    for (i64 j = t.column; j < columns; j += t.columns) to[i * columns + j] = from[i * stride + j * step];
  }
}

__device__ void swap_rows(u32* x, i64 columns, i64 i, i64 k) {
  for (i64 j = threadIdx.x; j < columns; j += blockDim.x) {
    const u32 word = x[i * columns + j];
    x[i * columns + j] = x[k * columns + j];
    x[k * columns + j] = word;
  }
}

// The first row from `first` on that has no 0 in a column, `rows` if there is none; for all threads.
__device__ i64 find_pivot(const u32* x, i64 rows, i64 columns, i64 first, i64 column, i32& found) {
  __syncthreads();  // the column is written, and the last answer read
  if (threadIdx.x == 0) found = static_cast<i32>(rows);
  __syncthreads();
  for (i64 i = first + threadIdx.x; i < rows; i += blockDim.x) {
    if (x[i * columns + column] != 0) {
      atomicMin(&found, static_cast<i32>(i));
      break;
    }
  }
  __syncthreads();
  return found;
}

// Rows below `rank` without their multiples of this row, scaled by its pivot; columns right of the pivot's.
__device__ void reduce_below(u32* x, i64 rows, i64 columns, i64 rank, i64 column, Walk t, Modulus m) {
  const u32* top = x + rank * columns;
  const u32 pivot = top[column];
  for (i64 i = rank + 1 + t.row; i < rows; i += t.rows) {
    u32* row = x + i * columns;
    const u32 factor = row[column];
    for (i64 j = column + 1 + t.column; j < columns; j += t.columns) {
      row[j] = mod_mulsub(pivot, row[j], factor, top[j], m);
    }
  }
  if (rank == column) return;
  // Factors stand below the diagonal.
  __syncthreads();
  for (i64 i = rank + 1 + threadIdx.x; i < rows; i += blockDim.x) {
    x[i * columns + rank] = x[i * columns + column];
    x[i * columns + column] = 0;
  }
}

__device__ void eliminate_one(const Elimination& e, i64 i, i64 b, u32* x, u32* inverses, u32* scales) {
  __shared__ i32 found;
  const Modulus m = e.moduli[i];
  const i64 most = e.rows < e.pivot_columns ? e.rows : e.pivot_columns, t = i * e.count + b;
  i32 *order = e.order + t * e.rows, *pivots = e.pivots + t * most;
  const Walk walk(e.lanes);
  copy_in(e.x.of(i, b), e.x.stride, e.x.step, e.rows, e.columns, walk, x);
  for (i64 k = threadIdx.x; k < e.rows; k += blockDim.x) order[k] = static_cast<i32>(k);
  for (i64 k = threadIdx.x; k < most; k += blockDim.x) pivots[k] = -1;
  i64 rank = 0;
  bool is_odd = false;
  for (i64 column = 0; column < e.pivot_columns && rank < e.rows; ++column) {
    const i64 pivot = find_pivot(x, e.rows, e.columns, rank, column, found);
    if (pivot == e.rows) continue;
    if (pivot != rank) {
      swap_rows(x, e.columns, pivot, rank);
      is_odd = !is_odd;
      __syncthreads();
    }
    if (threadIdx.x == 0) {
      const i32 row = order[pivot];
      order[pivot] = order[rank];
      order[rank] = row;
      pivots[rank] = static_cast<i32>(column);
      scales[rank] = x[rank * e.columns + column];
    }
    reduce_below(x, e.rows, e.columns, rank, column, walk, m);
    ++rank;
  }
  __syncthreads();
  for (i64 k = threadIdx.x; k < rank; k += blockDim.x) inverses[k] = mod_inverse(scales[k], m.last);
  __syncthreads();
  // scales[k] becomes the inverse of the product of the pivots, as they were found, before row k.
  if (threadIdx.x == 0) {
    u32 scale = 1, product = 1;
    for (i64 k = 0; k < rank; ++k) {
      product = mod_mul(product, mod_mul(scales[k], scale, m), m);
      scales[k] = scale;
      scale = mod_mul(scale, inverses[k], m);
    }
    scales[rank] = scale;
    e.products[t] = is_odd && product != 0 ? m.last - product + 1u : product;
  }
  __syncthreads();
  u32* out = e.out + t * e.rows * e.columns;
  for (i64 r = walk.row; r < e.rows; r += walk.rows) {
    const i64 factors = r < rank ? r : rank;
    const u32 scale = scales[factors];
    for (i64 j = walk.column; j < e.columns; j += walk.columns) {
      out[r * e.columns + j] = mod_mul(x[r * e.columns + j], j < factors ? inverses[j] : scale, m);
    }
  }
  __syncthreads();  // before the memory is another matrix's
}

template <class Sum>
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
      Sum sum;
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
template <class Sum>
__device__ u32 warp_dot(const u32* a, const u32* b, i64 count, Modulus m) {
  u32 result = 0;
  i64 k = threadIdx.x % kWarp;
  while (k < count) {
    Sum sum;
    for (i32 n = 0; n < kProductTerms && k < count; ++n, k += kWarp) sum.add(a[k], b[k]);
    result = mod_add(result, sum.reduce(m), m.last);
  }
  for (i32 offset = kWarp / 2; offset > 0; offset /= 2) {
    result = mod_add(result, __shfl_xor_sync(kAll, result, offset), m.last);
  }
  return result;
}

// Column k of a matrix made 0 below place k + 1, by a similarity.
template <class Sum>
__device__ void reduce_column(u32* x, u32* factors, i64 length, i64 k, Modulus m, i32& found, u32& inverse) {
  const i64 pivot = find_pivot(x, length, length, k + 1, k, found);
  if (pivot == length) return;
  if (pivot != k + 1) {
    swap_rows(x, length, pivot, k + 1);
    __syncthreads();
    for (i64 i = threadIdx.x; i < length; i += blockDim.x) {
      const u32 word = x[i * length + pivot];
      x[i * length + pivot] = x[i * length + k + 1];
      x[i * length + k + 1] = word;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) inverse = mod_inverse(x[(k + 1) * length + k], m.last);
  __syncthreads();
  for (i64 i = k + 2 + threadIdx.x; i < length; i += blockDim.x) {
    factors[i] = mod_mul(x[i * length + k], inverse, m);
    x[i * length + k] = 0;
  }
  __syncthreads();
  const Walk walk(kWarp);
  for (i64 i = k + 2 + walk.row; i < length; i += walk.rows) {
    const u32 negative = mod_sub(0u, factors[i], m.last);
    for (i64 j = k + 1 + walk.column; j < length; j += walk.columns) {
      x[i * length + j] = mod_fma(negative, x[(k + 1) * length + j], x[i * length + j], m);
    }
  }
  __syncthreads();
  for (i64 i = walk.row; i < length; i += walk.rows) {
    u32* row = x + i * length;
    const u32 sum = warp_dot<Sum>(row + k + 2, factors + k + 2, length - k - 2, m);
    if (walk.column == 0) row[k + 1] = mod_add(row[k + 1], sum, m.last);
  }
}

// The polynomial of the leading k rows and columns of a Hessenberg matrix H is P_k, with
// P_(k+1) = (z - H_kk) P_k - sum over i < k of H_ik H_(i+1)i ... H_k(k-1) P_i. The products below the
// diagonal are in `below`, the factors of the P_i in `factors`.
template <class Sum>
__device__ void expand(const u32* x, u32* factors, u32* below, u32* polynomials, i64 length, Modulus m) {
  const i64 width = length + 1;
  if (threadIdx.x == 0) polynomials[0] = 1;
  for (i64 k = 0; k < length; ++k) {
    __syncthreads();
    for (i64 i = threadIdx.x; i <= k; i += blockDim.x) {
      const u32 product = i == k ? 1u : mod_mul(below[i], x[k * length + k - 1], m);
      below[i] = product;
      factors[i] = mod_mul(product, x[i * length + k], m);
    }
    __syncthreads();
    for (i64 d = threadIdx.x; d <= k + 1; d += blockDim.x) {
      u32 known = 0;
      i64 i = d;
      while (i <= k) {
        Sum sum;
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

template <class Sum>
__device__ void polynomial_of_one(const Polynomials& p, i64 i, i64 b, u32* x, u32* factors) {
  __shared__ i32 found;
  __shared__ u32 inverse;
  const Modulus m = p.moduli[i];
  const i64 t = i * p.count + b, width = p.length + 1;
  u32* polynomials = p.space + t * width * width;
  copy_in(p.x.of(i, b), p.x.stride, p.x.step, p.length, p.length, Walk(kWarp), x);
  for (i64 k = 0; k + 2 < p.length; ++k) {
    reduce_column<Sum>(x, factors, p.length, k, m, found, inverse);
  }
  expand<Sum>(x, factors, factors + p.length, polynomials, p.length, m);
  for (i64 k = threadIdx.x; k < width; k += blockDim.x) {
    p.out[t * width + k] = polynomials[p.length * width + k];
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
    u32* space = e.is_shared ? memory + size : e.space + t * (2 * most + 1);
    eliminate_one(e, t / e.count, t % e.count, e.is_shared ? memory : e.out + t * size, space, space + most);
  }
}

__global__ void __launch_bounds__(256) solve_upper(Triangular s) {
  const i64 across = (s.columns + s.lanes - 1) / s.lanes;
  for (i64 w = thread_index() / kWarp; w < s.moduli_count * s.count * across; w += thread_count() / kWarp) {
    const i64 first = w % across * s.lanes, b = w / across % s.count, i = w / across / s.count;
    if (products_fit_word(s.moduli[i].last)) {
      solve_columns<NarrowSum>(s, i, b, first);
    } else {
      solve_columns<ProductSum>(s, i, b, first);
    }
  }
}

__global__ void __launch_bounds__(512) characteristic_polynomials(Polynomials p) {
  const i64 size = p.length * p.length;
  for (i64 t = blockIdx.x; t < p.moduli_count * p.count; t += gridDim.x) {
    u32* x = p.is_shared ? memory : p.work + t * (size + 2 * p.length);
    if (products_fit_word(p.moduli[t / p.count].last)) {
      polynomial_of_one<NarrowSum>(p, t / p.count, t % p.count, x, x + size);
    } else {
      polynomial_of_one<ProductSum>(p, t / p.count, t % p.count, x, x + size);
    }
  }
}

}  // extern "C"
