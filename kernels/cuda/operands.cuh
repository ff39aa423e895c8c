// Operands and results of element-wise kernels on a GPU.
#pragma once

#include <rns/operations.cuh>

namespace rns {

// Residue i of number j is data[i * stride + j * step]; step is 0 for one number, else 1.
struct Operand {
  const u32* data;
  i64 stride;
  i64 step;

  __device__ u32 at(i64 i, i64 j) const { return data[i * stride + j * step]; }
  __device__ uint4 vector(i64 i, i64 v) const {
    const u32* row = data + i * stride;
    if (step != 0) return __ldcs(reinterpret_cast<const uint4*>(row) + v);
    const u32 x = __ldg(row);
    return {x, x, x, x};
  }
};

// Operands and result. The first 4 * vectors of `count` numbers can be read and written by 16 bytes.
struct Task {
  Operand x[kMaxOperands];
  u32* out;
  i64 out_stride;
  i64 count;
  i64 vectors;
  const Modulus* moduli;
  i64 rows;

  __device__ uint4* out_vectors(i64 i) const { return reinterpret_cast<uint4*>(out + i * out_stride); }
};

}  // namespace rns
