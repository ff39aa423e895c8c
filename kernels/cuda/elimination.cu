// Linear algebra of matrices modulo primes: a block for each matrix and prime, which lies in shared memory if
// it fits, else where the result goes. Elimination here is for the prime 2 and for more rows than a thread
// each can have; eliminate_rows.cu has the rest.
//
// Elimination goes by panels of columns. In a panel it divides by nothing: a row becomes
// |pivot row - factor pivot_row|, which scales all rows that are left alike. The scales are the products of
// the pivots before; all pivots of a panel are inverted side by side, and rows and factors divided. What is
// right of the panel loses a product of matrices, whose sums are reduced once. Of great matrices a launch
// eliminates in one great panel, and the caller multiplies matrices between.
#include <rns/matrix.cuh>
#include <rns/product_sum.cuh>

#include "elimination.cuh"
#include "grid.cuh"

using namespace rns;

namespace {

constexpr i32 kWarp = 32;
constexpr u32 kAll = ~0u;
constexpr i32 kPanel = 16;               // columns of a panel, and rows of a block of a triangular system
constexpr i32 kPanelWidth = kPanel + 1;  // words of a row of its copy, against conflicts of banks
constexpr i32 kOwn = 4;                  // rows and columns of a product that a thread computes
constexpr i32 kLanes = 8;                // threads along a row of a product

struct Triangular {
  Stack upper;
  Stack right;
  Stack out;
  const u32* inverses;  // (n, count, rows), of the diagonals
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

// ---- elimination ------------------------------------------------------------------------------------------

// A matrix that is worked on by a block, in rows of `width` words, and what is known of its pivots.
template <class Index>
struct Working {
  u32* x;
  Index width;
  Index rows;
  Index columns;
  i32* order;
  i32* pivots;
  Modulus m;
  Index rank;
  u32 product;
};

// Columns `start` to `stop` of a matrix, kPanel at most: where they are in it, or a copy in shared memory.
template <class Index>
struct Panel {
  u32* x;  // in rows of `width` words
  Index width;
  Index start;
  Index stop;
  bool is_copy;
};

// Of a panel's pivots: as they are found, then inverted, and their columns in it; then the inverses of what
// the rows are scaled by.
struct Scales {
  u32 pivots[kPanel];
  u32 rows[kPanel];
  i32 columns[kPanel];
  i32 found;
  u32 product;
};

// A panel's factors: that of row i by its k-th pivot is x[i * width + k].
template <class Index>
struct Factors {
  const u32* x;
  Index width;
};

template <class Index>
__device__ void copy_panel(const Working<Index>& w, const Panel<Index>& panel, Index first, bool is_back) {
  const Walk<Index> t(kPanel);
  const Index column = panel.start + t.column;
  if (column >= panel.stop) return;
  for (Index i = first + t.row; i < w.rows; i += t.rows) {
    u32& own = panel.x[i * panel.width + t.column];
    u32& word = w.x[i * w.width + column];
    if (is_back) {
      word = own;
    } else {
      own = word;
    }
  }
}

// Rows below `rank` of a panel without their multiples of this row, scaled by its pivot, in a column: of the
// columns after it, from First on. Two threads share a row, and take every other column, all at once.
template <i32 First, class Index>
__device__ void reduce_below(const Panel<Index>& panel, Index rows, Index rank, i32 column, Modulus m) {
  constexpr i32 own = (kPanel - First) / 2;
  const i32 columns = static_cast<i32>(panel.stop - panel.start), left = First + threadIdx.x % 2;
  const u32* top = panel.x + rank * panel.width;
  const u32 pivot = top[column];
  u32 above[own], words[own];
#pragma unroll
  for (i32 j = 0; j < own; ++j) above[j] = left + 2 * j < columns ? top[left + 2 * j] : 0u;
  const Index step = blockDim.x / 2;
  for (Index i = rank + 1 + static_cast<Index>(threadIdx.x / 2); i < rows; i += step) {
    u32* row = panel.x + i * panel.width;
    const u32 factor = row[column];
#pragma unroll
    for (i32 j = 0; j < own; ++j) words[j] = left + 2 * j < columns ? row[left + 2 * j] : 0u;
#pragma unroll
    for (i32 j = 0; j < own; ++j) words[j] = mod_mulsub(pivot, words[j], factor, above[j], m);
#pragma unroll
    for (i32 j = 0; j < own; ++j) {
      if (left + 2 * j > column && left + 2 * j < columns) row[left + 2 * j] = words[j];
    }
  }
}

// Finds the pivots of a panel, and changes its columns alone. What clears a column stays in it.
template <class Index>
__device__ void find_pivots(Working<Index>& w, const Panel<Index>& panel, Scales& scales) {
  const Index first = w.rank;
  for (i32 column = 0; column < panel.stop - panel.start && w.rank < w.rows; ++column) {
    const Index pivot =
        find_pivot(panel.x, w.rows, panel.width, w.rank, static_cast<Index>(column), scales.found);
    if (pivot == w.rows) continue;
    if (pivot != w.rank) {
      swap_rows(w.x, w.width, w.columns, pivot, w.rank);
      if (panel.is_copy) swap_rows(panel.x, panel.width, panel.stop - panel.start, pivot, w.rank);
      if (threadIdx.x == 0) {
        const i32 row = w.order[pivot];
        w.order[pivot] = w.order[w.rank];
        w.order[w.rank] = row;
      }
      w.product = mod_sub(0u, w.product, w.m.last);
      __syncthreads();
    }
    if (threadIdx.x == 0) {
      w.pivots[w.rank] = static_cast<i32>(panel.start) + column;
      scales.pivots[w.rank - first] = panel.x[w.rank * panel.width + column];
      scales.columns[w.rank - first] = column;
    }
    if (column < kPanel / 2) {
      reduce_below<0>(panel, w.rows, w.rank, column, w.m);
    } else {
      reduce_below<kPanel / 2>(panel, w.rows, w.rank, column, w.m);
    }
    ++w.rank;
  }
}

// Inverts `count` pivots by one warp, and multiplies them.
__device__ void invert_pivots(Scales& scales, i32 count, Modulus m) {
  if (threadIdx.x >= kWarp) return;
  const i32 lane = threadIdx.x;
  const u32 pivot = lane < count ? scales.pivots[lane] : 1u;
  const u32 inverse = prime_inverse(pivot, m.last);
  // The product of the inverses of the pivots before: each row is scaled by all of these.
  u32 scale = inverse;
  for (i32 offset = 1; offset < kPanel; offset *= 2) {
    const u32 other = __shfl_up_sync(kAll, scale, offset);
    if (lane >= offset) scale = mod_mul(scale, other, m);
  }
  scale = __shfl_up_sync(kAll, scale, 1);
  if (lane == 0) scale = 1;
  u32 product = lane < count ? mod_mul(pivot, scale, m) : 1u;
  for (i32 offset = kPanel / 2; offset > 0; offset /= 2) {
    product = mod_mul(product, __shfl_xor_sync(kAll, product, offset), m);
  }
  if (lane == 0) scales.product = product;
  if (lane < count) {
    scales.pivots[lane] = inverse;
    scales.rows[lane] = scale;
  }
}

// Divides the rows and factors of a panel, whose rows begin at `first`, by what they are scaled by, and takes
// them to their places in the matrix: factors stand below the diagonal.
template <class Index>
__device__ Factors<Index> divide_panel(const Working<Index>& w, const Panel<Index>& panel, Index first,
                                       const Scales& scales) {
  const i32 count = static_cast<i32>(w.rank - first), columns = static_cast<i32>(panel.stop - panel.start);
  // Whether each column has its pivot in the diagonal, so that factors are in place.
  const bool is_plain = first == panel.start && count > 0 && scales.columns[count - 1] == count - 1;
  const bool is_left = panel.is_copy && !is_plain;
  if (is_left) copy_panel(w, panel, first, true);
  __syncthreads();
  u32* x = is_left ? w.x + panel.start : panel.x;
  const Index width = is_left ? w.width : panel.width;
  for (Index i = first + static_cast<Index>(threadIdx.x); i < w.rows; i += blockDim.x) {
    u32* row = x + i * width;
    const i32 own = i < w.rank ? static_cast<i32>(i - first) : count;  // factors of the row
    if (i < w.rank) {
      const u32 scale = scales.rows[own];
      for (i32 c = scales.columns[own]; c < columns; ++c) row[c] = mod_mul(row[c], scale, w.m);
    }
    for (i32 k = 0; k < own; ++k) {
      const i32 column = scales.columns[k];
      const u32 factor = mod_mul(row[column], scales.pivots[k], w.m);
      row[column] = 0;
      row[first - panel.start + k] = factor;
    }
  }
  __syncthreads();
  if (panel.is_copy && is_plain) copy_panel(w, panel, first, true);
  if (is_plain) return {panel.x, panel.width};
  return {w.x + first, w.width};
}

// Solves L y = b for `count` <= kPanel rows of one column: b is replaced by y.
template <class Sum, class Width, class Index>
__device__ void solve_few(const u32* lower, Width lower_width, u32* x, Index width, i32 count, Modulus m) {
  u32 y[kPanel];
#pragma unroll
  for (i32 k = 0; k < kPanel; ++k) y[k] = k < count ? x[k * width] : 0u;
#pragma unroll
  for (i32 k = 1; k < kPanel; ++k) {
    if (k < count) {
      Sum sum;
#pragma unroll
      for (i32 j = 0; j < k; ++j) sum.add(lower[k * lower_width + j], y[j]);
      y[k] = mod_sub(y[k], sum.reduce(m), m.last);
      x[k * width] = y[k];
    }
  }
}

// Subtracts from rows rank to the last, columns start to stop, the product of a panel's factors and rows.
template <class Sum, class Index>
__device__ void subtract_product(const Working<Index>& w, Factors<Index> factors, Index first, Index start,
                                 Index stop) {
  const Walk<Index> t(kLanes);
  const i32 terms = static_cast<i32>(w.rank - first);
  for (Index top = w.rank + t.row; top < w.rows; top += t.rows * kOwn) {
    for (Index left = start + t.column; left < stop; left += kLanes * kOwn) {
      const u32* a[kOwn];
      const u32* b[kOwn];
#pragma unroll
      for (i32 k = 0; k < kOwn; ++k) {  // beyond the edges something that is there
        a[k] = factors.x + min(top + k * t.rows, w.rows - 1) * factors.width;
        b[k] = w.x + first * w.width + min(left + k * kLanes, stop - 1);
      }
      Sum sums[kOwn][kOwn];
      for (i32 k = 0; k < terms; ++k) {
        u32 x[kOwn], y[kOwn];
#pragma unroll
        for (i32 r = 0; r < kOwn; ++r) x[r] = a[r][k];
#pragma unroll
        for (i32 c = 0; c < kOwn; ++c) y[c] = b[c][k * w.width];
#pragma unroll
        for (i32 r = 0; r < kOwn; ++r) {
#pragma unroll
          for (i32 c = 0; c < kOwn; ++c) sums[r][c].add(x[r], y[c]);
        }
      }
#pragma unroll
      for (i32 r = 0; r < kOwn; ++r) {
#pragma unroll
        for (i32 c = 0; c < kOwn; ++c) {
          const Index i = top + r * t.rows, j = left + c * kLanes;
          if (i < w.rows && j < stop) {
            u32& word = w.x[i * w.width + j];
            word = mod_sub(word, sums[r][c].reduce(w.m), w.m.last);
          }
        }
      }
    }
  }
}

// Eliminates with pivots of columns start to stop; rows are changed up to the column `reach`. With memory for
// panels they are copied to it.
template <class Sum, class Index>
__device__ void eliminate_columns(Working<Index>& w, Index start, Index stop, Index reach, u32* panels) {
  __shared__ Scales scales;
  for (Index left = start; left < stop && w.rank < w.rows; left += kPanel) {
    const Index first = w.rank, end = min(left + kPanel, stop);
    Panel<Index> panel = {w.x + left, w.width, left, end, panels != nullptr};
    if (panel.is_copy) {
      panel.x = panels;
      panel.width = kPanelWidth;
      __syncthreads();  // the matrix is written, and the panel before done with
      copy_panel(w, panel, first, false);
    }
    find_pivots(w, panel, scales);
    const i32 count = static_cast<i32>(w.rank - first);
    __syncthreads();
    invert_pivots(scales, count, w.m);
    __syncthreads();
    w.product = mod_mul(w.product, scales.product, w.m);
    const Factors<Index> factors = divide_panel(w, panel, first, scales);
    const u32* lower = factors.x + first * factors.width;
    for (Index j = end + static_cast<Index>(threadIdx.x); j < reach; j += blockDim.x) {
      solve_few<Sum>(lower, factors.width, w.x + first * w.width + j, w.width, count, w.m);
    }
    __syncthreads();
    subtract_product<Sum>(w, factors, first, end, reach);
  }
  __syncthreads();
}

template <class Index>
__device__ void eliminate_one(const Elimination& e, i64 i, i64 b, u32* x, Index width, u32* panels) {
  const i64 t = i * e.count + b;
  Working<Index> w = {x,
                      width,
                      static_cast<Index>(e.rows),
                      static_cast<Index>(e.columns),
                      e.order + t * e.rows,
                      e.pivots + t * e.most,
                      e.moduli[i],
                      static_cast<Index>(e.ranks[t]),
                      e.products[t]};
  const Index start = static_cast<Index>(e.start), stop = static_cast<Index>(e.stop);
  const Index reach = static_cast<Index>(e.reach);
  if (static_cast<u64>(w.m.last) * w.m.last <= ~static_cast<u64>(0) / kPanel) {
    eliminate_columns<NarrowSum>(w, start, stop, reach, panels);
  } else {
    eliminate_columns<ProductSum>(w, start, stop, reach, panels);
  }
  if (threadIdx.x == 0) {
    e.products[t] = w.product;
    e.new_ranks[t] = static_cast<i32>(w.rank);
  }
}

// ---- triangular systems -----------------------------------------------------------------------------------

__device__ void solve_columns(const Triangular& s, i64 i, i64 b, i64 first) {
  const i64 lane = threadIdx.x % kWarp, column = first + lane % s.lanes;
  const i64 part = lane / s.lanes, parts = kWarp / s.lanes, t = i * s.count + b;
  const bool inside = column < s.columns;
  const Modulus m = s.moduli[i];
  const u32* right = s.right.of(i, b) + (inside ? column : first) * s.right.step;
  u32* x = const_cast<u32*>(s.out.of(i, b)) + (inside ? column : first) * s.out.step;
  for (i64 k = s.rows - 1; k >= 0; --k) {
    const u32* row = s.upper.of(i, b) + k * s.upper.stride;
    u32 known = 0;
    i64 j = k + 1 + part;
    while (j < s.rows) {
      ProductSum sum;
      for (i32 n = 0; n < kProductTerms && j < s.rows; ++n, j += parts) {
        sum.add(row[j * s.upper.step], x[j * s.out.stride]);
      }
      known = mod_add(known, sum.reduce(m), m.last);
    }
    for (i64 offset = s.lanes; offset < kWarp; offset *= 2) {
      known = mod_add(known, __shfl_xor_sync(kAll, known, static_cast<i32>(offset)), m.last);
    }
    const u32 rest = mod_sub(right[k * s.right.stride], known, m.last);
    if (part == 0 && inside) x[k * s.out.stride] = mod_mul(rest, s.inverses[t * s.rows + k], m);
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
    swap_rows(x, length, length, pivot, k + 1);
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
  copy_in(p.x.of(i, b), p.x, length, length, Walk<Index>(kWarp), x, length);
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

// Whole matrices, which are copied to shared memory and from there to their results.
__global__ void __launch_bounds__(512) eliminate(Elimination e) {
  const i32 rows = static_cast<i32>(e.rows), columns = static_cast<i32>(e.columns);
  const i32 width = columns | 1;  // against conflicts of banks
  for (i64 t = blockIdx.x; t < e.moduli_count * e.count; t += gridDim.x) {
    const i64 i = t / e.count, b = t % e.count;
    const Walk<i32> walk(kWarp);
    copy_in(e.x.of(i, b), e.x, rows, columns, walk, memory, width);
    eliminate_one<i32>(e, i, b, memory, width, nullptr);
    u32* out = e.out + t * e.rows * e.columns;
    for (i32 r = walk.row; r < rows; r += walk.rows) {
      for (i32 j = walk.column; j < columns; j += walk.columns) out[r * columns + j] = memory[r * width + j];
    }
    __syncthreads();  // before the memory is another matrix's
  }
}

// Some columns of great matrices, which are in their results.
__global__ void __launch_bounds__(512) eliminate_great(Elimination e) {
  for (i64 t = blockIdx.x; t < e.moduli_count * e.count; t += gridDim.x) {
    u32* x = e.out + t * e.rows * e.columns;
    eliminate_one<i64>(e, t / e.count, t % e.count, x, e.columns, e.has_panels ? memory : nullptr);
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
