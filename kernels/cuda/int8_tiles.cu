// Products of matrices of 8-bit residues on matrix units, joined to residues modulo m_i before anything is
// written. A block takes a tile of results, and the moduli one after another: what their sums say is added up
// in registers.
#include "int8_task.cuh"
#include "matrix_units.cuh"

using namespace rns;

#ifndef RNS_DOWN
#define RNS_DOWN 2
#endif

namespace {

constexpr i32 kWarp = 32;
constexpr i32 kWarps = 4;      // of a block: RNS_DOWN along the rows of its tile
constexpr i32 kWarpRows = 64;  // of a warp's own part of a tile
constexpr i32 kWarpColumns = 32;
constexpr i32 kWarpsAcross = kWarps / RNS_DOWN;
constexpr i32 kRows = kWarpRows * RNS_DOWN;
constexpr i32 kColumns = kWarpColumns * kWarpsAcross;
constexpr i32 kThreads = kWarp * kWarps;
constexpr i32 kBlocks = 2;   // of a multiprocessor, as registers are enough for
constexpr i32 kStages = 4;   // of which all but one are on their way
constexpr i32 kVector = 16;  // bytes that are copied at a time
constexpr i32 kVectors = kStep / kVector;
constexpr i32 kStageBytes = (kRows + kColumns) * kStep;
constexpr i32 kDown = kWarpRows / 16;      // of a matrix unit's results in a warp's
constexpr i32 kAcross = kWarpColumns / 8;  // the same
static_assert(kThreads / kVectors % 8 == 0, "a thread copies to the same place of rows");

// At least as many rows of both as a block of the product has rows and columns, and terms, which are a
// multiple of kStep. What the same windows of `added` hold, if there is such, comes to the products; its
// columns lie together, too.
struct Factors {
  Image left;
  Image right;
  i64 terms;
  Stack added;
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

// Of matrix t the tile that begins there in the block of its window. A launch has less than 2^31 tiles.
struct Tile {
  i32 index;
  i32 t;
  i32 row;
  i32 column;
};

// The next tile, from an index on, with anything in its window.
__device__ Tile find_tile(const Int8Task& s, i32 index) {
  const i32 down = (static_cast<i32>(s.rows) + kRows - 1) / kRows;
  const i32 across = (static_cast<i32>(s.columns) + kColumns - 1) / kColumns;
  for (; index < static_cast<i32>(s.count) * down * across; index += gridDim.x) {
    const i32 t = index / across / down, row = index / across % down * kRows,
              column = index % across * kColumns;
    const Window w = window_of(s, s.first + t);
    if (w.row + row < w.row_end && w.column + column < w.column_end) return {index, t, row, column};
  }
  return {-1, 0, 0, 0};
}

// Where a vector of a row of a stage lies: 8 rows in turn are read without conflicts of banks.
__device__ i32 place_of(i32 row, i32 vector) {
  return row * kStep + (vector ^ (row / 2 % kVectors)) * kVector;
}

// What is to be copied next: of a tile, a modulus and a step of terms. Threads copy a vector of every
// (kThreads / kVectors)-th row.
struct Loader {
  Tile tile;
  i32 modulus = 0;
  i32 terms = 0;   // that are left of the modulus
  const i8* left;  // where the thread's vectors are
  const i8* right;

  __device__ Loader(const Int8Task& s, const Factors& f, const Tile& first) : tile(first) { begin(s, f); }

  // The tile's modulus.
  __device__ void begin(const Int8Task& s, const Factors& f) {
    if (tile.index < 0) return;
    const i64 plane = static_cast<i64>(tile.t) * s.small_count + modulus;
    const i32 vector = threadIdx.x % kVectors * kVector;
    left = f.left.data + plane * f.left.plane + vector;
    right = f.right.data + plane * f.right.plane + vector;
    terms = static_cast<i32>(f.terms);
  }

  __device__ void load(const Int8Task& s, const Factors& f, u32 stage) {
    if (tile.index >= 0) {
      const i32 row = threadIdx.x / kVectors;
      stage += place_of(row, threadIdx.x % kVectors);
      copy<kRows>(left, f.left, tile.row + row, static_cast<i32>(s.rows), stage);
      copy<kColumns>(right, f.right, tile.column + row, static_cast<i32>(s.columns), stage + kRows * kStep);
      advance(s, f);
    }
    end_group();
  }

  // So many rows of an image from one on, of which it has `rows`: beyond its edge something that is there.
  template <i32 Count>
  __device__ void copy(const i8* from, const Image& image, i32 row, i32 rows, u32 to) const {
    const i32 width = static_cast<i32>(image.row);
#pragma unroll
    for (i32 k = 0; k < Count; k += kThreads / kVectors) {
      copy_async(to + k * kStep, from + static_cast<i64>(min(row + k, rows - 1)) * width);
    }
  }

  __device__ void advance(const Int8Task& s, const Factors& f) {
    left += f.left.step;
    right += f.right.step;
    if ((terms -= kStep) > 0) return;
    if (++modulus == s.small_count) {
      modulus = 0;
      tile = find_tile(s, tile.index + gridDim.x);
    }
    begin(s, f);
  }
};

// A warp's part of a tile.
struct Part {
  i32 sums[kDown][kAcross][4];
  SmallResidues found[kDown][kAcross][4];

  template <class Function>
  __device__ void each(Function function) {
#pragma unroll
    for (i32 i = 0; i < kDown; ++i) {
#pragma unroll
      for (i32 j = 0; j < kAcross; ++j) {
#pragma unroll
        for (i32 k = 0; k < 4; ++k) function(sums[i][j][k], found[i][j][k]);
      }
    }
  }

