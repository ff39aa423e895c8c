// Products of matrices modulo primes p < 2^64: a block takes a tile of the result, and adds products of 128
// bits to sums of 192, which are reduced once.
#include <rns/wide_modular.cuh>

#include "grid.cuh"

using namespace rns;

namespace {

constexpr i32 kTile = 64;   // rows and columns of a tile of the result
constexpr i32 kDepth = 16;  // terms in shared memory
constexpr i32 kSide = 4;    // rows and columns of a thread
constexpr i32 kAcross = kTile / kSide;

// Matrices (rows, terms) times (terms, columns), `count` of them modulo each prime, contiguous.
struct WideProduct {
  const u64* a;
  const u64* b;
  u64* out;
  i64 total;
  i64 count;
  i64 rows;
  i64 terms;
  i64 columns;
  const WideModulus* moduli;
};

// A sum of products below 2^128, of fewer than 2^64.
struct Sum {
  u128 low;
  u64 high;

  __device__ void add(u64 x, u64 y) {
    const u128 product = static_cast<u128>(x) * y;
    low += product;
    high += low < product ? 1u : 0u;
  }

  // Both reductions are of numbers below 2^64 p: `high` is below the number of terms, which is below p, or
  // the sum is below 2^128.
  __device__ u64 modulo(WideModulus m) const {
    const u64 top = mod_reduce((static_cast<u128>(high % (m.last + 1u)) << 64) + (low >> 64), m);
    return mod_reduce((static_cast<u128>(top) << 64) + static_cast<u64>(low), m);
  }
};

}  // namespace

extern "C" {

__global__ void __launch_bounds__(kAcross* kAcross) wide_matmul(WideProduct p) {
  __shared__ u64 left[kDepth][kTile + 1], right[kDepth][kTile];
  const i64 down = (p.rows + kTile - 1) / kTile, across = (p.columns + kTile - 1) / kTile;
  const i32 x = threadIdx.x % kAcross, y = threadIdx.x / kAcross;
  for (i64 tile = blockIdx.x; tile < p.total * down * across; tile += gridDim.x) {
    const i64 t = tile / (down * across), place = tile - t * down * across;
    const i64 row = place / across * kTile, column = place % across * kTile;
    const u64 *a = p.a + t * p.rows * p.terms, *b = p.b + t * p.terms * p.columns;
    Sum sums[kSide][kSide] = {};
    for (i64 first = 0; first < p.terms; first += kDepth) {
      __syncthreads();
      for (i32 k = threadIdx.x; k < kTile * kDepth; k += blockDim.x) {
        const i64 i = row + k / kDepth, term = first + k % kDepth;
        left[k % kDepth][k / kDepth] = i < p.rows && term < p.terms ? a[i * p.terms + term] : 0u;
        const i64 j = column + k % kTile, of_right = first + k / kTile;
        right[k / kTile][k % kTile] = j < p.columns && of_right < p.terms ? b[of_right * p.columns + j] : 0u;
      }
      __syncthreads();
#pragma unroll 4
      for (i32 k = 0; k < kDepth; ++k) {
        u64 some[kSide], others[kSide];
#pragma unroll
        for (i32 s = 0; s < kSide; ++s) {
          some[s] = left[k][y + s * kAcross];
          others[s] = right[k][x + s * kAcross];
        }
#pragma unroll
        for (i32 s = 0; s < kSide; ++s) {
#pragma unroll
          for (i32 r = 0; r < kSide; ++r) sums[s][r].add(some[s], others[r]);
        }
      }
    }
    const WideModulus m = p.moduli[t / p.count];
    u64* out = p.out + t * p.rows * p.columns;
#pragma unroll
    for (i32 s = 0; s < kSide; ++s) {
#pragma unroll
      for (i32 r = 0; r < kSide; ++r) {
        const i64 i = row + y + s * kAcross, j = column + x + r * kAcross;
        if (i < p.rows && j < p.columns) out[i * p.columns + j] = sums[s][r].modulo(m);
      }
    }
  }
}

}  // extern "C"
