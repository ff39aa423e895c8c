// The CRC-32C of a message of words.
#include <rns/crc32c.cuh>

#include "grid.cuh"

using namespace rns;

namespace {

constexpr i32 kBlock = 256;
constexpr i32 kWarp = 32;
constexpr i32 kVector = 4;  // words

// The factors of what is a word, the vectors of a warp or those of a block before the end.
constexpr u32 kPastWord = crc_shift(1);
constexpr u32 kPastWarp = crc_shift(kVector * kWarp);
constexpr u32 kPastBlock = crc_shift(kVector * kBlock);

// Sum of the lanes' words, each times x^(128 (31 - lane)); lane 0 gets it.
__device__ u32 warp_sum(u32 word) {
  u32 factor = crc_shift(kVector);
#pragma unroll
  for (i32 distance = 1; distance < kWarp; distance *= 2) {
    word = crc_multiply(word, factor) ^ __shfl_down_sync(~0u, word, distance);
    factor = crc_multiply(factor, factor);
  }
  return word;
}

}  // namespace

extern "C" {

// crc ^= the complement of the CRC-32C of `vectors` times four words and `tail` < 4 more; not of none.
//
// A thread sums every thread_count()-th vector, so that a warp reads 512 bytes at once. The last vector is
// the last thread's: the message is thought to start with as many vectors of zeros as that takes, which
// change no sum.
__global__ void __launch_bounds__(kBlock) crc32c(const u32* words, i64 vectors, i32 tail, u32* crc) {
  // Each lane looks up in tables of its own, in its own bank of the shared memory.
  __shared__ u32 tables[kCrcEntries * kWarp];
  __shared__ u32 entries[kCrcEntries];
  __shared__ u32 warps[kBlock / kWarp];
  __shared__ u32 factor;
  if (threadIdx.x == 0) factor = crc_power(kPastBlock, gridDim.x);
  __syncthreads();
  if (threadIdx.x < kCrcEntries) entries[threadIdx.x] = crc_table_entry(threadIdx.x, factor);
  __syncthreads();
  for (i32 i = threadIdx.x; i < kCrcEntries * kWarp; i += kBlock) tables[i] = entries[i / kWarp];
  __syncthreads();

  const i32 lane = threadIdx.x % kWarp;
  const u32* own = tables + lane;
  const uint4* message = reinterpret_cast<const uint4*>(words);
  const i64 step = thread_count();
  const i64 zeros = (step - vectors % step) % step;
  i64 v = thread_index() - zeros;
  if (v < 0) v += step;
  uint4 sum{0, 0, 0, 0};
  uint4 next = v < vectors ? __ldcs(message + v) : sum;
  if (v == 0) next.x = ~next.x;
  while (v < vectors) {
    const uint4 vector = next;
    v += step;
    if (v < vectors) next = __ldcs(message + v);
    sum.x = crc_multiply(sum.x, own, kWarp) ^ vector.x;
    sum.y = crc_multiply(sum.y, own, kWarp) ^ vector.y;
    sum.z = crc_multiply(sum.z, own, kWarp) ^ vector.z;
    sum.w = crc_multiply(sum.w, own, kWarp) ^ vector.w;
  }

  u32 mine = crc_multiply(sum.x, kPastWord) ^ sum.y;
  mine = crc_multiply(mine, kPastWord) ^ sum.z;
  mine = warp_sum(crc_multiply(mine, kPastWord) ^ sum.w);
  if (lane == 0) warps[threadIdx.x / kWarp] = mine;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (i32 warp = 1; warp < kBlock / kWarp; ++warp) mine = crc_multiply(mine, kPastWarp) ^ warps[warp];
  mine = crc_multiply(mine, crc_power(kPastBlock, gridDim.x - 1 - blockIdx.x));
  for (i32 i = 0; i < tail; ++i) mine = crc_multiply(mine, kPastWord);
  if (blockIdx.x == 0) {
    u32 rest = 0;
    for (i32 i = 0; i < tail; ++i) {
      const u32 word = words[kVector * vectors + i];
      rest = crc_multiply(rest, kPastWord) ^ (vectors == 0 && i == 0 ? ~word : word);
    }
    mine ^= rest;
  }
  atomicXor(crc, crc_multiply(mine, kPastWord));
}

}  // extern "C"
