// Whether every residue is below its modulus, and a plain read of every residue.
#include "grid.cuh"

using namespace rns;

extern "C" {

// position = min(position, i * count + j) over the residues that exceed last[i]
__global__ void first_invalid(const u32* residues, i64 stride, i64 count, i32 moduli, const u32* last,
                              u64* position) {
  u64 mine = ~0ull;
  for (i32 i = 0; i < moduli && mine == ~0ull; ++i) {
    for (i64 j = thread_index(); j < count; j += thread_count()) {
      if (residues[i * stride + j] > last[i]) {
        mine = static_cast<u64>(i) * static_cast<u64>(count) + static_cast<u64>(j);
        break;
      }
    }
  }
  if (mine != ~0ull) atomicMin(position, mine);
}

// total += all words of vectors * 16 + tail * 4 contiguous bytes: as fast as memory can be read.
__global__ void read_all(const u32* words, i64 vectors, i32 tail, u64* total) {
  constexpr i32 kVectors = 8;
  const uint4* x = reinterpret_cast<const uint4*>(words);
  const i64 step = thread_count() * kVectors;
  u64 mine = 0;
  for (i64 first = static_cast<i64>(blockIdx.x) * blockDim.x * kVectors + threadIdx.x; first < vectors;
       first += step) {
    uint4 part[kVectors];
#pragma unroll
    for (i32 k = 0; k < kVectors; ++k) {
      part[k] = first + k * blockDim.x < vectors ? __ldcs(x + first + k * blockDim.x) : uint4{0, 0, 0, 0};
    }
#pragma unroll
    for (i32 k = 0; k < kVectors; ++k) {
      mine += (static_cast<u64>(part[k].x) + part[k].y) + (static_cast<u64>(part[k].z) + part[k].w);
    }
  }
  if (thread_index() < tail) mine += words[4 * vectors + thread_index()];
  for (i32 offset = 16; offset > 0; offset /= 2) mine += __shfl_xor_sync(~0u, mine, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(total, mine);
}

}  // extern "C"
