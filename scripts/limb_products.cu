// The ceiling of products of 32-bit limbs: independent sums of products in registers, of operands that are
// not known when it is compiled.
#include <limb_sums.cuh>

using namespace rns;

extern "C" __global__ void sum_products(u32* x, i32 rounds) {
  u32* mine = x + (static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x) * 8;
  u32 a[8];
  ColumnSum sum[8];
#pragma unroll
  for (i32 i = 0; i < 8; ++i) {
    a[i] = mine[i];
    sum[i] = {a[i], 0, 0};
  }
#pragma unroll 1
  for (i32 r = 0; r < rounds; ++r) {
#pragma unroll
    for (i32 s = 0; s < 8; ++s) {
#pragma unroll
      for (i32 i = 0; i < 8; ++i) sum[i].add_product(a[i], a[(i + s) % 8]);
    }
    a[0] ^= sum[0].low;
    a[1] ^= sum[1].high;
  }
  for (i32 i = 0; i < 8; ++i) mine[i] = sum[i].low ^ sum[i].high ^ sum[i].top;
}
