// The last two passes of long transforms in one launch, so that what stands between them stays in the
// second-level cache: transforms of columns of matrices and the powers that follow, then of their rows.
//
// Blocks claim tiles in one order: `lag` tiles of the columns, then one of the rows and one of the columns in
// turn. A tile of rows waits until all columns of its group are done. Those were claimed before it, by blocks
// that run and wait for nothing claimed later, so that some block can always go on.
#include "ntt_pass.cuh"

#ifndef RNS_LAST_LENGTH
#define RNS_LAST_LENGTH RNS_LOG_LENGTH
#endif

using namespace rns;

namespace {

constexpr i32 kLogMatrix = kLogLength + RNS_LAST_LENGTH;
constexpr i32 kLastColumns = kLogLength + kLogColumns - RNS_LAST_LENGTH;
using First = Tile<F, kLogLength, kLogColumns, kLogValues, false, kFirst>;
using Last = Tile<F, RNS_LAST_LENGTH, kLastColumns, kLogValues, true, kLast>;
static_assert(First::kThreads == Last::kThreads, "both passes run in the same blocks");

// Tiles of a matrix, as the first pass has them, and the words of a tile.
constexpr i32 kLogTiles = RNS_LAST_LENGTH - kLogColumns;
constexpr i32 kLogTile = kLogLength + kLogColumns;

// Groups of 2^log_group tiles, of as many matrices or parts of one transform; `ring` groups stand between the
// passes. `counters` has the next claim, and of each group the tiles that are written and those read again.
// A transform has 2^log_outer matrices, whose results alternate: 0 or at least kLastColumns.
struct Flow {
  Word* between;
  const Pair* last_roots;
  u32* counters;
  u32 lag;
  u32 ring;
  i32 log_group;
  i32 log_outer;

  __device__ u32* written(u32 number) const { return counters + 1 + 2 * (number >> log_group); }
  __device__ u32 tiles_of(u32 number, u32 tiles) const {
    const u32 start = number >> log_group << log_group;
    return min(1u << log_group, tiles - start);
  }
  // Where a tile's matrix begins between the passes, or its matrices do.
  __device__ Word* group(u32 number) const {
    return between + (static_cast<i64>((number >> log_group) % ring) << (log_group + kLogTile));
  }
  __device__ u32 in_group(u32 number) const { return number & ((1u << log_group) - 1); }
};

__device__ void await(const u32* counter, u32 count) {
  u32 found;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(found) : "l"(counter) : "memory");
  } while (found < count);
}

__device__ void add_one(u32* counter) {
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
}

// A tile that a block has claimed, in shared memory: what is read there again after the transform takes no
// registers meanwhile.
struct Claim {
  u32 number;
  u32 row;
  u32 tile;
  bool is_first;
  bool is_last;  // nothing is left

  __device__ void next(const Pass& pass, const Flow& flow) volatile {
    const u32 tiles = pass.tiles * pass.rows;
    do {  // in the end there are no more columns
      const u32 count = atomicAdd(flow.counters, 1u), rest = count - flow.lag;
      is_first = count < flow.lag || rest % 2 != 0;
      number = count < flow.lag ? count : (is_first ? flow.lag : 0) + rest / 2;
    } while (is_first && number >= tiles);
    is_last = number >= tiles;
    const Place place = Place::of(number, pass.tiles);
    row = place.row;
    tile = place.tile;
  }
};

// Powers for columns of a tile and rows j = t + m kGroup: those of m kGroup for columns and m, and those of
// t, with what is left, for threads.
struct Powers {
  Pair* of_values;
  Pair* of_threads;

  static constexpr i32 kCount = 1 << (kLogValues + kLogColumns);

  __device__ explicit Powers(Word* shared)
      : of_values(reinterpret_cast<Pair*>(shared + (First::kWords + 1) / 2 * 2)),
        of_threads(of_values + kCount) {}

  __device__ void make(const Pass& pass, i32 row, u32 start, Base modulus) const {
    const u32 column = start + (threadIdx.x & ((1 << kLogColumns) - 1)), t = threadIdx.x >> kLogColumns;
#pragma unroll
    for (i32 k = 0; k < kCount; k += First::kThreads) {
      const u32 m = t + (k >> kLogColumns);
      if (k + First::kThreads <= kCount || k + threadIdx.x < kCount)
        of_values[k + threadIdx.x] =
            power(pass, row, exponent(column, m << First::kLogGroup), false, modulus);
    }
    const u32 of_thread = exponent(column, t) + rest_of_exponent(column);
    of_threads[threadIdx.x] = power(pass, row, of_thread, pass.scales != nullptr, modulus);
  }

  __device__ void multiply(Word (&x)[First::kValues], Word last) const {
    const Pair t = shared_factor(of_threads + threadIdx.x);
    const Pair* w = of_values + (threadIdx.x & ((1 << kLogColumns) - 1));
#pragma unroll
    for (i32 m = 0; m < First::kValues; ++m) {
      const Pair v = shared_factor(w + (m << kLogColumns));
      if (m != 0) x[m] = F::multiply_loosely(x[m], v, last);
      x[m] = F::multiply_between(x[m], t, last);
    }
  }
};

