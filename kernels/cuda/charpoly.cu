// Characteristic polynomials of matrices modulo primes: a block for each matrix and prime, which lies in
// shared memory if it fits.
#include <rns/matrix.cuh>
#include <rns/product_sum.cuh>

#include "block_matrix.cuh"

using namespace rns;

namespace {

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
