// Element-wise arithmetic modulo m_i < 2^64. An operand is an array of numbers, or one number for all.
//
// A thread takes a number of one row at a time: neighbouring threads read neighbouring words.
#include <rns/operations.cuh>
#include <rns/wide_modular.cuh>

#include "grid.cuh"

using namespace rns;

namespace {

// Residue i of number j is data[i * stride + j * step]; step is 0 for one number, else 1.
struct WideOperand {
  const u64* data;
  i64 stride;
  i64 step;

  __device__ u64 at(i64 i, i64 j) const { return data[i * stride + j * step]; }
};

struct WideTask {
  WideOperand x[kMaxOperands];
  u64* out;
  i64 out_stride;
  i64 count;
  const WideModulus* moduli;
  i64 rows;
};

// A structure for each operation.
#define DEFINE(name, operands, expression)                                 \
  struct Of_##name {                                                       \
    static constexpr i32 kOperands = operands;                             \
    static __device__ u64 of(const u64* x, WideModulus m) {                \
      [[maybe_unused]] const u64 a = x[0], b = x[1 % operands];            \
      [[maybe_unused]] const u64 c = x[2 % operands], d = x[3 % operands]; \
      return expression;                                                   \
    }                                                                      \
  };
RNS_OPERATIONS(DEFINE)

// function(row, number) of all numbers; each block keeps to one row at a time.
template <class Function>
__device__ void for_numbers(const WideTask& task, Function function) {
  const i64 blocks = (task.count + blockDim.x - 1) / blockDim.x;
  for (i64 b = blockIdx.x; b < blocks * task.rows; b += gridDim.x) {
    const i64 i = b / blocks, j = (b - i * blocks) * blockDim.x + threadIdx.x;
    if (j < task.count) task.out[i * task.out_stride + j] = function(i, j);
  }
}

template <class Operation>
__device__ void apply(const WideTask& task) {
  for_numbers(task, [&](i64 i, i64 j) {
    u64 x[Operation::kOperands];
#pragma unroll
    for (i32 o = 0; o < Operation::kOperands; ++o) x[o] = task.x[o].at(i, j);
    return Operation::of(x, task.moduli[i]);
  });
}

}  // namespace

extern "C" {

#define WIDE(name, operands, expression) \
  __global__ void name##_wide(WideTask task) { apply<Of_##name>(task); }
RNS_OPERATIONS(WIDE)

__global__ void wide_power(WideTask task, u64 exponent) {
  for_numbers(task, [&](i64 i, i64 j) { return mod_pow(task.x[0].at(i, j), exponent, task.moduli[i]); });
}

// Modulo primes; 0 for 0.
__global__ void wide_inverse(WideTask task) {
  for_numbers(task, [&](i64 i, i64 j) { return prime_inverse(task.x[0].at(i, j), task.moduli[i].last); });
}

}  // extern "C"
