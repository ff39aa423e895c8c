// SUM of an array of numbers in one pass over its residues.
#include "reduce.cuh"

using namespace rns;

namespace {

// More vectors a thread than for keys alone, so that one reduction over the warp serves 16 numbers.
constexpr i32 kSumVectors = 4;
constexpr i32 kSumRows = 2;

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
__device__ __forceinline__ void add_up(const Numbers& a, const Coefficients& c, u64* shared, u32* arrived,
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

}  // namespace

extern "C" {

#ifdef RNS_SHARED_TABLE
__global__ void __launch_bounds__(kBlock)
    row_sums(Numbers a, const u64* table, u32* arrived, u64* sums, u64* found) {
  extern __shared__ u64 shared[];
  const u64* c = load_shared_table(table, a.moduli, shared);
  add_up(a, c, shared + a.moduli, arrived, sums, found);
}
#else
__global__ void __launch_bounds__(kBlock)
    row_sums(Numbers a, const __grid_constant__ KeyTable table, u32* arrived, u64* sums, u64* found) {
  extern __shared__ u64 shared[];
  add_up(a, table.c, shared, arrived, sums, found);
}
#endif

}  // extern "C"
