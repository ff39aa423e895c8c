// A pass over transforms of several passes but the last: transforms of columns of a matrix, in their places,
// and the powers w^(i j) of column i and index j that stand between this pass and the others.
#include "ntt_pass.cuh"

using namespace rns;

namespace {

using T = Tile<F, kLogLength, kLogColumns, kLogValues, false, kFirst>;

// Powers for columns of a tile and rows j: those of j by which the first column of the tile differs from that
// of the first tile, which threads share, and those of the first tile.
struct Powers {
  Pair* of_first;
  const Pair* from_there;

  static constexpr i32 kRows = 1 << kLogLength;

  // The exponent in column `start` without that in column 0.
  static __device__ u32 shifted(u32 start, u32 row) {
    return exponent(start, row) - exponent(0, row) + rest_of_exponent(start);
  }

  __device__ Powers(Pair* shared, const Pass& pass, Place place, u32 start, Base modulus)
      : of_first(shared),
        from_there(pass.within + (static_cast<i64>(place.row) << (kLogLength + kLogColumns)) + threadIdx.x) {
    for (i32 row = threadIdx.x; row < kRows; row += T::kThreads)
      of_first[row] = power(pass, place.row, shifted(start, row), pass.scales != nullptr, modulus);
  }

  __device__ void multiply(Word (&x)[T::kValues], Word last) const {
    const Pair* rows = of_first + (threadIdx.x >> kLogColumns);
#pragma unroll
    for (i32 m = 0; m < T::kValues; ++m) {
      const Pair w = shared_factor(rows + (m << (T::kLogThreads - kLogColumns)));
      x[m] = F::multiply_loosely(x[m], load_factor(from_there, m << T::kLogThreads), last);
      x[m] = F::multiply_between(x[m], w, last);
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
    const Word* source = pass.x + place.row * pass.x_stride + start(place.tile);
    for (i64 row = threadIdx.x; row < 1 << kLogLength; row += T::kThreads)
      prefetch(source + (row << pass.log_rest));
  }
};

// Forward the powers come after the transforms of columns, backward before them.
template <bool kBackward>
__device__ void transform_columns(const Pass& pass, Word* shared) {
  const i32 thread = threadIdx.x;
  const u32 row = thread >> kLogColumns, first_column = thread & ((1 << kLogColumns) - 1);
  const i64 step = 1LL << (pass.log_rest + T::kLogThreads - kLogColumns);
  const Tiles tiles{pass};
  Pair* table = reinterpret_cast<Pair*>(shared + (T::kWords + 1) / 2 * 2);
  for (u32 number = blockIdx.x; number < pass.tiles * pass.rows; number += gridDim.x) {
    const Place place = Place::of(number, pass.tiles);
    const i64 start = tiles.start(place.tile) + (static_cast<i64>(row) << pass.log_rest) + first_column;
    const Word* source = pass.x + place.row * pass.x_stride + start;
    Word* target = pass.out + place.row * pass.out_stride + start;
    const Base modulus = pass.moduli[place.row];
    Word x[T::kValues];
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
  alignas(kAlignment) extern __shared__ Word shared[];
  transform_columns<false>(pass, shared);
}

__global__ void __launch_bounds__(RNS_THREADS, RNS_BLOCKS) ntt_columns_backward(Pass pass) {
  alignas(kAlignment) extern __shared__ Word shared[];
  transform_columns<true>(pass, shared);
}

}  // extern "C"
