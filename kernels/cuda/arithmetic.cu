// Element-wise arithmetic modulo m_i. An operand is an array of numbers, or one number for all.
//
// A thread takes vectors of four consecutive numbers, 16 bytes a load and past the caches, for nothing is
// read twice.
#include "elementwise.cuh"
#include "grid.cuh"

using namespace rns;

namespace {

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

}  // namespace

extern "C" {

#define PLAIN(name, operands, expression) \
  __global__ void name##_plain(Task task) { apply<Of_##name>(task); }
RNS_OPERATIONS(PLAIN)

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
