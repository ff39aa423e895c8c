// Number-theoretic transforms modulo primes p < 2^64, by decimation in frequency: levels of long butterflies
// go through memory, the last ones through shared memory, from where values are written in their order.
#include <rns/wide_ntt.cuh>

#include "grid.cuh"

using namespace rns;

namespace {

// Residue i of number j is x[i * stride + j]; of a result its rows are `count` apart. Rows consist of runs of
// a length. The factors of a row are `length` apart: that at half + k is of the power k of a root of order 2
// half.
struct WideRuns {
  const u64* x;
  i64 stride;
  u64* out;
  i64 rows;
  i64 count;
  i64 length;
  const WideFactor* factors;
  const WideModulus* moduli;
};

__device__ __forceinline__ void butterfly(u64& a, u64& b, WideFactor w, u64 last) {
  if (last >> 63 == 0) {
    ShortWideField::butterfly(a, b, w, last);
  } else {
    WideField::butterfly(a, b, w, last);
  }
}

}  // namespace

extern "C" {

__global__ void wide_powers(const u64* roots, const WideModulus* moduli, i64 rows, i64 length,
                            WideFactor* table) {
  for (i64 t = thread_index(); t < rows * length; t += thread_count()) {
    const i64 i = t / length, place = t - i * length;
    if (place == 0) continue;
    const i64 half = i64{1} << (63 - __clzll(place));
    const u64 exponent = static_cast<u64>(place - half) * (length / 2 / half);
    table[t] = wide_factor(mod_pow(roots[i], exponent, moduli[i]), moduli[i]);
  }
}

// Butterflies of numbers `half` apart, from x to out, which may be the same.
__global__ void wide_level(WideRuns runs, i64 half) {
  const i64 pairs = runs.count / 2;
  for (i64 t = thread_index(); t < pairs * runs.rows; t += thread_count()) {
    const i64 i = t / pairs, b = t - i * pairs, k = b & (half - 1), j = 2 * (b - k) + k;
    u64 x = runs.x[i * runs.stride + j], y = runs.x[i * runs.stride + j + half];
    butterfly(x, y, runs.factors[i * runs.length + half + k], runs.moduli[i].last);
    runs.out[i * runs.count + j] = x;
    runs.out[i * runs.count + j + half] = y;
  }
}

// All levels of runs that a tile of 2^log_tile words holds, or the last ones; then the order, times scales.
__global__ void wide_tile(WideRuns runs, i32 log_tile, i32 log_length, const u64* scales) {
  extern __shared__ u64 tile[];
  const i64 words = i64{1} << log_tile, tiles = (runs.count + words - 1) / words;
  for (i64 t = blockIdx.x; t < tiles * runs.rows; t += gridDim.x) {
    const i64 i = t / tiles, first = (t - i * tiles) * words;
    const i64 width = runs.count - first < words ? runs.count - first : words;
    const WideModulus m = runs.moduli[i];
    const WideFactor* factors = runs.factors + i * runs.length;
    for (i64 k = threadIdx.x; k < width; k += blockDim.x) tile[k] = runs.x[i * runs.stride + first + k];
    __syncthreads();
    for (i64 half = (runs.length < words ? runs.length : words) / 2; half > 0; half /= 2) {
      for (i64 b = threadIdx.x; b < width / 2; b += blockDim.x) {
        const i64 k = b & (half - 1), j = 2 * (b - k) + k;
        butterfly(tile[j], tile[j + half], factors[half + k], m.last);
      }
      __syncthreads();
    }
    const WideFactor scale = wide_factor(scales[i], m);
    for (i64 k = threadIdx.x; k < width; k += blockDim.x) {
      const i64 place = (first + k) & (runs.length - 1), start = first + k - place;
      const u64 reversed = log_length == 0 ? 0 : __brevll(static_cast<u64>(place)) >> (64 - log_length);
      runs.out[i * runs.count + start + static_cast<i64>(reversed)] = mod_mul(tile[k], scale, m.last);
    }
    __syncthreads();
  }
}

}  // extern "C"
