// Runs of words in bit-reversed order, a tile of 1024 words at a time through shared memory.
#include "grid.cuh"

using namespace rns;

// A tile has all words of a run whose numbers have the same bits but for the lowest and the highest five.
constexpr i32 kBits = 5;
constexpr i32 kSide = 1 << kBits;

__device__ inline i32 reversed(i32 k, i32 bits) {
  return bits == 0 ? 0 : static_cast<i32>(__brev(static_cast<u32>(k)) >> (32 - bits));
}

// Rows of runs of 2^log_length words, at least 2^10.
template <typename Word>
__device__ void reverse_runs(const Word* x, i64 x_stride, i64 rows, i64 runs, i32 log_length, Word* out,
                             i64 out_stride) {
  __shared__ Word tile[kSide][kSide + 1];
  const i32 log_tiles = log_length - 2 * kBits;
  for (i64 number = blockIdx.x; number < rows * runs << log_tiles; number += gridDim.x) {
    const i64 run = number >> log_tiles, row = run / runs, start = (run - row * runs) << log_length;
    const i32 middle = static_cast<i32>(number & ((1LL << log_tiles) - 1));
    const Word* source = x + row * x_stride + start + (static_cast<i64>(middle) << kBits);
    Word* target = out + row * out_stride + start + (static_cast<i64>(reversed(middle, log_tiles)) << kBits);
    for (i32 k = threadIdx.x; k < kSide * kSide; k += blockDim.x) {
      const i32 high = k >> kBits, low = k & (kSide - 1);
      tile[high][low] = source[(static_cast<i64>(high) << (log_length - kBits)) + low];
    }
    __syncthreads();
    for (i32 k = threadIdx.x; k < kSide * kSide; k += blockDim.x) {
      const i32 high = k >> kBits, low = k & (kSide - 1);
      target[(static_cast<i64>(high) << (log_length - kBits)) + low] =
          tile[reversed(low, kBits)][reversed(high, kBits)];
    }
    __syncthreads();
  }
}

extern "C" __global__ void reverse_runs_32(const u32* x, i64 x_stride, i64 rows, i64 runs, i32 log_length,
                                           u32* out, i64 out_stride) {
  reverse_runs(x, x_stride, rows, runs, log_length, out, out_stride);
}

extern "C" __global__ void reverse_runs_64(const u64* x, i64 x_stride, i64 rows, i64 runs, i32 log_length,
                                           u64* out, i64 out_stride) {
  reverse_runs(x, x_stride, rows, runs, log_length, out, out_stride);
}
