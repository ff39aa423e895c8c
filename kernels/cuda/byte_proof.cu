// Proof that numbers are within a bound by one fixed-point evaluation each, from products of bytes on matrix
// units. Columns are numbers, so that a thread's bytes of residues are where the units want them; rows are
// the bytes of the sums.
#include <rns/byte_proof.cuh>

#include "matrix_units.cuh"

using namespace rns;

#ifndef RNS_BYTES
#define RNS_BYTES 4
#endif

namespace {

constexpr i32 kBytes = RNS_BYTES;       // of a residue
constexpr i32 kWarp = 32;               // threads, and their numbers
constexpr i32 kThreads = 256;           // of a block, at most
constexpr i32 kAcross = 4;              // matrix units' results, each of every fourth number
constexpr i32 kTiles = 2;               // of 16 rows: of the bytes of kProofWords words
constexpr i32 kOwn = 8;                 // numbers of which a thread has results
constexpr i32 kSums = kProofWords + 1;  // of a number in shared memory: so that no two lie in one bank

struct ByteProof {
  const u32* residues;
  i64 stride;
  i64 count;
  i64 is_aligned;  // for vectors of 16 bytes
  i64 moduli;
  const uint4* table;
  i64 steps;  // of 32 bytes: of the residues of 4 threads, 8 each
  i64 words;  // of a sum
  ProofWindow window;
  u8* proved;
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

// What a warp has in shared memory.
struct Shared {
  uint4* words;  // each thread's own, two vectors a step: its residues' bytes, 8 of each of four numbers
  u64* sums;     // kSums of each number

  __device__ Shared(void* block, i32 steps) {
    const i32 vectors = 2 * kWarp * steps, sum_vectors = kWarp * kSums / 2;
    uint4* own = static_cast<uint4*>(block) + threadIdx.x / kWarp * (vectors + sum_vectors);
    words = own + threadIdx.x % kWarp;
    sums = reinterpret_cast<u64*>(own + vectors);
  }
};

// Residues of four numbers at an address; of the numbers there are `count`, of others the residues are 0.
template <bool kAsVector>
__device__ uint4 load(const u32* from, i64 count) {
  if (kAsVector) return __ldcs(reinterpret_cast<const uint4*>(from));
  return {count > 0 ? __ldcs(from) : 0, count > 1 ? __ldcs(from + 1) : 0, count > 2 ? __ldcs(from + 2) : 0,
          count > 3 ? __ldcs(from + 3) : 0};
}

// The bytes of the warp's numbers, from `first` on. Of four moduli at a time a thread takes one, and four
// numbers.
template <bool kAsVectors>
__device__ void write_words(const ByteProof& p, const Shared& shared, i64 first) {
  const i32 lane = threadIdx.x % kWarp, vectors = 2 * static_cast<i32>(p.steps);
  const i64 column = first + lane / 4 * 4, step = 4 * p.stride;
  const u32* from = p.residues + lane % 4 * p.stride + column;
  i32 left = static_cast<i32>(p.moduli) - lane % 4;  // rows from the thread's next one on
  for (i32 vector = 0; vector < vectors; vector += 2 * kBytes) {
    u32 residues[4][kProofRun];
#pragma unroll
    for (i32 e = 0; e < kProofRun; ++e, from += step, left -= 4) {
      uint4 x = {};
      if (left > 0) x = load<kAsVectors>(from, p.count - column);
      residues[0][e] = x.x, residues[1][e] = x.y, residues[2][e] = x.z, residues[3][e] = x.w;
    }
#pragma unroll
    for (i32 k = 0; k < 2 * kBytes; ++k) {
      const auto& one = residues[k % 2 * 2];
      const auto& next = residues[k % 2 * 2 + 1];
      const i32 w = k / 2 * 2;
      if (vector + k < vectors) {
        shared.words[(vector + k) * kWarp] = {
            word_of_bytes<kBytes>(one, w), word_of_bytes<kBytes>(one, w + 1), word_of_bytes<kBytes>(next, w),
            word_of_bytes<kBytes>(next, w + 1)};
      }
    }
  }
}

// Sums of products for kProofWords words each: of byte b of word lane / 4, for number
// 8 (lane % 4) + 4 y + c, sums[group][b / 2][c][b % 2 * 2 + y].
template <i32 kGroups>
struct Products {
  i32 sums[kGroups][kTiles][kAcross][4];

