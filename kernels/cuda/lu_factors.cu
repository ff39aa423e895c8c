// The factors of LU decompositions, each written in one pass from what elimination leaves.
#include <rns/base.cuh>

#include "grid.cuh"

using namespace rns;

namespace {

constexpr i32 kBlock = 256;
constexpr i32 kWarp = 32;
constexpr i32 kWarps = kBlock / kWarp;
constexpr i32 kOwn = 4;  // rows of a warp
constexpr i32 kStrip = kOwn * kWarps;

// What is at (row, column) of a matrix in rows of `width` words, the last of which is where the row came
// from.
__device__ u32 word_of(const u32* packed, i64 width, i32 factor, i64 row, i64 column) {
  if (factor == 0) return packed[column * width + width - 1] == row;
  const bool is_below = column < row;
  if ((factor == 1) == is_below) return packed[row * width + column];
  return factor == 1 && column == row;
}

}  // namespace

extern "C" {

// packed: (matrices, height, width); out: (matrices, rows, columns), of P (factor 0), L (1) or U (2).
__global__ void __launch_bounds__(kBlock) lu_factor(const u32* packed, u32* out, i64 matrices, i64 height,
                                                    i64 width, i64 rows, i64 columns, i32 factor) {
  const i64 strips = (rows + kStrip - 1) / kStrip;
  const i32 warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  for (i64 w = blockIdx.x; w < matrices * strips; w += gridDim.x) {
    const i64 t = w / strips, first = w % strips * kStrip + warp;
    const u32* from = packed + t * height * width;
    u32* to = out + t * rows * columns;
    for (i64 column = lane; column < columns; column += kWarp) {
      u32 words[kOwn];
#pragma unroll
      for (i32 k = 0; k < kOwn; ++k) {
        const i64 row = first + k * kWarps;
        words[k] = row < rows ? word_of(from, width, factor, row, column) : 0u;
      }
#pragma unroll
      for (i32 k = 0; k < kOwn; ++k) {
        const i64 row = first + k * kWarps;
        if (row < rows) to[row * columns + column] = words[k];
      }
    }
  }
}

}  // extern "C"
