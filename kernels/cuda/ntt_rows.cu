// Transforms that one tile holds, one after another in each row: one pass through memory.
#include "ntt_pass.cuh"

using namespace rns;

namespace {

using F = RNS_FIELD;
using T = Tile<F, kLogLength, 0, kLogValues, false>;

// Long ones need the first-level cache for factors, so that what is transformed should not stay in it.
constexpr bool kStreams = kLogLength > 12;
__device__ u32 load(const u32* x) { return kStreams ? __ldcs(x) : *x; }
__device__ void store(u32* x, u32 value) {
  if (kStreams) {
    __stcs(x, value);
  } else {
    *x = value;
  }
}

}  // namespace

extern "C" {

// A block has a transform for each kThreads of its threads.
__global__ void __launch_bounds__(RNS_THREADS, RNS_BLOCKS) ntt_rows(Pass pass, i64 transforms) {
  extern __shared__ u32 shared[];
  const i32 thread = threadIdx.x & (T::kThreads - 1), slot = threadIdx.x >> T::kLogThreads;
  const i32 slots = blockDim.x >> T::kLogThreads;
  for (u32 number = blockIdx.x; number < pass.tiles * pass.rows; number += gridDim.x) {
    const Place place = Place::of(number, pass.tiles);
    const i64 index = static_cast<i64>(place.tile) * slots + slot;
    const bool is_one = index < transforms;
    const u32* source = pass.x + place.row * pass.x_stride + (index << kLogLength) + thread;
    u32* target = pass.out + place.row * pass.out_stride + (index << kLogLength) + thread;
    const u32 last = pass.moduli[place.row].last;
    u32 x[T::kValues];
#pragma unroll
    for (i32 m = 0; m < T::kValues; ++m) x[m] = is_one ? load(source + (m << T::kLogThreads)) : 0;
    T::transform(x, thread, shared + slot * T::kWords,
                 pass.roots + (static_cast<i64>(place.row) << kLogLength), last);
    if (pass.scales != nullptr) {
      const Factor scale = load_factor(pass.scales, place.row);
#pragma unroll
      for (i32 m = 0; m < T::kValues; ++m) x[m] = F::multiply(x[m], scale, last);
    }
    if (!is_one) continue;
#pragma unroll
    for (i32 m = 0; m < T::kValues; ++m) store(target + (m << T::kLogThreads), x[m]);
  }
}

}  // extern "C"