  __device__ void multiply(const uint4* table, const uint4* words, i32 steps) {
#pragma unroll
    for (i32 i = 0; i < kGroups * kTiles * kAcross * 4; ++i) {
      sums[i / (kTiles * kAcross * 4)][i / (kAcross * 4) % kTiles][i / 4 % kAcross][i % 4] = 0;
    }
    table += threadIdx.x % kWarp;
    const i32 group_vectors = steps * kTiles * kWarp;
    for (i32 step = 0; step < steps; ++step, words += 2 * kWarp, table += kTiles * kWarp) {
      const uint4 first = words[0], second = words[kWarp];
#pragma unroll
      for (i32 i = 0; i < kGroups * kTiles; ++i) {
        const uint4 rows = __ldg(table + i / kTiles * group_vectors + i % kTiles * kWarp);
        const u32 a[4] = {rows.x, rows.y, rows.z, rows.w};
        auto& own = sums[i / kTiles][i % kTiles];
        multiply_add_bytes(own[0], a, first.x, first.y);
        multiply_add_bytes(own[1], a, first.z, first.w);
        multiply_add_bytes(own[2], a, second.x, second.y);
        multiply_add_bytes(own[3], a, second.z, second.w);
      }
    }
  }

  // The sum of all bytes' for number k of the thread's.
  __device__ u64 joined(i32 group, i32 k) const {
    u64 sum = 0;
#pragma unroll
    for (i32 b = 2 * kTiles - 1; b >= 0; --b) {
      sum = (sum << 8) + static_cast<u32>(sums[group][b / 2][k % 4][b % 2 * 2 + k / 4]);
    }
    return sum;
  }
};

// Adds the words of some groups, from `word` on, to the sum of the thread's own number.
template <i32 kGroups>
__device__ void add_words(const ByteProof& p, const Shared& shared, i32 word, ProofSum& sum) {
  const i32 lane = threadIdx.x % kWarp, own = lane % 4 * kOwn, steps = static_cast<i32>(p.steps);
  Products<kGroups> products;
  products.multiply(p.table + static_cast<i64>(word / kProofWords) * steps * kTiles * kWarp, shared.words,
                    steps);
#pragma unroll
  for (i32 group = 0; group < kGroups; ++group, word += kProofWords) {
#pragma unroll
    for (i32 k = 0; k < kOwn; ++k) shared.sums[(own + k) * kSums + lane / 4] = products.joined(group, k);
    __syncwarp();
    u64 sums[kProofWords];
#pragma unroll
    for (i32 k = 0; k < kProofWords; ++k) sums[k] = shared.sums[lane * kSums + k];
    sum.add(sums, p.window, word, static_cast<i32>(p.words));
    __syncwarp();
  }
}

// A warp's numbers, from `first` on. All of a block's go through the table together, so that what one has
// read of it is near for the others.
__device__ void prove(const ByteProof& p, const Shared& shared, i64 first) {
  const i32 lane = threadIdx.x % kWarp, words = static_cast<i32>(p.words);
  if (p.is_aligned && first + kWarp <= p.count) {
    write_words<true>(p, shared, first);
  } else {
    write_words<false>(p, shared, first);
  }
  ProofSum sum;
  i32 word = 0;
  for (; word + kProofWords < words; word += 2 * kProofWords) {
    add_words<2>(p, shared, word, sum);
    __syncthreads();
  }
  if (word < words) add_words<1>(p, shared, word, sum);
  if (first + lane < p.count) p.proved[first + lane] = sum.is_in(p.window);
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
