// Cyclic products of runs that one tile holds: transforms of both, their product, and its inverse transform.
#include "ntt_pass.cuh"

using namespace rns;

namespace {

using T = Tile<F, kLogLength, 0, kLogValues, false>;

}  // namespace

extern "C" {

// Products of each run of x with one of y: with run k that of number k modulo the period, a power of two.
// Those of y may be transformed already, as they are where they serve many.
__global__ void __launch_bounds__(RNS_THREADS, RNS_BLOCKS)
    cyclic_products(Pass pass, const u32* y, i64 y_stride, i32 y_is_transformed, i64 period,
                    const Factor* inverse_roots, i64 runs) {
  alignas(kAlignment) extern __shared__ Word shared[];
  const i32 thread = threadIdx.x & (T::kThreads - 1), slot = threadIdx.x >> T::kLogThreads;
  const i32 slots = blockDim.x >> T::kLogThreads;
  for (u32 number = blockIdx.x; number < pass.tiles * pass.rows; number += gridDim.x) {
    const Place place = Place::of(number, pass.tiles);
    const i64 index = static_cast<i64>(place.tile) * slots + slot;
    const bool is_one = index < runs;
    const u32* x_run = pass.x + place.row * pass.x_stride + (index << kLogLength) + thread;
    const u32* y_run = y + place.row * y_stride + ((index & (period - 1)) << kLogLength) + thread;
    u32* target = pass.out + place.row * pass.out_stride + (index << kLogLength) + thread;
    const Modulus modulus = pass.moduli[place.row];
    const i64 row_of_roots = static_cast<i64>(place.row) << kLogLength;
    u32 x[T::kValues], other[T::kValues];
#pragma unroll
    for (i32 m = 0; m < T::kValues; ++m) other[m] = is_one ? y_run[m << T::kLogThreads] : 0;
    // Of y, of x, and of their product back; one copy of the code.
#pragma unroll 1
    for (i32 k = y_is_transformed; k < 3; ++k) {
#pragma unroll
      for (i32 m = 0; m < T::kValues; ++m) {
        if (k == 0) x[m] = other[m];
        if (k == 1) x[m] = is_one ? x_run[m << T::kLogThreads] : 0;
        if (k == 2) x[m] = mod_mul(x[m], other[m], modulus);
      }
      const Factor* roots = k == 2 ? inverse_roots : pass.roots;
      T::transform(x, thread, shared + slot * T::kWords, roots + row_of_roots, modulus.last);
      if (k == 0) {
#pragma unroll
        for (i32 m = 0; m < T::kValues; ++m) other[m] = x[m];
      }
    }
    const Factor scale = load_factor(pass.scales, place.row);
    if (!is_one) continue;
#pragma unroll
    for (i32 m = 0; m < T::kValues; ++m) {
      target[m << T::kLogThreads] = F::multiply(x[m], scale, modulus.last);
    }
  }
}

}  // extern "C"
