// A pass over transforms of several passes but the last: transforms of columns of a matrix, in their places,
// and the powers w^(i j) of column i and index j that stand between this pass and the others.
#include "ntt_pass.cuh"

using namespace rns;

namespace {

using F = RNS_FIELD;
using T = Tile<F, kLogLength, kLogColumns, kLogValues, false>;

constexpr i32 kLogStep = T::kLogThreads - kLogColumns;  // rows from a thread's value to the next

// Powers w^(i j) for columns i of a tile and each thread's rows j, of which value m's is that of its first
// value plus m 2^kLogStep: those of the first, and a table of w^(i m 2^kLogStep) that threads share.
struct Powers {
  Factor* table;
  Factor first;

  static constexpr i32 kWords = 2 << (kLogValues + kLogColumns);

  __device__ Powers(Factor* shared, const Pass& pass, Place place, u32 start, Modulus modulus)
      : table(shared) {
    const i32 thread = threadIdx.x;
    constexpr i32 kMask = (1 << kLogColumns) - 1;
    for (i32 k = thread; k < kWords / 2; k += T::kThreads) {
      const u32 exponent = (start + (k & kMask)) * (static_cast<u32>(k >> kLogColumns) << kLogStep);
      table[k] = power<F>(pass, place.row, exponent, false, modulus);
    }
    const u32 exponent = (start + (thread & kMask)) * static_cast<u32>(thread >> kLogColumns);
    first = power<F>(pass, place.row, exponent, pass.scales != nullptr, modulus);
  }

  __device__ void multiply(u32 (&x)[T::kValues], u32 last) const {
    const uint2* column = reinterpret_cast<const uint2*>(table) + (threadIdx.x & ((1 << kLogColumns) - 1));
#pragma unroll
    for (i32 m = 0; m < T::kValues; ++m) {
      const uint2 w = column[m << kLogColumns];
      if (m > 0) x[m] = F::multiply(x[m], {w.x, w.y}, last);
      x[m] = F::multiply(x[m], first, last);
    }
  }
};

// A matrix and a group of its columns.
struct Tiles {
  const Pass& pass;
  i32 log_groups = pass.log_rest - kLogColumns;

  __device__ u32 column(u32 tile) const { return (tile & ((1u << log_groups) - 1)) << kLogColumns; }
  __device__ i64 start(u32 tile) const {
    return (static_cast<i64>(tile >> log_groups) << (pass.log_rest + kLogLength)) + column(tile);
  }
  __device__ void prefetch_tile(u32 number) const {
    if (number >= pass.tiles * pass.rows) return;
    const Place place = Place::of(number, pass.tiles);
    const u32* source = pass.x + place.row * pass.x_stride + start(place.tile);
    for (i64 row = threadIdx.x; row < 1 << kLogLength; row += T::kThreads)
      prefetch(source + (row << pass.log_rest));
  }
};

// Forward the powers come after the transforms of columns, backward before them.
template <bool kBackward>
__device__ void transform_columns(const Pass& pass, u32* shared) {
  const i32 thread = threadIdx.x;
  const u32 row = thread >> kLogColumns, first_column = thread & ((1 << kLogColumns) - 1);
  const i64 step = 1LL << (pass.log_rest + kLogStep);
  const Tiles tiles{pass};
  Factor* table = reinterpret_cast<Factor*>(shared + (T::kWords + 1) / 2 * 2);
  for (u32 number = blockIdx.x; number < pass.tiles * pass.rows; number += gridDim.x) {
    const Place place = Place::of(number, pass.tiles);
    const i64 start = tiles.start(place.tile) + (static_cast<i64>(row) << pass.log_rest) + first_column;
    const u32* source = pass.x + place.row * pass.x_stride + start;
    u32* target = pass.out + place.row * pass.out_stride + start;
    const Modulus modulus = pass.moduli[place.row];
    u32 x[T::kValues];
#pragma unroll
    for (i32 m = 0; m < T::kValues; ++m) x[m] = source[m * step];
    if constexpr (kIsAlone) tiles.prefetch_tile(number + gridDim.x);
    __syncthreads();  // until no thread reads the last tile's table
    const Powers powers(table, pass, place, tiles.column(place.tile), modulus);
    if constexpr (kBackward || T::kOneStage) __syncthreads();
    if constexpr (kBackward) powers.multiply(x, modulus.last);
    T::transform(x, thread, shared, pass.roots + (static_cast<i64>(place.row) << kLogLength), modulus.last);
    if constexpr (!kBackward) powers.multiply(x, modulus.last);
#pragma unroll
    for (i32 m = 0; m < T::kValues; ++m) target[m * step] = x[m];
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
