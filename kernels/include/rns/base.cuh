// Types and qualifiers shared by every kernel, on the GPU (nvcc, NVRTC) and on the host.
// NVRTC has no <cstdint>; these widths hold on every platform CUDA and the CPU extension support.
#pragma once

#if defined(__CUDACC__)
#define RNS_INLINE __host__ __device__ __forceinline__
#else
#define RNS_INLINE inline __attribute__((always_inline))
#endif

namespace rns {

typedef signed char i8;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

}  // namespace rns
