// The pivots of a panel, by a warp.
#pragma once

#include <rns/modular.cuh>

namespace rns {

// What a pivot's row is multiplied by in the end, and the product of all pivots.
struct PivotScale {
  u32 row;
  u32 product;
};

// Of each lane's pivot, of which there are `count`, with the inverse of what it scales the rows after its own
// by: a row is scaled by all pivots before.
__device__ inline PivotScale scale_of_pivots(u32 pivot, u32 inverse, i32 count, Modulus m) {
  const i32 warp = 32, lane = threadIdx.x % warp;
  u32 scale = inverse;
  for (i32 offset = 1; offset < warp; offset *= 2) {
    const u32 other = __shfl_up_sync(~0u, scale, offset);
    if (lane >= offset) scale = mod_mul(scale, other, m);
  }
  scale = __shfl_up_sync(~0u, scale, 1);
  if (lane == 0) scale = 1;
  u32 product = lane < count ? mod_mul(pivot, scale, m) : 1u;
  for (i32 offset = warp / 2; offset > 0; offset /= 2) {
    product = mod_mul(product, __shfl_xor_sync(~0u, product, offset), m);
  }
  return {scale, product};
}

}  // namespace rns
