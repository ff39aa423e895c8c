// MAX and MIN of an array of numbers in one pass over its residues.
#include "reduce.cuh"

using namespace rns;

namespace {

constexpr i32 kWarps = kBlock / kWarp;
constexpr i64 kNone = 0x7fffffffffffffffll;

struct Extremum {
  u64 best;
  u64 runner_up;
  i64 index;
  u64 ambiguous;
};

__device__ Extremum merge(const Extremum& a, const Extremum& b) {
  const bool second = b.best > a.best || (b.best == a.best && b.index < a.index);
  const Extremum& winner = second ? b : a;
  const Extremum& loser = second ? a : b;
  return {winner.best, winner.runner_up > loser.best ? winner.runner_up : loser.best, winner.index,
          a.ambiguous + b.ambiguous};
}

__device__ Extremum shuffle_down(const Extremum& a, i32 offset) {
  return {__shfl_down_sync(~0u, a.best, offset), __shfl_down_sync(~0u, a.runner_up, offset),
          __shfl_down_sync(~0u, a.index, offset), __shfl_down_sync(~0u, a.ambiguous, offset)};
}

__device__ Extremum reduce_warp(Extremum a) {
  for (i32 offset = kWarp / 2; offset > 0; offset /= 2) a = merge(a, shuffle_down(a, offset));
  return a;
}

// The extremum of the block's threads, which the first of them has.
__device__ Extremum reduce_block(Extremum mine) {
  __shared__ Extremum warps[kWarps];
  mine = reduce_warp(mine);
  if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = mine;
  __syncthreads();
  mine = threadIdx.x < kWarps ? warps[threadIdx.x] : Extremum{0, 0, kNone, 0};
  return threadIdx.x < kWarp ? reduce_warp(mine) : mine;
}

// Merges the blocks' results, by the threads of one block; writes it and the residues of its number.
__device__ void write_extremum(const Numbers& a, const Extremum* partials, Extremum* found, u32* residues) {
  __shared__ i64 index;
  Extremum mine = {0, 0, kNone, 0};
  for (u32 k = threadIdx.x; k < gridDim.x; k += blockDim.x) {
    const Extremum* other = partials + k;
    mine = merge(mine, {__ldcg(&other->best), __ldcg(&other->runner_up), __ldcg(&other->index),
                        __ldcg(&other->ambiguous)});
  }
  __syncthreads();  // for the memory in which the block's own result was reduced
  mine = reduce_block(mine);
  if (threadIdx.x == 0) {
    *found = mine;
    index = mine.index;
  }
  __syncthreads();
  if (index == kNone) return;
  for (i32 i = threadIdx.x; i < a.moduli; i += blockDim.x) residues[i] = a.residues[i * a.stride + index];
}

// `flip` complements the keys for MIN. Ambiguous keys are counted, not compared.
template <class Coefficients>
__device__ __forceinline__ void find_extremum(const Numbers& a, const Coefficients& c, u64 flip, u32* arrived,
                                              Extremum* partials, Extremum* found, u32* residues) {
  Extremum mine = {0, 0, kNone, 0};
  for_each_key(a, c, [&](i64 j, u64 key) {
    if (key < a.ambiguous_below) {
      ++mine.ambiguous;
      return;
    }
    key ^= flip;
    // The first number counts even if its key is 0.
    if (key > mine.best || mine.index == kNone) {
      mine.runner_up = mine.best;
      mine.best = key;
      mine.index = j;
    } else if (key > mine.runner_up) {
      mine.runner_up = key;
    }
  });
  mine = reduce_block(mine);
  if (threadIdx.x == 0) partials[blockIdx.x] = mine;
  if (is_last_block(arrived)) write_extremum(a, partials, found, residues);
}

}  // namespace

extern "C" {

#ifdef RNS_SHARED_TABLE
__global__ void __launch_bounds__(kBlock) extremum(Numbers a, const u64* table, u64 flip, u32* arrived,
                                                   Extremum* partials, Extremum* found, u32* residues) {
  extern __shared__ u64 shared[];
  find_extremum(a, load_shared_table(table, a.moduli, shared), flip, arrived, partials, found, residues);
}
#else
__global__ void __launch_bounds__(kBlock)
    extremum(Numbers a, const __grid_constant__ KeyTable table, u64 flip, u32* arrived, Extremum* partials,
             Extremum* found, u32* residues) {
  find_extremum(a, table.c, flip, arrived, partials, found, residues);
}
#endif

}  // extern "C"