__device__ void transform_columns(const Pass& pass, const Flow& flow, const volatile Claim& claim,
                                  Word* shared) {
  const i32 thread = threadIdx.x;
  const u32 offset = (thread & ((1 << kLogColumns) - 1)) + (thread >> kLogColumns << RNS_LAST_LENGTH);
  constexpr i32 kStep = 1 << (RNS_LAST_LENGTH + First::kLogGroup);
  constexpr u32 kTileMask = (1u << kLogTiles) - 1;
  const Powers powers(shared);
  Word x[First::kValues];
  {
    const u32 row = claim.row, tile = claim.tile;
    const u32 column = (tile & kTileMask) << kLogColumns;
    const Word* source =
        pass.x + row * pass.x_stride + (static_cast<i64>(tile >> kLogTiles) << kLogMatrix) + column + offset;
#pragma unroll
    for (i32 m = 0; m < First::kValues; ++m) x[m] = __ldcs(source + m * kStep);
    const Base modulus = pass.moduli[row];
    powers.make(pass, row, column, modulus);
    First::transform(x, thread, shared, pass.roots + (static_cast<i64>(row) << kLogLength), modulus.last);
    powers.multiply(x, modulus.last);
  }
  const u32 number = claim.number, in_group = flow.in_group(number);
  if (number >> flow.log_group >= flow.ring) {
    if (thread == 0) await(flow.written(number - (flow.ring << flow.log_group)) + 1, 1u << flow.log_group);
    __syncthreads();
  }
  Word* target = flow.group(number) + (in_group >> kLogTiles << kLogMatrix) +
                 ((in_group & kTileMask) << kLogColumns) + offset;
#pragma unroll
  for (i32 m = 0; m < First::kValues; ++m) target[m * kStep] = x[m];
  __syncthreads();
  if (thread == 0) add_one(flow.written(number));
}

__device__ void transform_rows(const Pass& pass, const Flow& flow, const volatile Claim& claim,
                               Word* shared) {
  const i32 thread = threadIdx.x;
  Word x[Last::kValues];
  {
    const u32 number = claim.number, in_group = flow.in_group(number);
    if (thread == 0) await(flow.written(number), flow.tiles_of(number, pass.tiles * pass.rows));
    __syncthreads();
    // Rows of one matrix, or of several the same row.
    const i32 log_step = flow.log_outer == 0 ? RNS_LAST_LENGTH : kLogMatrix;
    const u32 start = flow.log_outer == 0 ? in_group << (RNS_LAST_LENGTH + kLastColumns)
                                          : (in_group >> kLogLength << (kLogMatrix + kLastColumns)) +
                                                ((in_group & ((1u << kLogLength) - 1)) << RNS_LAST_LENGTH);
    const Word* source =
        flow.group(number) + start + (thread >> Last::kLogGroup << log_step) + (thread & (Last::kGroup - 1));
#pragma unroll
    for (i32 m = 0; m < Last::kValues; ++m) x[m] = __ldcg(source + (m << Last::kLogGroup));
    Last::transform_to_residues(x, thread, shared,
                                flow.last_roots + (static_cast<i64>(claim.row) << RNS_LAST_LENGTH),
                                pass.moduli[claim.row].last);
  }
  constexpr i32 kLogParts = kLogLength - kLastColumns;
  const i32 log_tiles = kLogParts + flow.log_outer;
  const u32 whole = claim.tile, tile = whole & ((1u << log_tiles) - 1);
  const u32 first = flow.log_outer == 0 ? tile << kLastColumns
                                        : (tile >> kLogLength << kLastColumns) +
                                              ((tile & ((1u << kLogLength) - 1)) << flow.log_outer);
  const i32 log_step = kLogLength + flow.log_outer;
  Word* target = pass.out + claim.row * pass.out_stride +
                 (static_cast<i64>(whole >> log_tiles) << (kLogMatrix + flow.log_outer)) + first +
                 (thread & ((1 << kLastColumns) - 1)) +
                 (static_cast<i64>(thread >> kLastColumns) << log_step);
  const i64 step = 1LL << (log_step + Last::kLogGroup);
#pragma unroll
  for (i32 m = 0; m < Last::kValues; ++m) __stcs(target + m * step, x[m]);
  if (thread == 0) add_one(flow.written(claim.number) + 1);  // all have read: they have met since
}

}  // namespace

extern "C" {

__global__ void __launch_bounds__(RNS_THREADS, RNS_BLOCKS) ntt_overlapped(Pass pass, Flow flow) {
  alignas(kAlignment) extern __shared__ Word shared[];
  __shared__ Claim claim;
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) static_cast<volatile Claim&>(claim).next(pass, flow);
    __syncthreads();
    if (claim.is_last) return;
    if (claim.is_first) {
      transform_columns(pass, flow, claim, shared);
    } else {
      transform_rows(pass, flow, claim, shared);
    }
  }
}

}  // extern "C"
