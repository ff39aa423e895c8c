// The last pass of transforms of several: transforms of rows of a matrix, written as columns of the result.
#include "ntt_pass.cuh"

using namespace rns;

namespace {

using T = Tile<F, kLogLength, kLogColumns, kLogValues, true, kLast>;

// Element (a, b, c) of a transform, for c < kLength, is at (a B + b) kLength + c, where the first pass has
// made A rows of the transform, and one between it and this B rows of each of them. Its transform goes to a +
// A b + A B c.
struct Tiles {
  const Pass& pass;
  i32 log_b = pass.log_rest;
  i32 log_a = pass.log_length - kLogLength - log_b;
  i32 log_groups = log_a - kLogColumns;

  __device__ i64 first_a(u32 tile) const {
    return static_cast<i64>(tile & ((1u << log_groups) - 1)) << kLogColumns;
  }
  __device__ i64 b(u32 tile) const { return (tile >> log_groups) & ((1u << log_b) - 1); }
  __device__ i64 transform(u32 tile) const {
    return static_cast<i64>(tile >> (log_groups + log_b)) << pass.log_length;
  }
  __device__ const Word* source(Place place) const {
    return pass.x + place.row * pass.x_stride + transform(place.tile) +
           (((first_a(place.tile) << log_b) + b(place.tile)) << kLogLength);
  }
  __device__ Word* target(Place place) const {
    return pass.out + place.row * pass.out_stride + transform(place.tile) + first_a(place.tile) +
           (b(place.tile) << log_a);
  }
  __device__ void prefetch_tile(u32 number) const {
    if (number >= pass.tiles * pass.rows) return;
    const Word* x = source(Place::of(number, pass.tiles));
    constexpr i32 kLines = (1 << kLogLength) / kLine;
    for (i32 k = threadIdx.x; k < kLines << kLogColumns; k += T::kThreads) {
      prefetch(x + (static_cast<i64>(k / kLines) << (log_b + kLogLength)) + k % kLines * kLine);
    }
  }
};

}  // namespace

extern "C" {

__global__ void __launch_bounds__(RNS_THREADS, RNS_BLOCKS) ntt_turned(Pass pass) {
  alignas(kAlignment) extern __shared__ Word shared[];
  const i32 thread = threadIdx.x;
  const Tiles tiles{pass};
  const i32 log_step = tiles.log_a + tiles.log_b;
  const i64 first =
      (static_cast<i64>(thread >> T::kLogGroup) << (tiles.log_b + kLogLength)) + (thread & (T::kGroup - 1));
  const i64 first_result =
      (thread & ((1 << kLogColumns) - 1)) + (static_cast<i64>(thread >> kLogColumns) << log_step);
  const i64 step = 1LL << (log_step + T::kLogThreads - kLogColumns);
  for (u32 number = blockIdx.x; number < pass.tiles * pass.rows; number += gridDim.x) {
    const Place place = Place::of(number, pass.tiles);
    const Word* source = tiles.source(place) + first;
    Word* target = tiles.target(place) + first_result;
    const Word last = pass.moduli[place.row].last;
    Word x[T::kValues];
#pragma unroll
    for (i32 m = 0; m < T::kValues; ++m) x[m] = source[m << T::kLogGroup];
    if constexpr (kIsAlone) tiles.prefetch_tile(number + gridDim.x);
    T::transform_to_residues(x, thread, shared, pass.roots + (static_cast<i64>(place.row) << kLogLength),
                             last);
#pragma unroll
    for (i32 m = 0; m < T::kValues; ++m) target[m * step] = x[m];
  }
}

}  // extern "C"
