// MAX / MIN / SUM of an array of numbers in one pass over its residues, and the marking of the candidates
// that the pass could not tell apart.
//
// The block that is the last to end writes the result to memory of the host, for a copy takes longer than a
// small kernel. What blocks share in the meantime, it leaves as it was: a counter and sums of 0.
#include "keyed.cuh"

using namespace rns;

namespace {

constexpr i32 kWarps = kBlock / kWarp;
constexpr i64 kNone = 0x7fffffffffffffffll;

// More vectors a thread than for keys alone, so that one reduction over the warp serves 16 numbers.
constexpr i32 kSumVectors = 4;
constexpr i32 kSumRows = 2;

// Calls visit(j, key) for every number, in ascending order for each thread.
template <class Coefficients, class Visit>
__device__ __forceinline__ void for_each_key(const Numbers& a, const Coefficients& c, Visit visit) {
  const i64 step = static_cast<i64>(gridDim.x) * blockDim.x * kKeyVectors;
  i64 first = static_cast<i64>(blockIdx.x) * blockDim.x * kKeyVectors + threadIdx.x;
  for (; first < a.vectors; first += step) {
    VectorGroup<kKeyVectors> group(a, first);
    Keys<kKeyVectors> keys(a.start);
#pragma unroll kKeyRows
    for (i32 i = 0; i < a.moduli; ++i) {
      uint4 row[kKeyVectors];
      group.read(row, a.stride);
      keys.accumulate(row, c[i]);
    }
#pragma unroll
    for (i32 k = 0; k < kKeyVectors; ++k) {
      if (!group.inside[k]) continue;
#pragma unroll
      for (i32 m = 0; m < 4; ++m) visit(4 * (first + k * blockDim.x) + m, keys(k, m));
    }
  }
  for (i64 j = 4 * a.vectors + thread_index(); j < a.count; j += thread_count())
    visit(j, single_key(a, c, j));
}

// Whether all other blocks have come here before, each thread's writes included; all threads call it. The
// counter is 0 again when the last one has come.
__device__ bool is_last_block(u32* arrived) {
  __shared__ bool is_last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  if (is_last) __threadfence();
  return is_last;
}

// ---- MAX and MIN ------------------------------------------------------------------------------------

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
__device__ __forceinline__ void extremum(const Numbers& a, const Coefficients& c, u64 flip, u32* arrived,
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

// ---- SUM ----------------------------------------------------------------------------------------------

constexpr i32 kSplitBits = 27;  // 32 times 2^27 fits a 32-bit reduction

struct KeySum {
  u64 low;   // of the keys' lower halves: 2^32 keys cannot overflow it
  u64 high;  // of the keys' upper halves
  u64 ambiguous;

  __device__ void add(u64 key, u64 ambiguous_below) {
    low += static_cast<u32>(key);
    high += key >> 32;
    ambiguous += key < ambiguous_below;
  }
};

// Sum over the warp of sums of 16 residues (x < 2^36).
__device__ __forceinline__ u64 warp_sum_of_residues(u64 x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const u32 low = __reduce_add_sync(~0u, static_cast<u32>(x) & ((1u << kSplitBits) - 1));
  const u32 high = __reduce_add_sync(~0u, static_cast<u32>(x >> kSplitBits));
  return low + (static_cast<u64>(high) << kSplitBits);
#else
  return warp_sum(x);
#endif
}

__device__ __forceinline__ u64 sum_of(uint4 x) {
  return (static_cast<u64>(x.x) + x.y) + (static_cast<u64>(x.z) + x.w);
}

// The rows' sums of the residues that the warp's 32 * kSumVectors vectors hold, added to warp_rows, and
// their keys. Vectors from a.vectors on read as zeros.
template <class Coefficients>
__device__ __forceinline__ void sum_vectors(const Numbers& a, const Coefficients& c, i64 first,
                                            u64* warp_rows, KeySum& sum) {
  VectorGroup<kSumVectors> group(a, first);
  Keys<kSumVectors> keys(a.start);
#pragma unroll kSumRows
  for (i32 i = 0; i < a.moduli; ++i) {
    uint4 row[kSumVectors];
    group.read(row, a.stride);
    keys.accumulate(row, c[i]);
    u64 total = 0;
#pragma unroll
    for (i32 k = 0; k < kSumVectors; ++k) total += sum_of(row[k]);
    total = warp_sum_of_residues(total);
    if (threadIdx.x % kWarp == 0) warp_rows[i] += total;
  }
#pragma unroll
  for (i32 k = 0; k < kSumVectors; ++k) {
    if (!group.inside[k]) continue;
#pragma unroll
    for (i32 m = 0; m < 4; ++m) sum.add(keys(k, m), a.ambiguous_below);
  }
}

// The at most three numbers after the vectors, or all of an array that is not aligned to 16 bytes.
template <class Coefficients>
__device__ void sum_singles(const Numbers& a, const Coefficients& c, u64* warp_rows, KeySum& sum) {
  const i64 begin = 4 * a.vectors + thread_index() / kWarp * kWarp;
  for (i64 first = begin; first < a.count; first += thread_count()) {
    const i64 j = first + threadIdx.x % kWarp;
    const bool inside = j < a.count;
    Key key = {a.start, 0};
    for (i32 i = 0; i < a.moduli; ++i) {
      const u32 x = inside ? __ldcs(a.residues + i * a.stride + j) : 0u;
      key.accumulate(x, c[i]);
      const u64 total = warp_sum_of_residues(x);
      if (threadIdx.x % kWarp == 0) warp_rows[i] += total;
    }
    if (inside) sum.add(key.value(), a.ambiguous_below);
  }
}

// Adds the sums to sums = {rows[moduli], keys' low halves, keys' high halves, ambiguous}, and writes all of
// them to `found`; integer additions, so the order in which blocks arrive does not matter. `shared` holds
// moduli sums for each warp.
template <class Coefficients>
__device__ __forceinline__ void sum(const Numbers& a, const Coefficients& c, u64* shared, u32* arrived,
                                    u64* sums, u64* found) {
  const i32 warps = blockDim.x / kWarp;
  for (i32 i = threadIdx.x; i < warps * a.moduli; i += blockDim.x) shared[i] = 0;
  __syncthreads();
  u64* warp_rows = shared + threadIdx.x / kWarp * a.moduli;
  KeySum mine = {0, 0, 0};
  const i64 step = static_cast<i64>(gridDim.x) * blockDim.x * kSumVectors;
  // All lanes of a warp stay in the loop together, as the reductions over the warp need.
  for (i64 base = static_cast<i64>(blockIdx.x) * blockDim.x * kSumVectors; base < a.vectors; base += step) {
    sum_vectors(a, c, base + threadIdx.x, warp_rows, mine);
  }
  sum_singles(a, c, warp_rows, mine);
  __syncthreads();
  for (i32 i = threadIdx.x; i < a.moduli; i += blockDim.x) {
    u64 total = 0;
    for (i32 w = 0; w < warps; ++w) total += shared[w * a.moduli + i];
    atomicAdd(sums + i, total);
  }
  const u64 parts[3] = {warp_sum(mine.low), warp_sum(mine.high), warp_sum(mine.ambiguous)};
  if (threadIdx.x % kWarp == 0) {
    for (i32 k = 0; k < 3; ++k) atomicAdd(sums + a.moduli + k, parts[k]);
  }
  if (!is_last_block(arrived)) return;
  for (i32 i = threadIdx.x; i < a.moduli + 3; i += blockDim.x) {
    found[i] = __ldcg(sums + i);
    sums[i] = 0;
  }
}

// ---- candidates ---------------------------------------------------------------------------------------

template <class Coefficients>
__device__ __forceinline__ void candidates(const Numbers& a, const Coefficients& c, u64 flip, u64 threshold,
                                           u8* flags) {
  for_each_key(a, c,
               [&](i64 j, u64 key) { flags[j] = key < a.ambiguous_below || (key ^ flip) >= threshold; });
}

}  // namespace

extern "C" {

__global__ void __launch_bounds__(kBlock)
    extremum_parameter(Numbers a, const __grid_constant__ KeyTable table, u64 flip, u32* arrived,
                       Extremum* partials, Extremum* found, u32* residues) {
  extremum(a, table.c, flip, arrived, partials, found, residues);
}

__global__ void __launch_bounds__(kBlock)
    extremum_shared(Numbers a, const u64* table, u64 flip, u32* arrived, Extremum* partials, Extremum* found,
                    u32* residues) {
  extern __shared__ u64 shared[];
  extremum(a, load_shared_table(table, a.moduli, shared), flip, arrived, partials, found, residues);
}

__global__ void __launch_bounds__(kBlock)
    sum_parameter(Numbers a, const __grid_constant__ KeyTable table, u32* arrived, u64* sums, u64* found) {
  extern __shared__ u64 shared[];
  sum(a, table.c, shared, arrived, sums, found);
}

__global__ void __launch_bounds__(kBlock)
    sum_shared(Numbers a, const u64* table, u32* arrived, u64* sums, u64* found) {
  extern __shared__ u64 shared[];
  const u64* c = load_shared_table(table, a.moduli, shared);
  sum(a, c, shared + a.moduli, arrived, sums, found);
}

__global__ void __launch_bounds__(kBlock)
    candidates_shared(Numbers a, const u64* table, u64 flip, u64 threshold, u8* flags) {
  extern __shared__ u64 shared[];
  candidates(a, load_shared_table(table, a.moduli, shared), flip, threshold, flags);
}

// out[i * chosen + k] = residue i of number indices[k]
__global__ void gather(const u32* residues, i64 stride, i32 moduli, const i64* indices, i64 chosen,
                       u32* out) {
  for (i64 k = thread_index(); k < chosen; k += thread_count()) {
    for (i32 i = 0; i < moduli; ++i) out[i * chosen + k] = residues[i * stride + indices[k]];
  }
}

}  // extern "C"
