// The last pass of transforms of several: transforms of rows of a matrix, written as columns of the result.
#include "ntt_pass.cuh"

using namespace rns;

namespace {

using F = RNS_FIELD;
using T = Tile<F, kLogLength, kLogColumns, kLogValues, true>;

}  // namespace

extern "C" {

// The first pass has made A rows of a transform, and one between it and this B rows of each of them. Element
// (a, b, c), for c < kLength, is at (a B + b) kLength + c, and its transform goes to a + A b + A B c.
__global__ void __launch_bounds__(RNS_THREADS, RNS_BLOCKS) ntt_turned(Pass pass) {
  extern __shared__ u32 shared[];
  const i32 thread = threadIdx.x;
  const i32 log_b = pass.log_rest;
  const i32 log_a = pass.log_length - kLogLength - log_b;
  const i32 log_groups = log_a - kLogColumns;
  const i64 first =
      (static_cast<i64>(thread >> T::kLogGroup) << (log_b + kLogLength)) + (thread & (T::kGroup - 1));
  const i64 first_result =
      (thread & ((1 << kLogColumns) - 1)) + (static_cast<i64>(thread >> kLogColumns) << (log_a + log_b));
  const i64 step = 1LL << (log_a + log_b + T::kLogThreads - kLogColumns);
  for (u32 number = blockIdx.x; number < pass.tiles * pass.rows; number += gridDim.x) {
    const Place place = Place::of(number, pass.tiles);
    const i64 a = static_cast<i64>(place.tile & ((1u << log_groups) - 1)) << kLogColumns;
    const i64 b = (place.tile >> log_groups) & ((1u << log_b) - 1);
    const i64 start = static_cast<i64>(place.tile >> (log_groups + log_b)) << pass.log_length;
    const u32* source =
        pass.x + place.row * pass.x_stride + start + (a << (log_b + kLogLength)) + (b << kLogLength) + first;
    u32* target = pass.out + place.row * pass.out_stride + start + a + (b << log_a) + first_result;
    const u32 last = pass.moduli[place.row].last;
    u32 x[T::kValues];
#pragma unroll
    for (i32 m = 0; m < T::kValues; ++m) x[m] = source[m << T::kLogGroup];
    T::transform(x, thread, shared, pass.roots + (static_cast<i64>(place.row) << kLogLength), last);
#pragma unroll
    for (i32 m = 0; m < T::kValues; ++m) target[m * step] = F::canonical(x[m], last);
  }
}

}  // extern "C"
