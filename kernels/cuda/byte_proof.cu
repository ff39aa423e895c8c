// Proof that numbers are within a bound by one fixed-point evaluation each, from products of bytes on matrix
// units. Rows are numbers, so that a thread's bytes of residues are where the units want them; columns are
// the bytes of the sums, of which each of four threads has a segment.
#include <rns/byte_proof.cuh>

#include "matrix_units.cuh"

using namespace rns;

#ifndef RNS_BYTES
#define RNS_BYTES 4
#endif

// Of a processor at once: where bytes of numbers leave shared memory for one, it can have all registers.
#ifndef RNS_BLOCKS
#define RNS_BLOCKS 2
#endif

namespace {

constexpr i32 kBytes = RNS_BYTES;  // of a residue
constexpr i32 kWarp = 32;          // threads, and their numbers
constexpr i32 kThreads = 256;      // of a block, at most
constexpr i32 kOwn = 4;            // numbers of which a thread has segments: two in each of two matrices
constexpr i32 kSegments = 4;       // of a sum, and numbers of a vector
constexpr i32 kWords = 4;          // of each segment, that are added up together
constexpr u32 kAll = 0xffffffffu;

static_assert(kWords == kLowWords, "low words are those that come first");

struct ByteProof {
  const u32* residues;
  i64 stride;
  i64 count;
  i64 is_aligned;  // for vectors of 16 bytes
  i64 moduli;
  const uint4* table;
  i64 steps;    // of 32 bytes: of the residues of 4 threads, 8 each
  i64 words;    // of a sum
  i64 segment;  // words of one
  ProofWindow window;
  u8* proved;
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

// Residues of four numbers at an address; of the numbers there are `count`, of others the residues are 0.
template <bool kAsVector>
__device__ uint4 load(const u32* from, i64 count) {
  if (kAsVector) return __ldcs(reinterpret_cast<const uint4*>(from));
  return {count > 0 ? __ldcs(from) : 0, count > 1 ? __ldcs(from + 1) : 0, count > 2 ? __ldcs(from + 2) : 0,
          count > 3 ? __ldcs(from + 3) : 0};
}

// The bytes of the warp's numbers, from `first` on, two vectors a step: 8 of each of four numbers. Of four
// moduli at a time a thread takes one.
template <bool kAsVectors>
__device__ void write_words(const ByteProof& p, uint4* words, i64 first) {
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
        words[(vector + k) * kWarp] = {word_of_bytes<kBytes>(one, w), word_of_bytes<kBytes>(next, w),
                                       word_of_bytes<kBytes>(one, w + 1), word_of_bytes<kBytes>(next, w + 1)};
      }
    }
  }
}

// Sums of products for some words of each segment: of byte 2 h + y of word w of the thread's segment, for its
// number 2 j + r, sums[w][h][j][2 r + y].
template <i32 kCount>
struct Products {
  i32 sums[kCount][2][2][4];

  __device__ void multiply(const uint4* table, const uint4* words, i32 steps) {
#pragma unroll
    for (i32 i = 0; i < kCount * 16; ++i) sums[i / 16][i / 8 % 2][i / 4 % 2][i % 4] = 0;
    for (i32 step = 0; step < steps; ++step, words += 2 * kWarp, table += kWarp) {
      const uint4 first = words[0], second = words[kWarp];
      const u32 a[2][4] = {{first.x, first.y, first.z, first.w}, {second.x, second.y, second.z, second.w}};
#pragma unroll
      for (i32 w = 0; w < kCount; ++w) {
        const uint4 columns = __ldg(table + w * steps * kWarp);
#pragma unroll
        for (i32 j = 0; j < 2; ++j) {
          multiply_add_bytes(sums[w][0][j], a[j], columns.x, columns.y);
          multiply_add_bytes(sums[w][1][j], a[j], columns.z, columns.w);
        }
      }
    }
  }

  // The sum of all bytes' for a number of the thread's.
  __device__ u64 joined(i32 w, i32 number) const {
    u64 sum = 0;
#pragma unroll
    for (i32 b = 3; b >= 0; --b) {
      sum = (sum << 8) + static_cast<u32>(sums[w][b / 2][number / 2][number % 2 * 2 + b % 2]);
    }
    return sum;
  }
};

