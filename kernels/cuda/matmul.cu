// Matrix products of stacks modulo m_i.
//
// Matrices with many rows and columns go by tiles in shared memory, 4 x 4 numbers a thread. Those with few
// columns go by sums along a row and a column, one for each warp. Where there are few numbers, their terms
// are split into segments, to keep the processors busy; the caller adds those up.
#include <rns/product_sum.cuh>

#include "grid.cuh"
#include "stack.cuh"

using namespace rns;

namespace {

constexpr i32 kBlock = 256;
constexpr i32 kWarp = 32;
constexpr i32 kTile = 64;               // rows and columns of a block's tile
constexpr i32 kStep = 16;               // terms of a tile in shared memory
constexpr i32 kOwn = 4;                 // rows and columns of a thread
constexpr i32 kPad = 4;                 // against conflicts of banks; keeps 16-byte alignment
constexpr i32 kThreads = kTile / kOwn;  // along either side of a tile

// out is (n, count, segments, rows, columns), contiguous. Of the tiled kernel b is (terms, columns), of the
// other one its transpose. A segment has `length` terms, the last one what is left. Steps along rows are 1.
struct Product {
  Stack a;
  Stack b;
  u32* out;
  const Modulus* moduli;
  i64 moduli_count;
  i64 count;  // matrices modulo each
  i64 rows;
  i64 terms;
  i64 columns;
  i64 segments;
  i64 length;
};

struct Tiles {
  u32 a[kStep][kTile + kPad];
  u32 b[kStep][kTile + kPad];
};

// Terms k to k + kStep, those below `last`, of the tile's rows and columns; zeros beyond the edges.
__device__ void load_tiles(const Product& p, const u32* a, const u32* b, i64 row, i64 column, i64 k, i64 last,
                           Tiles& tiles) {
#pragma unroll
  for (i32 t = threadIdx.x; t < kTile * kStep; t += kBlock) {
    const i32 r = t / kStep, s = t % kStep;
    tiles.a[s][r] = row + r < p.rows && k + s < last ? a[(row + r) * p.a.stride + k + s] : 0u;
  }
#pragma unroll
  for (i32 t = threadIdx.x; t < kTile * kStep; t += kBlock) {
    const i32 s = t / kTile, c = t % kTile;
    tiles.b[s][c] = column + c < p.columns && k + s < last ? b[(k + s) * p.b.stride + column + c] : 0u;
  }
}

template <class Sum>
__device__ void multiply_tile(const Product& p, i64 i, i64 stack, i64 segment, i64 row, i64 column,
                              Tiles& tiles) {
  const u32 *left = p.a.of(i, stack), *right = p.b.of(i, stack);
  const i32 y = threadIdx.x / kThreads * kOwn, x = threadIdx.x % kThreads * kOwn;
  const Modulus m = p.moduli[i];
  const i64 first = segment * p.length;
  const i64 last = first + p.length < p.terms ? first + p.length : p.terms;
  u32 result[kOwn][kOwn] = {};
  for (i64 begin = first; begin < last; begin += kProductTerms) {
    const i64 end = begin + kProductTerms < last ? begin + kProductTerms : last;
    Sum sums[kOwn][kOwn];
    for (i64 k = begin; k < end; k += kStep) {
      __syncthreads();  // all threads are done with the tiles before
      load_tiles(p, left, right, row, column, k, end, tiles);
      __syncthreads();
#pragma unroll
      for (i32 s = 0; s < kStep; ++s) {
        const uint4 a4 = *reinterpret_cast<const uint4*>(&tiles.a[s][y]);
        const uint4 b4 = *reinterpret_cast<const uint4*>(&tiles.b[s][x]);
        const u32 a[kOwn] = {a4.x, a4.y, a4.z, a4.w}, b[kOwn] = {b4.x, b4.y, b4.z, b4.w};
#pragma unroll
        for (i32 r = 0; r < kOwn; ++r) {
#pragma unroll
          for (i32 c = 0; c < kOwn; ++c) sums[r][c].add(a[r], b[c]);
        }
      }
    }
#pragma unroll
    for (i32 r = 0; r < kOwn; ++r) {
#pragma unroll
      for (i32 c = 0; c < kOwn; ++c) result[r][c] = mod_add(result[r][c], sums[r][c].reduce(m), m.last);
    }
  }
  u32* out = p.out + ((i * p.count + stack) * p.segments + segment) * p.rows * p.columns;
#pragma unroll
  for (i32 r = 0; r < kOwn; ++r) {
#pragma unroll
    for (i32 c = 0; c < kOwn; ++c) {
      if (row + y + r < p.rows && column + x + c < p.columns) {
        out[(row + y + r) * p.columns + column + x + c] = result[r][c];
      }
    }
  }
}

// Sum of every kWarp-th product from the lane's own on, modulo m.
template <class Sum>
__device__ u32 lane_dot(const u32* a, const u32* b, i64 first, i64 last, Modulus m) {
  u32 result = 0;
  i64 k = first + threadIdx.x % kWarp;
  while (k < last) {
    Sum sum;
    for (i32 t = 0; t < kProductTerms && k < last; ++t, k += kWarp) sum.add(a[k], b[k]);
    result = mod_add(result, sum.reduce(m), m.last);
  }
  return result;
}

}  // namespace

extern "C" {

__global__ void __launch_bounds__(kBlock) matmul_tiled(Product p) {
  __shared__ alignas(16) Tiles tiles;
  const i64 down = (p.rows + kTile - 1) / kTile, across = (p.columns + kTile - 1) / kTile;
  const i64 each = p.segments * down * across;
  for (i64 t = blockIdx.x; t < p.moduli_count * p.count * each; t += gridDim.x) {
    const i64 column = t % across * kTile, row = t / across % down * kTile;
    const i64 segment = t / (across * down) % p.segments;
    const i64 i = t / each / p.count, stack = t / each % p.count;
    if (products_fit_word(p.moduli[i].last)) {
      multiply_tile<NarrowSum>(p, i, stack, segment, row, column, tiles);
    } else {
      multiply_tile<ProductSum>(p, i, stack, segment, row, column, tiles);
    }
  }
}

__global__ void __launch_bounds__(kBlock) matmul_dots(Product p) {
  const i64 numbers = p.rows * p.columns, each = p.segments * numbers;
  for (i64 w = thread_index() / kWarp; w < p.moduli_count * p.count * each; w += thread_count() / kWarp) {
    const i64 column = w % p.columns, row = w / p.columns % p.rows;
    const i64 segment = w / numbers % p.segments;
    const i64 i = w / each / p.count, stack = w / each % p.count;
    const u32* a = p.a.of(i, stack) + row * p.a.stride;
    const u32* b = p.b.of(i, stack) + column * p.b.stride;
    const i64 first = segment * p.length;
    const i64 last = first + p.length < p.terms ? first + p.length : p.terms;
    const Modulus m = p.moduli[i];
    u32 x = products_fit_word(m.last) ? lane_dot<NarrowSum>(a, b, first, last, m)
                                      : lane_dot<ProductSum>(a, b, first, last, m);
    for (i32 offset = kWarp / 2; offset > 0; offset /= 2) {
      x = mod_add(x, __shfl_xor_sync(~0u, x, offset), m.last);
    }
    if (threadIdx.x % kWarp == 0) p.out[w] = x;
  }
}

}  // extern "C"
