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

// An echelon form in rows of `width` words, and where each row came from, numbers `step` words apart.
struct Packed {
  const u32* words;
  i64 width;
  const u32* order;
  i64 step;

  // What is at (row, column) of a factor.
  __device__ u32 of(i32 factor, i64 row, i64 column) const {
    if (factor == 0) return order[column * step] == row;
    const bool is_below = column < row;
    if ((factor == 1) == is_below) return words[row * width + column];
    return factor == 1 && column == row;
  }
};

}  // namespace

extern "C" {

// words: (matrices, height, width); out: (matrices, rows, columns), of P (factor 0), L (1) or U (2).
__global__ void __launch_bounds__(kBlock)
    lu_factor(const u32* words, const u32* order, i64 step, u32* out, i64 matrices, i64 height, i64 width,
              i64 rows, i64 columns, i32 factor) {
  const i64 strips = (rows + kStrip - 1) / kStrip;
  const i32 warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  for (i64 w = blockIdx.x; w < matrices * strips; w += gridDim.x) {
    const i64 t = w / strips, first = w % strips * kStrip + warp;
    const Packed packed = {words + t * height * width, width, order + t * height * step, step};
    u32* to = out + t * rows * columns;
    for (i64 column = lane; column < columns; column += kWarp) {
      u32 own[kOwn];
#pragma unroll
      for (i32 k = 0; k < kOwn; ++k) {
        const i64 row = first + k * kWarps;
        own[k] = row < rows ? packed.of(factor, row, column) : 0u;
      }
#pragma unroll
      for (i32 k = 0; k < kOwn; ++k) {
        const i64 row = first + k * kWarps;
        if (row < rows) to[row * columns + column] = own[k];
      }
    }
  }
}

}  // extern "C"
