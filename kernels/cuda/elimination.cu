// Elimination in matrices modulo the prime 2 and in more rows than a thread each can have; eliminate_whole.cu
// and eliminate_panel.cu are for the rest. A block has each matrix, in shared memory if it fits, else where
// the result goes.
//
// It goes by panels of columns. In a panel it divides by nothing: a row becomes
// |pivot row - factor pivot_row|, which scales all rows that are left alike. The scales are the products of
// the pivots before; all pivots of a panel are inverted side by side, and rows and factors divided. What is
// right of the panel loses a product of matrices, whose sums are reduced once. Of great matrices a launch
// eliminates in one great panel, and the caller multiplies matrices between.
#include <rns/matrix.cuh>
#include <rns/product_sum.cuh>

#include "block_matrix.cuh"
#include "elimination.cuh"
#include "pivots.cuh"

using namespace rns;

namespace {

constexpr i32 kPanel = 16;               // columns of a panel
constexpr i32 kPanelWidth = kPanel + 1;  // words of a row of its copy, against conflicts of banks
constexpr i32 kOwn = 4;                  // rows and columns of a product that a thread computes
constexpr i32 kLanes = 8;                // threads along a row of a product

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
  const PivotScale found = scale_of_pivots(pivot, inverse, count, m);
  if (lane == 0) scales.product = found.product;
  if (lane < count) {
    scales.pivots[lane] = inverse;
    scales.rows[lane] = found.row;
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
}  // extern "C"
