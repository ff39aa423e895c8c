// Running maxima of 64-bit integers: of tiles, one a block, and then with what is before each tile.
#include "grid.cuh"

using namespace rns;

namespace {

constexpr i32 kBlock = 256, kWarp = 32, kItems = 8, kTile = kBlock * kItems;

__device__ u64 greater(u64 a, u64 b) { return a > b ? a : b; }

// The greatest value of the thread's warp up to this thread.
__device__ u64 maximum_of_warp(u64 value) {
  for (i32 distance = 1; distance < kWarp; distance *= 2) {
    const u64 other = __shfl_up_sync(~0u, value, static_cast<unsigned>(distance));
    if (static_cast<i32>(threadIdx.x) % kWarp >= distance) value = greater(value, other);
  }
  return value;
}

}  // namespace

extern "C" {

// out[j] = the greatest of x up to j in the tile of j, and tops = the greatest of each tile
__global__ void __launch_bounds__(kBlock) maximum_in_tiles(const u64* x, i64 count, u64* out, u64* tops) {
  __shared__ u64 warps[kBlock / kWarp];
  const i32 thread = static_cast<i32>(threadIdx.x), warp = thread / kWarp;
  const i64 first = static_cast<i64>(blockIdx.x) * kTile + thread * kItems;
  u64 values[kItems];
  u64 mine = 0;
#pragma unroll
  for (i32 k = 0; k < kItems; ++k) {
    mine = greater(mine, first + k < count ? x[first + k] : 0);
    values[k] = mine;
  }
  const u64 reached = maximum_of_warp(mine);
  if (thread % kWarp == kWarp - 1) warps[warp] = reached;
  u64 before = __shfl_up_sync(~0u, reached, 1);
  if (thread % kWarp == 0) before = 0;
  __syncthreads();
  for (i32 k = 0; k < warp; ++k) before = greater(before, warps[k]);
#pragma unroll
  for (i32 k = 0; k < kItems; ++k) {
    if (first + k < count) out[first + k] = greater(before, values[k]);
  }
  if (thread == kBlock - 1) tops[blockIdx.x] = greater(before, mine);
}

// out[j] = max(out[j], the last of tops before the tile of j); tops are running maxima
__global__ void above_tops(u64* out, i64 count, const u64* tops) {
  for (i64 j = kTile + thread_index(); j < count; j += thread_count()) {
    out[j] = greater(out[j], tops[j / kTile - 1]);
  }
}

}  // extern "C"
