// Elimination in a few columns of one matrix modulo a prime p < 2^64, by all multiprocessors: they meet
// between launches, one for each column, which reads rows from one memory and writes them to another.
#include <rns/wide_ntt.cuh>

#include "grid.cuh"

using namespace rns;

namespace {

// Rows from `first` on of a matrix whose rows are `stride` apart; `words` is the first column of the panel of
// them. `pivot_rows` (width, width) are the rows of pivots once they are found, `found` (width + 1) is the
// first row of each column that is not 0 when its turn comes, `rows` if all are. `state` (width + 2) has the
// pivots before each column, then whether rows were exchanged; `product` is that of the pivots, negative if
// the order is odd.
struct WidePanel {
  u64* words;
  i64 stride;
  i64 rows;
  i64 width;
  u64* pivot_rows;
  unsigned long long* found;
  i32* state;
  i32* order;
  i32* pivots;
  u64* product;
  const WideModulus* modulus;
};

__device__ void note(const WidePanel& p, i64 column, i64 row) {
  atomicMin(p.found + column, static_cast<unsigned long long>(row));
}

}  // namespace

extern "C" {

// Copies the panel to `out`, and sets what is found in it; `found` has `rows` everywhere.
__global__ void wide_panel_begin(WidePanel p, u64* out) {
  for (i64 t = thread_index(); t < p.rows * p.width; t += thread_count()) {
    const i64 i = t / p.width, j = t - i * p.width;
    const u64 word = p.words[i * p.stride + j];
    out[t] = word;
    if (j != 0) continue;
    p.order[i] = static_cast<i32>(i);
    if (word != 0) note(p, 0, i);
  }
  for (i64 j = thread_index(); j < p.width + 2; j += thread_count()) {
    p.state[j] = 0;
    if (j < p.width) p.pivots[j] = -1;
    if (j == 0) *p.product = 1;
  }
}

// Clears a column: rows that have no pivot yet go from x to `out` without what is due to it, and the pivot's
// row to `pivot_rows`.
__global__ void wide_panel_column(WidePanel p, const u64* x, u64* out, i64 column) {
  __shared__ WideFactor inverse;
  const i64 rank = p.state[column], place = static_cast<i64>(p.found[column]);
  const bool has_pivot = place < p.rows;
  const WideModulus m = *p.modulus;
  const u64* pivot_row = x + place * p.width;
  if (has_pivot && threadIdx.x == 0) {
    inverse = wide_factor(prime_inverse(pivot_row[column], m.last), m);
    if (blockIdx.x == 0) {
      const u64 product = mod_mul(*p.product, pivot_row[column], m);
      *p.product = place == rank ? product : mod_sub(0u, product, m.last);
      p.pivots[rank] = static_cast<i32>(column);
      const i32 row = p.order[rank];
      p.order[rank] = p.order[place];
      p.order[place] = row;
      if (place != rank) p.state[p.width + 1] = 1;
    }
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) p.state[column + 1] = static_cast<i32>(rank + (has_pivot ? 1 : 0));
  __syncthreads();
  for (i64 t = thread_index(); t < (p.rows - rank) * p.width; t += thread_count()) {
    const i64 i = rank + t / p.width, j = t % p.width;
    if (has_pivot && i == rank) {
      p.pivot_rows[rank * p.width + j] = pivot_row[j];
      continue;
    }
    const u64* row = x + (has_pivot && i == place ? rank : i) * p.width;
    u64 word = row[j];
    if (has_pivot && (j >= column || j == rank)) {
      const u64 factor = mod_mul(row[column], inverse, m.last);
      if (j > column) {
        word = mod_sub(word, mod_mul(pivot_row[j], factor, m), m.last);
      } else {
        word = j == rank ? factor : 0u;
      }
    }
    out[i * p.width + j] = word;
    if (j == column + 1 && word != 0) note(p, j, i);
  }
}

// Writes the panel back from x. Factors go to the columns of their pivots' numbers, which are `left` columns
// to the left of the panel's: there all rows without a pivot are 0.
__global__ void wide_panel_end(WidePanel p, const u64* x, i64 left) {
  const i64 rank = p.state[p.width];
  for (i64 t = thread_index(); t < p.rows * p.width; t += thread_count()) {
    const i64 i = t / p.width, j = t - i * p.width, factors = i < rank ? i : rank;
    const u64 word = i < rank ? p.pivot_rows[t] : x[t];
    u64* row = p.words + i * p.stride;
    if (j < factors) row[j - left] = word;
    if (j + left >= factors) row[j] = j < factors ? 0u : word;
  }
}

}  // extern "C"
