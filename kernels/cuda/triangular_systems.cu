// Solutions of upper triangular systems modulo primes, by a warp for some columns of each.
#include <rns/matrix.cuh>
#include <rns/product_sum.cuh>

#include "grid.cuh"
#include "stack.cuh"

using namespace rns;

namespace {

constexpr i32 kWarp = 32;
constexpr u32 kAll = ~0u;

struct Triangular {
  Stack upper;
  Stack right;
  Stack out;
  const u32* inverses;  // (n, count, rows), of the diagonals
  const Modulus* moduli;
  i64 moduli_count;
  i64 count;
  i64 rows;
  i64 columns;
  i64 lanes;  // columns of a warp, a power of two
};
__device__ void solve_columns(const Triangular& s, i64 i, i64 b, i64 first) {
  const i64 lane = threadIdx.x % kWarp, column = first + lane % s.lanes;
  const i64 part = lane / s.lanes, parts = kWarp / s.lanes, t = i * s.count + b;
  const bool inside = column < s.columns;
  const Modulus m = s.moduli[i];
  const u32* right = s.right.of(i, b) + (inside ? column : first) * s.right.step;
  u32* x = const_cast<u32*>(s.out.of(i, b)) + (inside ? column : first) * s.out.step;
  for (i64 k = s.rows - 1; k >= 0; --k) {
    const u32* row = s.upper.of(i, b) + k * s.upper.stride;
    u32 known = 0;
    i64 j = k + 1 + part;
    while (j < s.rows) {
      ProductSum sum;
      for (i32 n = 0; n < kProductTerms && j < s.rows; ++n, j += parts) {
        sum.add(row[j * s.upper.step], x[j * s.out.stride]);
      }
      known = mod_add(known, sum.reduce(m), m.last);
    }
    for (i64 offset = s.lanes; offset < kWarp; offset *= 2) {
      known = mod_add(known, __shfl_xor_sync(kAll, known, static_cast<i32>(offset)), m.last);
    }
    const u32 rest = mod_sub(right[k * s.right.stride], known, m.last);
    if (part == 0 && inside) x[k * s.out.stride] = mod_mul(rest, s.inverses[t * s.rows + k], m);
    __syncwarp();
  }
}

}  // namespace

extern "C" {

__global__ void __launch_bounds__(256) solve_upper(Triangular s) {
  const i64 across = (s.columns + s.lanes - 1) / s.lanes;
  for (i64 w = thread_index() / kWarp; w < s.moduli_count * s.count * across; w += thread_count() / kWarp) {
    const i64 first = w % across * s.lanes, b = w / across % s.count, i = w / across / s.count;
    solve_columns(s, i, b, first);
  }
}
}  // extern "C"
