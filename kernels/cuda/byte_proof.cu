// Proof that numbers are within a bound, and congruent to their other residues, by products of bytes on
// matrix units. Columns are numbers, so that a thread's bytes of residues are where the units want them, rows
// the bytes of what is to be added up: in the first group of rows, a fraction; then residues modulo the
// others.
#include <rns/byte_proof.cuh>

#include "matrix_units.cuh"

using namespace rns;

#ifndef RNS_BYTES
#define RNS_BYTES 4
#endif

namespace {

constexpr i32 kBytes = RNS_BYTES;  // of a residue
constexpr i32 kWarp = 32;          // threads, and their numbers
constexpr i32 kThreads = 256;      // of a block, at most
constexpr i32 kAcross = 4;         // matrix units' results, each of every fourth number
constexpr i32 kTiles = kBytes;     // of 16 rows: the bytes of kGroup targets
constexpr i32 kGroup = 16;
constexpr i32 kOwn = 8;  // numbers of which a thread has results, and targets of half a group
constexpr u32 kAll = 0xffffffffu;

struct ByteProof {
  const u32* residues;
  i64 stride;
  i64 count;
  i64 is_aligned;  // for vectors of 16 bytes
  const ProofSource* sources;
  i64 source_count;
  const ProofTarget* targets;
  i64 target_count;
  const uint4* table;
  i64 steps;  // of 32 bytes: of the residues of 4 threads, 8 each
  ProofWindow window;
  u8* proved;
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

// What a warp has in shared memory.
struct Shared {
  uint4* words;    // two vectors of each thread a step: of its residues' bytes of four numbers
  u64* sums;       // kProofSums of each number
  u32* quotients;  // of each number

  __device__ Shared(void* block, i32 steps) {
    const i32 vectors = 2 * kWarp * steps, sum_vectors = kWarp * kProofSums / 2;
    uint4* own = static_cast<uint4*>(block) + threadIdx.x / kWarp * (vectors + sum_vectors + kWarp / 4);
    words = own + threadIdx.x % kWarp;
    sums = reinterpret_cast<u64*>(own + vectors);
    quotients = reinterpret_cast<u32*>(own + vectors + sum_vectors);
  }
};

// Residues of four numbers, from number j on; of those that there are not, 0.
__device__ void load(const ByteProof& p, i64 row, i64 j, u32 (&x)[4]) {
  const u32* from = p.residues + row * p.stride + j;
  if (p.is_aligned && j + 4 <= p.count) {
    const uint4 vector = __ldcs(reinterpret_cast<const uint4*>(from));
    x[0] = vector.x, x[1] = vector.y, x[2] = vector.z, x[3] = vector.w;
  } else {
#pragma unroll
    for (i32 c = 0; c < 4; ++c) x[c] = j + c < p.count ? __ldcs(from + c) : 0;
  }
}

// The bytes of what the first residues of the warp's numbers, from `first` on, become. Of four moduli at a
// time a thread takes one, and four numbers.
__device__ void write_words(const ByteProof& p, const Shared& shared, i64 first) {
  const i32 lane = threadIdx.x % kWarp, steps = static_cast<i32>(p.steps);
  for (i32 step = 0, run = 0; step < steps; step += kBytes, run += 4 * kProofRun) {
    u32 numbers[4][kProofRun];
#pragma unroll
    for (i32 e = 0; e < kProofRun; ++e) {
      const i32 row = run + 4 * e + lane % 4;
      u32 x[4] = {};
      ProofSource source = {};
      if (row < p.source_count) {
        load(p, row, first + lane / 4 * 4, x);
        source = p.sources[row];
      }
#pragma unroll
      for (i32 c = 0; c < 4; ++c) numbers[c][e] = mod_mul(x[c], source.weight, source.last);
    }
#pragma unroll
    for (i32 w = 0; w < 2 * kBytes; ++w) {
      if (2 * step + w < 2 * steps) {
        shared.words[(2 * step + w) * kWarp] = {
            word_of_bytes<kBytes>(numbers[0], w), word_of_bytes<kBytes>(numbers[1], w),
            word_of_bytes<kBytes>(numbers[2], w), word_of_bytes<kBytes>(numbers[3], w)};
      }
    }
  }
}

// Sums of products of a group: with k = kBytes half + byte, of that byte of target lane / 4 + 8 half, for
// number 8 (lane % 4) + 4 y + c, sums[k / 2][c][k % 2 * 2 + y].
struct Group {
  i32 sums[kTiles][kAcross][4];

