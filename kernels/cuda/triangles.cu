// Inverses of small triangular matrices modulo primes, a block for each: of L, with 1 on its diagonal, and of
// U, where both are what elimination leaves of a matrix.
#include <rns/matrix.cuh>
#include <rns/product_sum.cuh>

#include "stack.cuh"

using namespace rns;

namespace {

constexpr i32 kMost = 128;  // rows
constexpr i32 kLanes = 4;   // threads that add up a number
constexpr u32 kAll = ~0u;

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

// Row after row: what the inverse X of L has left of its diagonal in row i is minus L_ij, minus the sum of
// all L_ik X_kj between. Rows are replaced where they are.
template <class Sum>
__device__ void invert(u32* lower, i32 rows, Modulus m) {
  const i32 j = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
  for (i32 i = 1; i < rows; ++i) {
    u32* row = lower + row_place(i);
    Sum sum;
    for (i32 k = j + 1 + lane; k < i; k += kLanes) sum.add(row[k], lower[row_place(k) + j]);
    u32 found = sum.reduce(m);
    for (i32 offset = kLanes / 2; offset > 0; offset /= 2) {
      found = mod_add(found, __shfl_xor_sync(kAll, found, offset), m.last);
    }
    __syncthreads();  // the row has been read
    if (lane == 0 && j < i) row[j] = mod_sub(0u, mod_add(found, row[j], m.last), m.last);
    __syncthreads();
  }
}

}  // namespace

extern "C" {

// U is D V with its diagonal D, and V transposed is inverted as L is.
__global__ void __launch_bounds__(kMost* kLanes) invert_triangles(Triangles s) {
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
    for (i32 k = threadIdx.x; k < rows; k += blockDim.x) {
      inverses[k] = is_upper ? prime_inverse(x[k * s.x.stride + k], m.last) : 1u;
    }
    __syncthreads();
    for (i32 k = threadIdx.x; k < rows * size; k += blockDim.x) {
      const i32 row = k / size, column = k % size;
      if (is_upper && row < column && column < rows) {
        words[row_place(column) + row] = mod_mul(x[row * s.x.stride + column], inverses[row], m);
      }
      if (!is_upper && column < row) words[row_place(row) + column] = x[row * s.x.stride + column];
    }
    __syncthreads();
    if (products_fit_word(m.last)) {
      invert<NarrowSum>(words, rows, m);
    } else {
      invert<ProductSum>(words, rows, m);
    }
    u32* out = (is_upper ? s.upper : s.lower) + t * size * size;
    for (i32 k = threadIdx.x; k < size * size; k += blockDim.x) {
      const i32 row = k / size, column = k % size;
      u32 word = 0;
      if (row == column) word = row < rows ? inverses[row] : 1u;
      if (is_upper && row < column && column < rows) {
        word = mod_mul(words[row_place(column) + row], inverses[column], m);
      }
      if (!is_upper && column < row && row < rows) word = words[row_place(row) + column];
      out[k] = word;
    }
    __syncthreads();  // before the memory is another matrix's
  }
}

}  // extern "C"
