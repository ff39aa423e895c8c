// Stacks of matrices modulo each m_i, of any layout.
#pragma once

#include <rns/base.cuh>

namespace rns {

// Number (row, column) of matrix b modulo m_i is data[i * plane + b * matrix + row * stride + column * step].
struct Stack {
  const u32* data;
  i64 plane;
  i64 matrix;
  i64 stride;
  i64 step;

  __device__ const u32* of(i64 i, i64 b) const { return data + i * plane + b * matrix; }
};

}  // namespace rns