  // The products of a stage, whose rows and columns the thread reads from these places on.
  __device__ void multiply(u32 stage, i32 left, i32 right) {
#pragma unroll
    for (i32 half = 0; half < 2; ++half) {
      u32 a[kDown][4], b[kAcross][2];
      const u32 rows = stage + (left ^ half * 2 * kVector), columns = stage + (right ^ half * 2 * kVector);
#pragma unroll
      for (i32 i = 0; i < kDown; ++i) {
        load_matrices(rows + i * 16 * kStep, a[i][0], a[i][1], a[i][2], a[i][3]);
      }
#pragma unroll
      for (i32 j = 0; j < kAcross; j += 2) {
        load_matrices(columns + j * 8 * kStep, b[j][0], b[j][1], b[j + 1][0], b[j + 1][1]);
      }
#pragma unroll
      for (i32 i = 0; i < kDown; ++i) {
#pragma unroll
        for (i32 j = 0; j < kAcross; ++j) multiply_add(sums[i][j], a[i], b[j][0], b[j][1]);
      }
    }
  }
};

// Where a warp's part of a tile is in matrices, from its thread's first number on.
struct Place {
  u32* x;
  i64 stride;
  i64 rows;  // that are left in the window
  i64 columns;

  __device__ Place(const Int8Task& s, const Stack& matrices, const Tile& tile, i32 top, i32 left)
      : stride(matrices.stride) {
    const i64 t = s.first + tile.t;
    const Window w = window_of(s, t);
    const i64 row = w.row + tile.row + top + threadIdx.x % kWarp / 4;
    const i64 column = w.column + tile.column + left + threadIdx.x % 4 * 2;
    x = const_cast<u32*>(matrices.of(t / s.batch, t % s.batch)) + row * stride + column;
    rows = w.row_end - row;
    columns = w.column_end - column;
  }

  // Calls a function with each number that is in the window, and its place in a Part.
  template <class Function>
  __device__ void each(Function function) const {
#pragma unroll
    for (i32 i = 0; i < kDown; ++i) {
#pragma unroll
      for (i32 k = 0; k < 4; ++k) {
        const i32 row = i * 16 + k / 2 * 8;
#pragma unroll
        for (i32 j = 0; j < kAcross; ++j) {
          const i32 column = j * 8 + k % 2;
          if (row < rows && column < columns) function(x[row * stride + column], i, j, k);
        }
      }
    }
  }
};

// All numbers of `added` are read before the first one is written, for each one takes long, and computed
// whether they are in the window or not: so many independent chains go side by side.
__device__ void write(const Int8Task& s, const Stack& added, const Tile& tile, i32 top, i32 left,
                      const Recombination& m, Part& part) {
  const Modulus modulus = m.modulus;
  const i64 product = m.product;
  part.each([](i32& sum, SmallResidues&) { sum = 0; });
  if (added.data != nullptr) {
    const Place place(s, added, tile, top, left);
    place.each([&](const u32& x, i32 i, i32 j, i32 k) { part.sums[i][j][k] = static_cast<i32>(x); });
  }
  part.each([&](i32& sum, SmallResidues& found) {
    sum = static_cast<i32>(mod_add(static_cast<u32>(sum), found.reduce(modulus, product), modulus.last));
  });
  const Place place(s, s.x, tile, top, left);
  place.each([&](u32& x, i32 i, i32 j, i32 k) { x = static_cast<u32>(part.sums[i][j][k]); });
}

#endif

extern __shared__ uint4 memory[];

}  // namespace

extern "C" {

__global__ void __launch_bounds__(kThreads, kBlocks)
    int8_multiply(Int8Task s, const Recombination* moduli, Factors f) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  const u32 stages = shared_address(memory);
  const i32 warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const i32 top = warp / kWarpsAcross * kWarpRows, left = warp % kWarpsAcross * kWarpColumns;
  const i32 own_rows = place_of(top + lane % 16, lane / 16);
  const i32 own_columns = place_of(kRows + left + lane / 16 * 8 + lane % 8, lane / 8 % 2);
  Tile tile = find_tile(s, blockIdx.x);
  Loader loader(s, f, tile);
  const bool is_long = f.terms > kShortTerms;
  for (i32 stage = 0; stage < kStages - 1; ++stage) loader.load(s, f, stages + stage * kStageBytes);
  i32 stage = 0;
  while (tile.index >= 0) {
    const Recombination& m = moduli[(s.first + tile.t) / s.batch];
    Part part;
    const i64 start = m.start;
    part.each([&](i32&, SmallResidues& found) { found.sum = start; });
    for (i32 j = 0; j < s.small_count; ++j) {
      const SmallModulus& q = s.small[j];
      const i64 weight = m.weights[j];
      const i32 first = is_long ? 0 : q.start;
      part.each([&](i32& sum, SmallResidues&) { sum = first; });
      for (i32 term = 0; term < f.terms; term += kStep) {
        wait_for_groups<kStages - 2>();
        __syncthreads();  // all copies have come, and all threads are done with the stage before
        loader.load(s, f, stages + (stage + kStages - 1) % kStages * kStageBytes);
        part.multiply(stages + stage * kStageBytes, own_rows, own_columns);
        stage = (stage + 1) % kStages;
      }
      if (is_long) {
        part.each([&](i32& sum, SmallResidues& found) { found.add(shifted_long_residue(sum, q), weight); });
      } else {
        part.each([&](i32& sum, SmallResidues& found) { found.add(shifted_residue(sum, q), weight); });
      }
    }
    write(s, f.added, tile, top, left, m, part);
    tile = find_tile(s, tile.index + gridDim.x);
  }
  wait_for_groups<0>();
#endif
}

}  // extern "C"
