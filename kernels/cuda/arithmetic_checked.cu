// Sums and differences modulo m_i, and which of them the keys of both operands prove to be in range.
#include <rns/arithmetic.cuh>

#include "elementwise.cuh"
#include "keyed.cuh"

using namespace rns;

namespace {

// Sums or differences, and what the keys of both operands say of each. Each block counts at its place in
// `open` the results that may not fit.
template <class Operation, bool kSubtract>
__device__ void apply_checked(const Task& task, const u64* coefficients, u64 start, const SumTest& test,
                              u8* states, u64* open) {
  extern __shared__ u64 shared[];
  const u64* c = load_shared_table(coefficients, task.rows, shared);
  u64 mine = 0;
  for (i64 v = thread_index(); v < task.vectors; v += thread_count()) {
    Keys<1> a(start), b(start);
#pragma unroll 4
    for (i64 i = 0; i < task.rows; ++i) {
      const uint4 x[2] = {task.x[0].vector(i, v), task.x[1].vector(i, v)};
      a.accumulate(0, x[0], c[i]);
      b.accumulate(0, x[1], c[i]);
      __stcs(task.out_vectors(i) + v, of_vectors<Operation>(x, task.moduli[i]));
    }
    u8 four[4];
#pragma unroll
    for (i32 k = 0; k < 4; ++k) {
      four[k] = sum_state(a(0, k), b(0, k), kSubtract, test);
      mine += four[k] != kFits;
    }
    reinterpret_cast<uchar4*>(states)[v] = {four[0], four[1], four[2], four[3]};
  }
  for (i64 j = 4 * task.vectors + thread_index(); j < task.count; j += thread_count()) {
    Key a = {start, 0}, b = {start, 0};
    for (i64 i = 0; i < task.rows; ++i) {
      const u32 x[2] = {task.x[0].at(i, j), task.x[1].at(i, j)};
      a.accumulate(x[0], c[i]);
      b.accumulate(x[1], c[i]);
      task.out[i * task.out_stride + j] = Operation::of(x, task.moduli[i]);
    }
    states[j] = sum_state(a.value(), b.value(), kSubtract, test);
    mine += states[j] != kFits;
  }
  write_block_sum(mine, open);
}

}  // namespace

extern "C" {

#define CHECKED(name, subtract)                                                                          \
  __global__ void name##_arithmetic_checked(Task task, const u64* coefficients, u64 start, SumTest test, \
                                            u8* states, u64* open) {                                     \
    apply_checked<Of_##name, subtract>(task, coefficients, start, test, states, open);                   \
  }
RNS_SUMS(CHECKED)

}  // extern "C"
