// Mixed-radix conversion, one number a thread; the digits found so far are read back from the result.
#include <rns/mixed_radix.cuh>

#include "grid.cuh"

using namespace rns;

extern "C" __global__ void mixed_radix_digits(const u32* residues, i64 stride, i64 count, i32 moduli,
                                              const u32* last, const Factor* ones, const Factor* inverses,
                                              u32* digits) {
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    for (i32 i = 0; i < moduli; ++i) {
      const Factor* row = inverses + inverse_row(i);
      u32 x = residues[i * stride + j];
      for (i32 k = 0; k < i; ++k) x = mixed_radix_step(x, digits[k * count + j], ones[i], row[k], last[i]);
      digits[i * count + j] = x;
    }
  }
}