// Adds the first words of the thread's segments; those of the lowest one are the low words.
template <i32 kCount>
__device__ void add_first(const ByteProof& p, const Products<kCount>& products, i32 count,
                          ProofSegment (&segments)[kOwn]) {
  const bool is_lowest = threadIdx.x % kSegments == 0;
#pragma unroll
  for (i32 k = 0; k < kOwn; ++k) {
    ProofSegment& own = segments[k];
    bool is_in = true;
#pragma unroll
    for (i32 w = 0; w < kLowWords; ++w) {
      const u32 word = own.next(products.joined(w % kCount, k) + (is_lowest ? p.window.start[w] : 0));
      is_in = word < p.window.room[w] || (word == p.window.room[w] && is_in);
      if (is_lowest) continue;
      if (w == 0) own.first = word;
      if (w != 0 && w < count) own.compare(word);
    }
    if (is_lowest) own.wrong = !is_in;
  }
}

// Adds words of the thread's segments, from its word `from` on.
template <i32 kCount>
__device__ void add_words(const ByteProof& p, const uint4* words, i32 from, ProofSegment (&segments)[kOwn]) {
  const i32 lane = threadIdx.x % kWarp, steps = static_cast<i32>(p.steps);
  const i32 count = static_cast<i32>(p.words) - lane % 4 * static_cast<i32>(p.segment) - from;
  Products<kCount> products;
  products.multiply(p.table + static_cast<i64>(from) * steps * kWarp + lane, words, steps);
  if (kCount == kLowWords && from == 0) {
    add_first(p, products, count, segments);
    return;
  }
#pragma unroll
  for (i32 k = 0; k < kOwn; ++k) {
#pragma unroll
    for (i32 w = 0; w < kCount; ++w) {
      const u32 word = segments[k].next(products.joined(w, k));
      if (w < count) segments[k].compare(word);
    }
  }
}

// Whether numbers are within the bound, of those whose segments four threads have together: a bit for each.
__device__ u32 join(const ByteProof& p, const ProofSegment (&segments)[kOwn]) {
  const i32 segment = threadIdx.x % kSegments;
  const bool counts = segment * p.segment < p.words;
  u32 right = 0;
#pragma unroll
  for (i32 k = 0; k < kOwn; ++k) {
    const u32 before = __shfl_up_sync(kAll, segments[k].carried(), 1);
    const bool follows = segment == 0 || segments[k].first == 0 - before;
    right |= static_cast<u32>(!counts || (follows && segments[k].wrong == 0)) << k;
  }
  right &= __shfl_xor_sync(kAll, right, 1);
  return right & __shfl_xor_sync(kAll, right, 2);
}

// A warp's numbers, from `first` on.
__device__ void prove(const ByteProof& p, uint4* words, i64 first) {
  const i32 lane = threadIdx.x % kWarp, length = static_cast<i32>(p.segment);
  if (p.is_aligned && first + kWarp <= p.count) {
    write_words<true>(p, words, first);
  } else {
    write_words<false>(p, words, first);
  }
  ProofSegment segments[kOwn];
  i32 from = 0;
  for (; from + kWords <= length; from += kWords) add_words<kWords>(p, words, from, segments);
  if (length - from == 1) add_words<1>(p, words, from, segments);
  if (length - from == 2) add_words<2>(p, words, from, segments);
  if (length - from == 3) add_words<3>(p, words, from, segments);
  const u32 right = join(p, segments);
  if (first + lane < p.count) p.proved[first + lane] = right >> (lane % kOwn) & 1;
}

#endif

}  // namespace

extern "C" {

__global__ __launch_bounds__(kThreads, RNS_BLOCKS) void prove_bound(const __grid_constant__ ByteProof p) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  extern __shared__ uint4 memory[];
  const i64 own = threadIdx.x / kWarp * kWarp, step = static_cast<i64>(gridDim.x) * blockDim.x;
  uint4* words = memory + 2 * own * p.steps + threadIdx.x % kWarp;  // the thread's own
  for (i64 first = static_cast<i64>(blockIdx.x) * blockDim.x; first < p.count; first += step) {
    prove(p, words, first + own);
  }
#endif
}

}  // extern "C"
