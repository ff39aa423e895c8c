// Transforms that one tile holds, one after another in each row: one pass through memory.
#include "ntt_pass.cuh"

#ifndef RNS_REVERSED
#define RNS_REVERSED 0  // 1 or 2: results are in bit-reversed order, or operands
#endif

using namespace rns;

namespace {

using T = Tile<F, kLogLength, 0, kLogValues, false, RNS_TWIST == 1 ? kFirst : kLast>;

// Long ones need the first-level cache for factors, so that what is transformed should not stay in it. Each
// has a block.
constexpr bool kStreams = kLogLength > 12;
constexpr i32 kLines = T::kValues / kLine;  // that a thread asks for
static_assert(!kStreams || kLines > 0, "threads ask for all lines");
__device__ Word load(const Word* x) { return kStreams ? __ldcs(x) : *x; }

}  // namespace

extern "C" {

// A block has a transform for each kThreads of its threads, and asks for the lines of a long one that another
// block takes soon, `ahead` tiles from its own, unless that is 0.
__global__ void __launch_bounds__(RNS_THREADS, RNS_BLOCKS) ntt_rows(Pass pass, i64 transforms, u32 ahead) {
  alignas(kAlignment) extern __shared__ Word shared[];
  __shared__ u32 kept;  // a long transform needs all registers
  const i32 thread = threadIdx.x & (T::kThreads - 1), slot = threadIdx.x >> T::kLogThreads;
  const i32 slots = blockDim.x >> T::kLogThreads;
  for (u32 number = blockIdx.x; number < pass.tiles * pass.rows; number += gridDim.x) {
    if constexpr (kStreams) {
      if (threadIdx.x == 0) kept = number;
      if (ahead != 0 && number + ahead < pass.tiles * pass.rows) {
        const Place next = Place::of(number + ahead, pass.tiles);
        const Word* lines = pass.x + next.row * pass.x_stride + (static_cast<i64>(next.tile) << kLogLength);
#pragma unroll
        for (i32 k = 0; k < kLines; ++k) prefetch(lines + (thread + k * T::kThreads) * kLine);
      }
    }
    const Place place = Place::of(number, pass.tiles);
    const i64 index = static_cast<i64>(place.tile) * slots + slot;
    const bool is_one = index < transforms;
    const Word* source = pass.x + place.row * pass.x_stride + (index << kLogLength) + thread;
    const Word last = pass.moduli[place.row].last;
    Word x[T::kValues];
#pragma unroll
    for (i32 m = 0; m < T::kValues; ++m) x[m] = kStreams || is_one ? load(source + (m << T::kLogThreads)) : 0;
    Word* const own_shared = shared + slot * T::kWords;
    if constexpr (RNS_REVERSED == 2) T::reverse(x, thread, own_shared);
    T::transform<true>(x, thread, own_shared, pass.roots + (static_cast<i64>(place.row) << kLogLength), last);
    if (pass.scales != nullptr) {
      const Pair scale = load_factor(pass.scales, place.row);
#pragma unroll
      for (i32 m = 0; m < T::kValues; ++m) x[m] = F::multiply(x[m], scale, last);
    } else {
#pragma unroll
      for (i32 m = 0; m < T::kValues; ++m) x[m] = T::residue(x[m], last);
    }
    if constexpr (RNS_REVERSED == 1) T::reverse(x, thread, own_shared);
    if constexpr (kStreams) {
      const Place own = Place::of(*static_cast<volatile u32*>(&kept), pass.tiles);
      Word* target =
          pass.out + own.row * pass.out_stride + (static_cast<i64>(own.tile) << kLogLength) + thread;
#pragma unroll
      for (i32 m = 0; m < T::kValues; ++m) __stcs(target + (m << T::kLogThreads), x[m]);
      __syncthreads();  // until all have read which one it is
    } else {
      if (!is_one) continue;
      Word* target = pass.out + place.row * pass.out_stride + (index << kLogLength) + thread;
#pragma unroll
      for (i32 m = 0; m < T::kValues; ++m) target[m << T::kLogThreads] = x[m];
    }
  }
}

}  // extern "C"
