// The element-wise operations on residues, and on vectors of four of them.
#pragma once

#include "operands.cuh"

namespace rns {

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

}  // namespace rns
