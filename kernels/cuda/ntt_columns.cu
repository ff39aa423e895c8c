// A pass over transforms of several passes but the last: transforms of columns of a matrix, in their places,
// and the powers w^(i j) of column i and index j that stand between this pass and the others.
#include "ntt_pass.cuh"

using namespace rns;

namespace {

using F = RNS_FIELD;
using T = Tile<F, kLogLength, kLogColumns, kLogValues, false>;

constexpr i32 kLogStep = T::kLogThreads - kLogColumns;  // rows from a thread's value to the next

// Values times w^(i j), j the row from `row` on.
__device__ void multiply_by_powers(u32 (&x)[T::kValues], const Pass& pass, i32 i, u32 column, u32 row,
                                   u32 last) {
  const Factor* low = pass.low + (static_cast<i64>(i) << pass.log_split);
  const Factor* high = pass.high + (static_cast<i64>(i) << pass.log_high);
#pragma unroll
  for (i32 m = 0; m < T::kValues; ++m) {
    x[m] = multiply_by_power<F>(x[m], column * (row + (m << kLogStep)), low, high, pass.log_split, last);
  }
}

// Forward the powers come after the transforms of columns, backward before them.
template <bool kBackward>
__device__ void transform_columns(const Pass& pass, u32* shared) {
  const i32 thread = threadIdx.x;
  const i32 row = thread >> kLogColumns;
  const i32 log_groups = pass.log_rest - kLogColumns;
  const i64 step = 1LL << (pass.log_rest + kLogStep);
  for (u32 number = blockIdx.x; number < pass.tiles * pass.rows; number += gridDim.x) {
    const Place place = Place::of(number, pass.tiles);
    const u32 group = place.tile & ((1u << log_groups) - 1);
    const u32 column = (group << kLogColumns) + (thread & ((1 << kLogColumns) - 1));
    const i64 matrix = place.tile >> log_groups;
    const i64 start =
        (matrix << (pass.log_rest + kLogLength)) + (static_cast<i64>(row) << pass.log_rest) + column;
    const u32* source = pass.x + place.row * pass.x_stride + start;
    u32* target = pass.out + place.row * pass.out_stride + start;
    const u32 last = pass.moduli[place.row].last;
    u32 x[T::kValues];
#pragma unroll
    for (i32 m = 0; m < T::kValues; ++m) x[m] = source[m * step];
    if constexpr (kBackward) multiply_by_powers(x, pass, place.row, column, row, last);
    T::transform(x, thread, shared, pass.roots + (static_cast<i64>(place.row) << kLogLength), last);
    if constexpr (!kBackward) multiply_by_powers(x, pass, place.row, column, row, last);
#pragma unroll
    for (i32 m = 0; m < T::kValues; ++m) target[m * step] = F::canonical(x[m], last);
  }
}

}  // namespace

extern "C" {

__global__ void __launch_bounds__(RNS_THREADS, RNS_BLOCKS) ntt_columns(Pass pass) {
  extern __shared__ u32 shared[];
  transform_columns<false>(pass, shared);
}

__global__ void __launch_bounds__(RNS_THREADS, RNS_BLOCKS) ntt_columns_backward(Pass pass) {
  extern __shared__ u32 shared[];
  transform_columns<true>(pass, shared);
}

}  // extern "C"
