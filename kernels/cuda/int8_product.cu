// Matrices modulo m_i split into matrices of 8-bit residues modulo small moduli, and sums of products of
// these joined to residues modulo m_i. Both go through memory once; the products between are a library's.
#include "grid.cuh"
#include "int8_task.cuh"

using namespace rns;

namespace {

constexpr i32 kBlock = 256;
constexpr i32 kRows = 32;      // of a tile that is split
constexpr i32 kColumns = 128;  // four for each thread of a warp
constexpr i32 kWide = 4;       // numbers that a thread packs into a word

constexpr i32 kThreadRows = kBlock / 32;

// Tiles of numbers that become 8-bit residues.
__device__ inline i64 tiles_down(const Int8Task& s) { return (s.padded_rows + kRows - 1) / kRows; }
__device__ inline i64 tiles_across(const Int8Task& s) { return (s.padded_columns + kColumns - 1) / kColumns; }
__device__ inline i64 tile_count(const Int8Task& s) { return s.count * tiles_down(s) * tiles_across(s); }

// Tile n of matrices whose columns are the terms of the 8-bit ones. There is 0 for what is beyond a window.
template <bool HasFactor>
__device__ void split_tile(const Int8Task& s, const Recombination* moduli, const Image& parts, i64 n,
                           i32 (&tile)[kColumns][kRows + 1]) {
  const i64 down = tiles_down(s), across = tiles_across(s);
  const i64 column = n % across * kColumns, row = n / across % down * kRows, t = n / (across * down);
  const i64 i = (s.first + t) / s.batch, b = (s.first + t) % s.batch;
  const Window w = window_of(s, s.first + t);
  const u32* x = s.x.of(i, b) + (w.row + row) * s.x.stride + (w.column + column) * s.x.step;
  const i64 rows = w.row_end - w.row - row, columns = w.column_end - w.column - column;
  const u32 last = moduli[i].modulus.last;
  __syncthreads();  // the tile before is done with
  // Neighbouring threads take numbers that are neighbours in memory.
  const bool is_turned = s.x.step != 1;
#pragma unroll 8
  for (i32 k = 0; k < kRows * kColumns / kBlock; ++k) {
    const i32 place = k * kBlock + threadIdx.x;
    const i32 r = is_turned ? place % kRows : place / kColumns;
    const i32 c = is_turned ? place / kRows : place % kColumns;
    tile[c][r] = r < rows && c < columns ? centred(x[r * s.x.stride + c * s.x.step], last) : 0;
  }
  __syncthreads();
  const i32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const i64 term = column + lane * kWide;
  if (term >= s.padded_columns) return;
  i8* to = parts.data + t * s.small_count * parts.plane + term / kStep * parts.step + term % kStep +
           (row + warp) * parts.row;
  for (i32 r = warp; r < kRows && row + r < s.padded_rows; r += kThreadRows, to += kThreadRows * parts.row) {
    const NumberParts<HasFactor> own[kWide] = {
        NumberParts<HasFactor>(tile[lane * kWide][r]), NumberParts<HasFactor>(tile[lane * kWide + 1][r]),
        NumberParts<HasFactor>(tile[lane * kWide + 2][r]), NumberParts<HasFactor>(tile[lane * kWide + 3][r])};
    i8* place = to;
#pragma unroll
    for (i32 j = 0; j < kSmallModuli; ++j) {
      if (j >= s.small_count) break;
      *reinterpret_cast<u32*>(place) = packed_parts(own, s.small[j]);
      place += parts.plane;
    }
  }
}

}  // namespace

extern "C" {

// Matrices whose small moduli have factors, and others that have none.
__global__ void __launch_bounds__(kBlock, 5) int8_split(Int8Task left, Image left_parts, Int8Task right,
                                                        Image right_parts, const Recombination* moduli) {
  __shared__ i32 tile[kColumns][kRows + 1];
  const i64 first = tile_count(left), count = first + tile_count(right);
  for (i64 n = blockIdx.x; n < count; n += gridDim.x) {
    if (n < first) {
      split_tile<true>(left, moduli, left_parts, n, tile);
    } else {
      split_tile<false>(right, moduli, right_parts, n - first, tile);
    }
  }
}

// sums: (count, small_count, padded_rows, padded_columns), of which those of the block go to
// the windows of s.x: what is there is replaced or added to.
__global__ void __launch_bounds__(kBlock)
    int8_join(Int8Task s, const Recombination* moduli, const i32* sums, i32 is_added) {
  const i64 groups = (s.columns + kWide - 1) / kWide, size = s.padded_rows * s.padded_columns;
  for (i64 k = thread_index(); k < s.count * s.rows * groups; k += thread_count()) {
    const i64 column = k % groups * kWide, row = k / groups % s.rows, t = k / (groups * s.rows);
    const i64 i = (s.first + t) / s.batch, b = (s.first + t) % s.batch;
    const Window w = window_of(s, s.first + t);
    if (w.row + row >= w.row_end) continue;
    const i32* from = sums + t * s.small_count * size + row * s.padded_columns + column;
    const Recombination& m = moduli[i];
    SmallResidues results[kWide] = {{m.start}, {m.start}, {m.start}, {m.start}};
#pragma unroll
    for (i32 j = 0; j < kSmallModuli; ++j) {
      if (j < s.small_count) {
        const int4 sum = *reinterpret_cast<const int4*>(from + j * size);
        const SmallModulus& q = s.small[j];
        const i64 weight = m.weights[j];
        results[0].add(shifted_long_residue(sum.x, q), weight);
        results[1].add(shifted_long_residue(sum.y, q), weight);
        results[2].add(shifted_long_residue(sum.z, q), weight);
        results[3].add(shifted_long_residue(sum.w, q), weight);
      }
    }
    u32* out = const_cast<u32*>(s.x.of(i, b)) + (w.row + row) * s.x.stride + w.column + column;
#pragma unroll
    for (i32 c = 0; c < kWide; ++c) {
      if (w.column + column + c < w.column_end) {
        const u32 found = results[c].reduce(m.modulus, m.product);
        out[c] = is_added ? mod_add(out[c], found, m.modulus.last) : found;
      }
    }
  }
}

}  // extern "C"
