// Floating-point interval evaluation, one number a thread; each refinement step reads its residues again.
#include <rns/interval.cuh>

#include "grid.cuh"

using namespace rns;

namespace {

__device__ Bounds sum_of(const u32* x, i64 stride, i32 moduli, const IntervalTables& tables) {
  Bounds sum = empty_sum();
  for (i32 i = 0; i < moduli; ++i) {
    interval_accumulate(sum, __ldg(x + i * stride), modulus_of(tables, i));
  }
  return sum;
}

__device__ Bounds sum_of(const u32* x, i64 stride, i32 moduli, const IntervalTables& tables, i32 shift) {
  Bounds sum = empty_sum();
  for (i32 i = 0; i < moduli; ++i) {
    interval_accumulate(sum, __ldg(x + i * stride), modulus_of(tables, i), shift);
  }
  return sum;
}

}  // namespace

extern "C" __global__ void interval(const u32* residues, i64 stride, i64 count, i32 moduli, const u32* last,
                                    const Factor* inverses, i64 blocks, const Factor* powers,
                                    const Bounds* reciprocals, IntervalGoal goal, double* low, double* upp,
                                    i32* exponent, u32* steps) {
  const IntervalTables tables = {last, inverses, blocks, powers, reciprocals};
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    const u32* x = residues + j;
    IntervalSearch search;
    bool done = advance(search, sum_of(x, stride, moduli, tables), goal);
    while (!done) done = advance(search, sum_of(x, stride, moduli, tables, search.shift), goal);
    apply_scale(search, goal);
    low[j] = search.bounds.low;
    upp[j] = search.bounds.upp;
    exponent[j] = search.exponent;
    steps[j] = static_cast<u32>(search.steps);
  }
}
