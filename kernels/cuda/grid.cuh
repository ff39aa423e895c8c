// How the kernels walk over numbers: grid-stride loops with 64-bit indices.
#pragma once

#include <rns/base.cuh>

namespace rns {

__device__ inline i64 thread_index() { return static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline i64 thread_count() { return static_cast<i64>(gridDim.x) * blockDim.x; }

}  // namespace rns
