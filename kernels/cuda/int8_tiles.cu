// Products of matrices of 8-bit residues on matrix units, joined to residues modulo m_i before anything is
// written. A block takes a tile of results, and the moduli one after another: what their sums say is added up
// in registers. Results are words, 8-bit residues for the next product, or both.
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
constexpr i32 kNumbers = 8;  // of a row of a warp's part that a thread has, one beside the other
static_assert(kThreads / kVectors % 32 == 0, "a thread copies to the same place of rows");
static_assert(kNumbers == 2 * kAcross, "four threads have a row of a warp's part");

// At least as many rows of both as a block of the product has rows and columns, and terms, which are a
// multiple of kStep. What the same windows of `added` hold, if there is such, comes to the products.
struct Factors {
  Image left;
  Image right;
  i64 terms;
  Stack added;
};

// 8-bit matrices that results become, if any, with 0 beyond these up to s.padded_columns, a multiple of
// kStep; and whether they are written as words, too.
struct Results {
  Image image;
  SmallModulus small[kSmallModuli];
  i32 small_count;
  i32 has_words;
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

// Where a vector of a row of a stage lies: those of left matrices that are read at a time, 8 rows in turn,
// are in different banks, and so are those of right ones (column_of).
__device__ i32 left_place(i32 row, i32 vector) {
  return row * kStep + (vector ^ (row / 2 % kVectors)) * kVector;
}

__device__ i32 right_place(i32 row, i32 vector) {
  return (kRows + row) * kStep + (vector ^ (row / kNumbers % kVectors)) * kVector;
}

// Which column of a warp's part is column k % 8 of result k / 8 of matrix units: a thread, which has two
// columns of each, so has kNumbers beside one another.
__device__ i32 column_of(i32 k) { return k % 8 / 2 * kNumbers + k / 8 * 2 + k % 2; }

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
      const i32 row = threadIdx.x / kVectors, vector = threadIdx.x % kVectors;
      copy<kRows>(left, f.left, tile.row + row, static_cast<i32>(s.rows), stage + left_place(row, vector));
      copy<kColumns>(right, f.right, tile.column + row, static_cast<i32>(s.columns),
                     stage + right_place(row, vector));
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
        load_matrices(columns + column_of(j * 8) * kStep, b[j][0], b[j][1], b[j + 1][0], b[j + 1][1]);
      }
#pragma unroll
      for (i32 i = 0; i < kDown; ++i) {
#pragma unroll
        for (i32 j = 0; j < kAcross; ++j) multiply_add(sums[i][j], a[i], b[j][0], b[j][1]);
      }
    }
  }
};

// Where a thread's numbers of a tile are: of every eighth row of its warp's part, kNumbers.
struct Place {
  i64 t;  // the matrix
  i64 row;
  i64 column;
  i64 rows;  // that are left in the window
  i64 columns;

  __device__ Place(const Int8Task& s, const Tile& tile, i32 top, i32 left) : t(s.first + tile.t) {
    const Window w = window_of(s, t);
    row = w.row + tile.row + top + threadIdx.x % kWarp / 4;
    column = w.column + tile.column + left + threadIdx.x % 4 * kNumbers;
    rows = w.row_end - row;
    columns = w.column_end - column;
  }

  // Calls a function with each row that is in the window, counted from the first one, and its place in a
  // Part.
  template <class Function>
  __device__ void each_row(Function function) const {
#pragma unroll
    for (i32 i = 0; i < kDown; ++i) {
#pragma unroll
      for (i32 half = 0; half < 2; ++half) {
        if (i * 16 + half * 8 < rows) function(i * 16 + half * 8, i, half);
      }
    }
  }

  // And with each word of matrices that is in the window.
  template <class Function>
  __device__ void each(const Int8Task& s, const Stack& matrices, Part& part, Function function) const {
    u32* first = const_cast<u32*>(matrices.of(t / s.batch, t % s.batch)) + row * matrices.stride +
                 column * matrices.step;
    const i64 stride = matrices.stride, step = matrices.step;
    const bool has_vectors =
        step == 1 && columns >= kNumbers && (reinterpret_cast<u64>(first) / 4 | stride) % 4 == 0;
    each_row([&](i32 r, i32 i, i32 half) {
      u32* x = first + r * stride;
      i32(&own)[kAcross][4] = part.sums[i];
      if (has_vectors) {
#pragma unroll
        for (i32 j = 0; j < kAcross; j += 2) {
          function(reinterpret_cast<uint4*>(x)[j / 2], own[j][2 * half], own[j][2 * half + 1],
                   own[j + 1][2 * half], own[j + 1][2 * half + 1]);
        }
      } else {
#pragma unroll
        for (i32 c = 0; c < kNumbers; ++c) {
          if (c < columns) function(x[c * step], own[c / 2][2 * half + c % 2]);
        }
      }
    });
  }
};