  __device__ void multiply(const uint4* table, const uint4* words, i32 steps) {
#pragma unroll
    for (i32 i = 0; i < kTiles; ++i) {
#pragma unroll
      for (i32 c = 0; c < kAcross; ++c) {
#pragma unroll
        for (i32 k = 0; k < 4; ++k) sums[i][c][k] = 0;
      }
    }
    table += threadIdx.x % kWarp;
    for (i32 step = 0; step < steps; ++step, words += 2 * kWarp, table += kTiles * kWarp) {
      const uint4 low = words[0], high = words[kWarp];
#pragma unroll
      for (i32 i = 0; i < kTiles; ++i) {
        const uint4 rows = __ldg(table + i * kWarp);
        const u32 a[4] = {rows.x, rows.y, rows.z, rows.w};
        multiply_add_bytes(sums[i][0], a, low.x, high.x);
        multiply_add_bytes(sums[i][1], a, low.y, high.y);
        multiply_add_bytes(sums[i][2], a, low.z, high.z);
        multiply_add_bytes(sums[i][3], a, low.w, high.w);
      }
    }
  }

  // The sum for number k of the thread's, of all bytes.
  __device__ u64 joined(i32 half, i32 k) const {
    u64 sum = 0;
#pragma unroll
    for (i32 byte = kBytes - 1; byte >= 0; --byte) {
      const i32 row = kBytes * half + byte;
      sum = (sum << 8) + static_cast<u32>(sums[row / 2][k % 4][row % 2 * 2 + k / 4]);
    }
    return sum;
  }
};

// Which of the thread's numbers, from j on, have not the residues that a group says: a bit for each.
__device__ u32 find_others(const ByteProof& p, const Group& group, i64 target, i64 j,
                           const u32 (&quotients)[kOwn]) {
  u32 found = 0;
#pragma unroll
  for (i32 half = 0; half < 2; ++half, target += kOwn) {
    if (target >= p.target_count) break;
    const ProofTarget t = p.targets[target];
#pragma unroll
    for (i32 y = 0; y < kOwn; y += 4) {
      u32 x[4];
      load(p, p.source_count + target, j + y, x);
#pragma unroll
      for (i32 c = 0; c < 4; ++c) {
        const u64 sum = group.joined(half, y + c) + static_cast<u64>(quotients[y + c]) * t.product;
        found |= static_cast<u32>(mod_reduce(sum, t.modulus) != x[c]) << (y + c);
      }
    }
  }
  return found;
}

// Whether the thread's own number of the warp's is within the bound, after the first group, and what the
// quotients of those are of which it has results.
__device__ bool find_quotients(const ByteProof& p, const Shared& shared, const Group& group,
                               u32 (&quotients)[kOwn]) {
  const i32 lane = threadIdx.x % kWarp, own = lane % 4 * kOwn;
#pragma unroll
  for (i32 k = 0; k < kOwn; ++k) shared.sums[(own + k) * kProofSums + lane / 4] = group.joined(0, k);
  __syncwarp();
  const bool is_within =
      is_in_window<kBytes>(shared.sums + lane * kProofSums, p.window, shared.quotients[lane]);
  __syncwarp();
#pragma unroll
  for (i32 k = 0; k < kOwn; ++k) quotients[k] = shared.quotients[own + k];
  return is_within;
}

// A warp's numbers, from `first` on. All of a block's go through the table together, so that what one has
// read of it is near for the others.
__device__ void prove(const ByteProof& p, const Shared& shared, i64 first) {
  const i32 lane = threadIdx.x % kWarp, steps = static_cast<i32>(p.steps);
  const i64 vectors = p.steps * kTiles * kWarp;  // of the table, a group
  write_words(p, shared, first);
  Group group;
  group.multiply(p.table, shared.words, steps);
  u32 quotients[kOwn];
  const bool is_within = find_quotients(p, shared, group, quotients);
  u32 found = 0;
  const uint4* table = p.table + vectors;
  for (i64 target = 0; target < p.target_count; target += kGroup, table += vectors) {
    __syncthreads();
    group.multiply(table, shared.words, steps);
    found |= find_others(p, group, target + lane / 4, first + lane % 4 * kOwn, quotients);
  }
  for (i32 mask = 4; mask < kWarp; mask *= 2) found |= __shfl_xor_sync(kAll, found, mask);
  found = __shfl_sync(kAll, found, lane / kOwn) >> (lane % kOwn) & 1;
  if (first + lane < p.count) p.proved[first + lane] = is_within && found == 0;
}

#endif

}  // namespace

extern "C" {

__global__ __launch_bounds__(kThreads, 2) void prove_bound(const __grid_constant__ ByteProof p) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  extern __shared__ uint4 memory[];
  const Shared shared(memory, static_cast<i32>(p.steps));
  const i64 own = threadIdx.x / kWarp * kWarp, step = static_cast<i64>(gridDim.x) * blockDim.x;
  for (i64 first = static_cast<i64>(blockIdx.x) * blockDim.x; first < p.count; first += step) {
    prove(p, shared, first + own);
  }
#endif
}

}  // extern "C"
