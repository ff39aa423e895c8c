// The keys of an array of numbers. Residue i of number j is residues[i * stride + j].
//
// A thread owns vectors of four consecutive numbers and reads 16 bytes a load, past the caches, for nothing
// is read twice. The coefficients come as a kernel parameter, which lies in constant memory: every
// thread reads the same one at the same time. Sets of more moduli than fit there use shared memory,
// in kernels compiled with RNS_SHARED_TABLE: hardly a process needs both.
#pragma once

#include <rns/keys.cuh>

#include "grid.cuh"

namespace rns {

constexpr i32 kTableSize = 256;
constexpr i32 kBlock = 256;
constexpr i32 kWarp = 32;

// How many vectors a thread takes at once and how many rows it reads ahead: the fastest of those tried on an
// H200.
constexpr i32 kKeyVectors = 2;
constexpr i32 kKeyRows = 4;

struct KeyTable {
  u64 c[kTableSize];
};

// An array of numbers and how to evaluate them. The first 4 * vectors of `count` numbers can be read by
// 16-byte loads.
struct Numbers {
  const u32* residues;
  i64 stride;
  i64 count;
  i64 vectors;
  u64 start;
  u64 ambiguous_below;
  i32 moduli;
};

// The keys of kVectors vectors of four numbers, while rows of residues are added.
template <i32 kVectors>
struct Keys {
  Key of[kVectors][4];

  __device__ explicit Keys(u64 start) {
#pragma unroll
    for (i32 k = 0; k < kVectors; ++k) {
#pragma unroll
      for (i32 m = 0; m < 4; ++m) of[k][m] = {start, 0};
    }
  }
  __device__ void accumulate(i32 k, uint4 x, u64 c) {
    of[k][0].accumulate(x.x, c);
    of[k][1].accumulate(x.y, c);
    of[k][2].accumulate(x.z, c);
    of[k][3].accumulate(x.w, c);
  }
  __device__ void accumulate(const uint4 (&row)[kVectors], u64 c) {
#pragma unroll
    for (i32 k = 0; k < kVectors; ++k) accumulate(k, row[k], c);
  }
  __device__ u64 operator()(i32 k, i32 m) const { return of[k][m].value(); }
};

// kVectors vectors of four numbers, one block of threads apart from each other. Those that lie beyond the
// array's last vector read as zeros.
template <i32 kVectors>
struct VectorGroup {
  const uint4* x;
  bool inside[kVectors];

  __device__ VectorGroup(const Numbers& a, i64 first)
      : x(reinterpret_cast<const uint4*>(a.residues) + first) {
#pragma unroll
    for (i32 k = 0; k < kVectors; ++k) inside[k] = first + k * blockDim.x < a.vectors;
  }
  // Reads one row of residues and moves on to the next.
  __device__ void read(uint4 (&row)[kVectors], i64 stride) {
#pragma unroll
    for (i32 k = 0; k < kVectors; ++k) row[k] = inside[k] ? __ldcs(x + k * blockDim.x) : uint4{0, 0, 0, 0};
    x += stride / 4;
  }
};

template <class Coefficients>
__device__ u64 single_key(const Numbers& a, const Coefficients& c, i64 j) {
  Key key = {a.start, 0};
  for (i32 i = 0; i < a.moduli; ++i) key.accumulate(__ldcs(a.residues + i * a.stride + j), c[i]);
  return key.value();
}

// Copies a table to shared memory, of which `moduli` words are needed.
__device__ inline const u64* load_shared_table(const u64* table, i32 moduli, u64* shared) {
  for (i32 i = threadIdx.x; i < moduli; i += blockDim.x) shared[i] = table[i];
  __syncthreads();
  return shared;
}

// Sum over the warp; every lane has it.
__device__ inline u64 warp_sum(u64 x) {
  for (i32 offset = kWarp / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
  return x;
}

// Writes the sum over the block's threads, all of which call it, to the block's place in memory of the host.
__device__ inline void write_block_sum(u64 x, u64* sums) {
  __shared__ u64 warps[kBlock / kWarp];
  x = warp_sum(x);
  if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = x;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (i32 w = 1; w < static_cast<i32>(blockDim.x) / kWarp; ++w) x += warps[w];
  sums[blockIdx.x] = x;
}

}  // namespace rns