struct Reader {
  __device__ void operator()(const u32& x, i32& own) const { own = static_cast<i32>(x); }
  __device__ void operator()(const uint4& x, i32& a, i32& b, i32& c, i32& d) const {
    const uint4 words = x;
    a = static_cast<i32>(words.x), b = static_cast<i32>(words.y);
    c = static_cast<i32>(words.z), d = static_cast<i32>(words.w);
  }
};

struct Writer {
  __device__ void operator()(u32& x, i32 own) const { x = static_cast<u32>(own); }
  __device__ void operator()(uint4& x, i32 a, i32 b, i32 c, i32 d) const {
    x = {static_cast<u32>(a), static_cast<u32>(b), static_cast<u32>(c), static_cast<u32>(d)};
  }
};

// Residues modulo q of two rows of a thread, 8 rows apart, of those that there are.
template <bool HasFactor>
__device__ void write_parts(const i32 (&rows)[2][kNumbers], i64 count, const SmallModulus& q, i8* to,
                            i64 stride) {
#pragma unroll
  for (i32 half = 0; half < 2; ++half) {
    const u64 low = packed_parts<HasFactor>(rows[half], q);
    const u64 high = packed_parts<HasFactor>(rows[half] + kNumbers / 2, q);
    if (half * 8 < count) *reinterpret_cast<u64*>(to + half * 8 * stride) = low | high << 32;
  }
}

// Residues of a thread's words, of which there is 0 beyond the window's columns: 16 side by side, for there
// are no registers for the parts of all.
__device__ void split(const Results& results, const Place& place, i64 padded_columns, const Tile& tile,
                      i32 top, i32 left, u32 last, const Part& part) {
  const i64 column = tile.column + left + threadIdx.x % 4 * kNumbers;
  if (column >= padded_columns) return;
  const Image& image = results.image;
  i8* first = image.data + tile.t * results.small_count * image.plane + column / kStep * image.step +
              column % kStep + (tile.row + top + threadIdx.x % kWarp / 4) * image.row;
#pragma unroll
  for (i32 i = 0; i < kDown; ++i) {
    i32 rows[2][kNumbers];
#pragma unroll
    for (i32 k = 0; k < 2 * kNumbers; ++k) {
      const i32 half = k / kNumbers, c = k % kNumbers;
      const u32 word = static_cast<u32>(part.sums[i][c / 2][2 * half + c % 2]);
      rows[half][c] = c < place.columns ? centred(word, last) : 0;
    }
    i8* to = first + i * 16 * image.row;
#pragma unroll 1
    for (i32 j = 0; j < results.small_count; ++j, to += image.plane) {
      const SmallModulus& q = results.small[j];
      if (q.factor == 1) {
        write_parts<false>(rows, place.rows - i * 16, q, to, image.row);
      } else {
        write_parts<true>(rows, place.rows - i * 16, q, to, image.row);
      }
    }
  }
}

// All numbers of `added` are read before the first one is written, for each one takes long, and computed
// whether they are in the window or not: so many independent chains go side by side.
__device__ void write(const Int8Task& s, const Stack& added, const Results& results, const Tile& tile,
                      i32 top, i32 left, const Recombination& m, Part& part) {
  const Modulus modulus = m.modulus;
  const i64 product = m.product;
  const Place place(s, tile, top, left);
  part.each([](i32& sum, SmallResidues&) { sum = 0; });
  if (added.data != nullptr) place.each(s, added, part, Reader());
  part.each([&](i32& sum, SmallResidues& found) {
    sum = static_cast<i32>(mod_add(static_cast<u32>(sum), found.reduce(modulus, product), modulus.last));
  });
  if (results.has_words) place.each(s, s.x, part, Writer());
  if (results.small_count > 0) {
    split(results, place, s.padded_columns, tile, top, left, modulus.last, part);
  }
}

#endif

extern __shared__ uint4 memory[];

}  // namespace

extern "C" {

__global__ void __launch_bounds__(kThreads, kBlocks)
    int8_multiply(Int8Task s, const Recombination* moduli, Factors f, Results results) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  const u32 stages = shared_address(memory);
  const i32 warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const i32 top = warp / kWarpsAcross * kWarpRows, left = warp % kWarpsAcross * kWarpColumns;
  const i32 own_rows = left_place(top + lane % 16, lane / 16);
  const i32 own_columns = right_place(left + column_of(lane / 16 * 8 + lane % 8), lane / 8 % 2);
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
    write(s, f.added, results, tile, top, left, m, part);
    tile = find_tile(s, tile.index + gridDim.x);
  }
  wait_for_groups<0>();
#endif
}

}  // extern "C"
