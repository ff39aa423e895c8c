// Element-wise arithmetic modulo m_i. An operand is an array of numbers, or one number for all.
//
// A thread takes vectors of four consecutive numbers, 16 bytes a load and past the caches, for nothing is
// read twice.
#include <rns/arithmetic.cuh>

#include "keyed.cuh"
#include "operands.cuh"

using namespace rns;

namespace {

// A structure for each operation.
#define DEFINE(name, operands, expression)                                 \
  struct Of_##name {                                                       \
    static constexpr i32 kOperands = operands;                             \
    static __device__ u32 of(const u32* x, Modulus m) {                    \
      [[maybe_unused]] const u32 a = x[0], b = x[1 % operands];            \
      [[maybe_unused]] const u32 c = x[2 % operands], d = x[3 % operands]; \
      return expression;                                                   \
    }                                                                      \
  };
RNS_OPERATIONS(DEFINE)

template <class Operation>
__device__ uint4 of_vectors(const uint4 (&x)[Operation::kOperands], Modulus m) {
  u32 part[4][Operation::kOperands];
#pragma unroll
  for (i32 k = 0; k < Operation::kOperands; ++k) {
    part[0][k] = x[k].x;
    part[1][k] = x[k].y;
    part[2][k] = x[k].z;
    part[3][k] = x[k].w;
  }
  return {Operation::of(part[0], m), Operation::of(part[1], m), Operation::of(part[2], m),
          Operation::of(part[3], m)};
}

// The numbers that vectors leave out: at most three a row, unless a row is not aligned.
template <class Operation>
__device__ void apply_to_rest(const Task& task) {
  const i64 rest = task.count - 4 * task.vectors;
  for (i64 k = thread_index(); k < rest * task.rows; k += thread_count()) {
    const i64 i = k / rest;
    const i64 j = 4 * task.vectors + k % rest;
    u32 x[Operation::kOperands];
#pragma unroll
    for (i32 o = 0; o < Operation::kOperands; ++o) x[o] = task.x[o].at(i, j);
    task.out[i * task.out_stride + j] = Operation::of(x, task.moduli[i]);
  }
}

// A block takes one stretch of one row at a time.
template <class Operation>
__device__ void apply(const Task& task) {
  constexpr i32 kVectors = 8 / Operation::kOperands;
  const i64 stretch = static_cast<i64>(blockDim.x) * kVectors;
  const i64 stretches = (task.vectors + stretch - 1) / stretch;
  for (i64 b = blockIdx.x; b < stretches * task.rows; b += gridDim.x) {
    const i64 i = b / stretches;
    const i64 first = (b - i * stretches) * stretch + threadIdx.x;
    uint4 x[kVectors][Operation::kOperands];
#pragma unroll
    for (i32 k = 0; k < kVectors; ++k) {
#pragma unroll
      for (i32 o = 0; o < Operation::kOperands; ++o) {
        if (first + k * blockDim.x < task.vectors) x[k][o] = task.x[o].vector(i, first + k * blockDim.x);
      }
    }
    const Modulus m = task.moduli[i];
    uint4* out = task.out_vectors(i);
#pragma unroll
    for (i32 k = 0; k < kVectors; ++k) {
      if (first + k * blockDim.x < task.vectors) {
        __stcs(out + first + k * blockDim.x, of_vectors<Operation>(x[k], m));
      }
    }
  }
  apply_to_rest<Operation>(task);
}

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

#define PLAIN(name, operands, expression) \
  __global__ void name##_plain(Task task) { apply<Of_##name>(task); }
RNS_OPERATIONS(PLAIN)

#define CHECKED(name, subtract)                                                                           \
  __global__ void name##_checked(Task task, const u64* coefficients, u64 start, SumTest test, u8* states, \
                                 u64* open) {                                                             \
    apply_checked<Of_##name, subtract>(task, coefficients, start, test, states, open);                    \
  }
RNS_SUMS(CHECKED)

#define WINDOWED(name, operands, expression)                                                   \
  __global__ void name##_windowed(Task task, i32 deciding, const u64* coefficients, u64 start, \
                                  WindowTest test, u8* states, u64* open) {                    \
    apply_windowed<Of_##name>(task, deciding, coefficients, start, test, states, open);        \
  }
RNS_OPERATIONS(WINDOWED)

__global__ void power(Task task, u64 exponent) {
  for (i64 k = thread_index(); k < task.rows * task.count; k += thread_count()) {
    const i64 i = k / task.count;
    const i64 j = k - i * task.count;
    task.out[i * task.out_stride + j] = mod_pow(task.x[0].at(i, j), exponent, task.moduli[i]);
  }
}

// 0 where there is no inverse.
__global__ void inverse(Task task) {
  for (i64 k = thread_index(); k < task.rows * task.count; k += thread_count()) {
    const i64 i = k / task.count;
    const i64 j = k - i * task.count;
    task.out[i * task.out_stride + j] = mod_inverse(task.x[0].at(i, j), task.moduli[i].last);
  }
}

}  // extern "C"
