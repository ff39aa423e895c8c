// Element-wise arithmetic modulo m_i, and which results the keys of one operand prove to be in range.
#include <rns/arithmetic.cuh>

#include "elementwise.cuh"
#include "keyed.cuh"

using namespace rns;

namespace {

// Results, and what the keys of the operand at the index `deciding` say of each.
template <class Operation>
__device__ void apply_windowed(const Task& task, i32 deciding, const u64* coefficients, u64 start,
                               const WindowTest& test, u8* states, u64* open) {
  extern __shared__ u64 shared[];
  const u64* c = load_shared_table(coefficients, task.rows, shared);
  u64 mine = 0;
  for (i64 v = thread_index(); v < task.vectors; v += thread_count()) {
    Keys<1> keys(start);
#pragma unroll 4
    for (i64 i = 0; i < task.rows; ++i) {
      uint4 x[Operation::kOperands];
#pragma unroll
      for (i32 o = 0; o < Operation::kOperands; ++o) {
        x[o] = task.x[o].vector(i, v);
        if (o == deciding) keys.accumulate(0, x[o], c[i]);
      }
      __stcs(task.out_vectors(i) + v, of_vectors<Operation>(x, task.moduli[i]));
    }
    u8 four[4];
#pragma unroll
    for (i32 k = 0; k < 4; ++k) {
      four[k] = window_state(keys(0, k), test);
      mine += four[k] != kFits;
    }
    reinterpret_cast<uchar4*>(states)[v] = {four[0], four[1], four[2], four[3]};
  }
  for (i64 j = 4 * task.vectors + thread_index(); j < task.count; j += thread_count()) {
    Key key = {start, 0};
    for (i64 i = 0; i < task.rows; ++i) {
      u32 x[Operation::kOperands];
#pragma unroll
      for (i32 o = 0; o < Operation::kOperands; ++o) {
        x[o] = task.x[o].at(i, j);
        if (o == deciding) key.accumulate(x[o], c[i]);
      }
      task.out[i * task.out_stride + j] = Operation::of(x, task.moduli[i]);
    }
    states[j] = window_state(key.value(), test);
    mine += states[j] != kFits;
  }
  write_block_sum(mine, open);
}

}  // namespace

extern "C" {

#define WINDOWED(name, operands, expression)                                                              \
  __global__ void name##_arithmetic_windowed(Task task, i32 deciding, const u64* coefficients, u64 start, \
                                             WindowTest test, u8* states, u64* open) {                    \
    apply_windowed<Of_##name>(task, deciding, coefficients, start, test, states, open);                   \
  }
RNS_OPERATIONS(WINDOWED)

}  // extern "C"
