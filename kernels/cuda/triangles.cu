// Inverses of small triangular matrices modulo primes, a block for each: of L, with 1 on its diagonal, and of
// U, where both are what elimination leaves of a matrix.
#include <rns/matrix.cuh>
#include <rns/product_sum.cuh>

#include "stack.cuh"

using namespace rns;

namespace {

constexpr i32 kMost = 128;  // rows
constexpr i32 kRows = 8;    // of a column, that a thread has
constexpr i32 kThreads = kMost / 2 * (kMost / 2) / kRows;
constexpr i32 kLoads = 8;  // words that a thread reads at once
constexpr i32 kWarp = 32;

// Rows and columns of `x` from the first to the second, of each matrix if there are such. Their inverses are
// (n, count, size, size), contiguous; of L with zeros beyond its rows, of U only if there is memory.
struct Triangles {
  Stack x;
  const i32* first;
  const i32* last;
  u32* lower;
  u32* upper;
  const Modulus* moduli;
  i64 moduli_count;
  i64 count;
  i64 size;
};

// Where a row below the diagonal begins in shared memory.
__device__ i32 row_place(i32 row) { return row * (row - 1) / 2; }

// Of L, or of inverses in its place.
__device__ u32 entry(const u32* lower, i32 row, i32 column) {
  return row > column ? lower[row_place(row) + column] : row == column;
}

// Replaces each block of kRows rows on the diagonal by its inverse, column by column.
template <class Sum>
__device__ void invert_blocks(u32* lower, Modulus m) {
  const i32 column = threadIdx.x, first = column / kRows * kRows;
  u32 found[kRows];
  if (column < kMost) {
#pragma unroll
    for (i32 i = 0; i < kRows; ++i) {
      Sum sum;
#pragma unroll
      for (i32 k = 0; k < i; ++k) sum.add(lower[row_place(first + i) + first + k], found[k]);
      found[i] = first + i == column ? 1u : mod_sub(0u, sum.reduce(m), m.last);
    }
  }
  __syncthreads();  // all blocks have been read
  if (column < kMost) {
#pragma unroll
    for (i32 i = 0; i < kRows; ++i) {
      if (first + i > column) lower[row_place(first + i) + column] = found[i];
    }
  }
  __syncthreads();
}

// Of blocks of 2 `half` rows on the diagonal, in which both halves are inverses X and Y, replaces what is
// below X by its product with X; or, once that is done, by -Y times what is there.
template <class Sum, bool IsByX>
__device__ void multiply_below(u32* lower, i32 half, Modulus m) {
  const i32 t = threadIdx.x, first = t / (half * half / kRows) * 2 * half;
  const i32 column = first + t % half, row = first + half + t / half % (half / kRows) * kRows;
  u32 found[kRows];
  if (first < kMost) {
    Sum sums[kRows];
    const i32 from = first + (IsByX ? t % half / kWarp * kWarp : half), to = IsByX ? first + half : row;
    for (i32 k = from; k < to; ++k) {
      const u32 other = entry(lower, k, column);
#pragma unroll
      for (i32 i = 0; i < kRows; ++i) sums[i].add(lower[row_place(row + i) + k], other);
    }
#pragma unroll
    for (i32 k = 0; k < (IsByX ? 0 : kRows); ++k) {
      const u32 other = lower[row_place(row + k) + column];
      sums[k].add(1u, other);
#pragma unroll
      for (i32 i = k + 1; i < kRows; ++i) sums[i].add(lower[row_place(row + i) + row + k], other);
    }
#pragma unroll
    for (i32 i = 0; i < kRows; ++i) {
      found[i] = sums[i].reduce(m);
      if (!IsByX) found[i] = mod_sub(0u, found[i], m.last);
    }
  }
  __syncthreads();  // all has been read
  if (first < kMost) {
#pragma unroll
    for (i32 i = 0; i < kRows; ++i) lower[row_place(row + i) + column] = found[i];
  }
  __syncthreads();
}

// By doubling: the inverse of (L 0; A M) is (X 0; -Y A X, Y), with X and Y those of L and M.
template <class Sum>
__device__ void invert(u32* lower, i32 rows, Modulus m) {
  invert_blocks<Sum>(lower, m);
  for (i32 half = kRows; half < rows; half *= 2) {
    multiply_below<Sum, true>(lower, half, m);
    multiply_below<Sum, false>(lower, half, m);
  }
}

// L, or V transposed, from factors of so many rows, with 0 beyond them.
__device__ void copy_in(const u32* x, i64 stride, i32 rows, bool is_upper, const u32* inverses, u32* lower,
                        Modulus m) {
  for (i32 start = threadIdx.x; start < kMost * kMost; start += kLoads * kThreads) {
    u32 words[kLoads];
#pragma unroll
    for (i32 k = 0; k < kLoads; ++k) {
      const i32 row = (start + k * kThreads) / kMost, column = start % kMost;
      const bool is_own = row < rows && column < rows && (is_upper ? row < column : column < row);
      words[k] = is_own ? x[row * stride + column] : 0u;
    }
#pragma unroll
    for (i32 k = 0; k < kLoads; ++k) {
      const i32 row = (start + k * kThreads) / kMost, column = start % kMost;
      if (is_upper && row < column) lower[row_place(column) + row] = mod_mul(words[k], inverses[row], m);
      if (!is_upper && column < row) lower[row_place(row) + column] = words[k];
    }
  }
}

// The inverse, of U if that is wanted, with 1 on its diagonal beyond the rows that there are.
__device__ void write_out(const u32* lower, const u32* inverses, bool is_upper, i32 size, u32* out,
                          Modulus m) {
  for (i32 k = threadIdx.x; k < size * kMost; k += kThreads) {
    const i32 row = k / kMost, column = k % kMost;
    u32 word = row == column ? inverses[row] : 0u;
    if (is_upper && row < column) word = mod_mul(lower[row_place(column) + row], inverses[column], m);
    if (!is_upper && column < row) word = lower[row_place(row) + column];
    if (column < size) out[row * size + column] = word;
  }
}

}  // namespace

extern "C" {

// U is D V with its diagonal D, and V transposed is inverted as L is.
__global__ void __launch_bounds__(kThreads, 2) invert_triangles(Triangles s) {
  __shared__ u32 words[kMost * (kMost - 1) / 2];
  __shared__ u32 inverses[kMost];  // of the diagonal
  const i32 size = static_cast<i32>(s.size), sides = s.upper != nullptr ? 2 : 1;
  for (i64 n = blockIdx.x; n < s.moduli_count * s.count * sides; n += gridDim.x) {
    const i64 t = n / sides, i = t / s.count;
    const bool is_upper = n % sides == 1;
    const i64 first = s.first != nullptr ? s.first[t] : 0;
    const i32 rows = s.first != nullptr ? static_cast<i32>(s.last[t] - first) : size;
    const u32* x = s.x.of(i, t % s.count) + first * s.x.stride + first;
    const Modulus m = s.moduli[i];
    for (i32 k = threadIdx.x; k < kMost; k += kThreads) {
      inverses[k] = is_upper && k < rows ? prime_inverse(x[k * s.x.stride + k], m.last) : 1u;
    }
    __syncthreads();
    copy_in(x, s.x.stride, rows, is_upper, inverses, words, m);
    __syncthreads();
    if (products_fit_word(m.last)) {
      invert<NarrowSum>(words, rows, m);
    } else {
      invert<ProductSum>(words, rows, m);
    }
    write_out(words, inverses, is_upper, size, (is_upper ? s.upper : s.lower) + t * size * size, m);
    __syncthreads();  // before the memory is another matrix's
  }
}

}  // extern "C"
