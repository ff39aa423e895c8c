// Proof that numbers are within a bound by base extension from some of their residues to the others, from
// products of bytes on matrix units. Rows are numbers, so that a thread's bytes of residues are where the
// units want them; columns are bytes of sums: first of a fixed-point evaluation, which gives the quotient,
// then of the other residues, of which each of four threads compares every fourth.
#include <rns/byte_proof.cuh>

#include "matrix_units.cuh"

using namespace rns;

#ifndef RNS_BYTES
#define RNS_BYTES 4
#endif

// Of each thread's segment of a fraction with its quotient.
#ifndef RNS_WORDS
#define RNS_WORDS 2
#endif

// Whether sums and a modulus can be 2^32 or more together.
#ifndef RNS_WIDE
#define RNS_WIDE 1
#endif

// Whether coefficients are kept in shared memory.
#ifndef RNS_KEPT
#define RNS_KEPT 0
#endif

// Of a processor at once: threads of a block at most, and blocks.
#ifndef RNS_THREADS
#define RNS_THREADS 256
#endif
#ifndef RNS_BLOCKS
#define RNS_BLOCKS 2
#endif

namespace {

constexpr i32 kBytes = RNS_BYTES;  // of a residue
constexpr i32 kWords = RNS_WORDS;
constexpr i32 kWarp = 32;     // threads, and their numbers
constexpr i32 kOwn = 4;       // numbers of which a thread has sums: two in each of two matrices
constexpr i32 kSegments = 4;  // of a fraction, and numbers of a vector
constexpr i32 kTiles = kBytes == 3 ? 6 : 8;  // matrices of 8 columns that are multiplied together
constexpr i32 kTests = 2 * kTiles / kBytes;  // residues that a thread compares then
constexpr i32 kQuotients = (2 + 2 * kWords + kBytes - 1) / kBytes;  // as many residues as a quotient is
constexpr i32 kVector = 16;                                         // bytes
constexpr bool kIsKept = RNS_KEPT;
constexpr u32 kAll = 0xffffffffu;

#if RNS_WIDE
using ResidueSum = u64;
#else
using ResidueSum = u32;
#endif

struct ByteProof {
  const u32* residues;
  i64 stride;
  i64 count;
  i64 is_aligned;  // for vectors of 16 bytes
  i64 moduli;      // from which others are extended
  i64 steps;       // of 32 bytes: of the residues of 4 threads, 8 each, with the quotient behind them
  i64 passes;      // of residues to compare
  const uint4* table;
  const u32* rows;      // of those moduli, four for each run
  const u32* compared;  // rows of the residues to compare
  const ResidueTest* tests;
  ProofWindow window;
  u8* proved;
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

// Residues of four numbers in a row; of numbers that there are not, 0.
template <bool kAsVector>
__device__ uint4 load(const ByteProof& p, u32 row, i64 column) {
  const u32* from = p.residues + row * p.stride + column;
  const i64 count = p.count - column;
  if (kAsVector) return __ldcs(reinterpret_cast<const uint4*>(from));
  return {count > 0 ? __ldcs(from) : 0, count > 1 ? __ldcs(from + 1) : 0, count > 2 ? __ldcs(from + 2) : 0,
          count > 3 ? __ldcs(from + 3) : 0};
}

// The bytes of the warp's numbers, from `first` on, two vectors a step: 8 of each of four numbers. Of four
// moduli at a time a thread takes one; what fills up the last four is multiplied by 0.
template <bool kAsVectors>
__device__ void write_words(const ByteProof& p, uint4* words, i64 first) {
  const i32 lane = threadIdx.x % kWarp, vectors = 2 * static_cast<i32>(p.steps);
  const i32 runs = static_cast<i32>(p.moduli + kSegments - 1) / kSegments;
  const i64 column = first + lane / 4 * 4;
  i32 run = 0;
  for (i32 vector = 0; vector < vectors; vector += 2 * kBytes, run += kProofRun) {
    u32 rows[kProofRun];
#pragma unroll
    for (i32 e = 0; e < kProofRun; ++e) {
      rows[e] = run + e < runs ? __ldg(p.rows + (run + e) * kSegments + lane % 4) : 0;
    }
    u32 residues[4][kProofRun];
#pragma unroll
    for (i32 e = 0; e < kProofRun; ++e) {
      uint4 x = {};
      if (run + e < runs) x = load<kAsVectors>(p, rows[e], column);
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

// Sums of products for some matrices of 8 columns, of which a thread has two each: those of its column c for
// its number 2 j + r are sums[c / 2][j][2 r + c % 2].
template <i32 kCount>
struct Products {
  i32 sums[kCount][2][4];

  __device__ void multiply(const uint4* table, const uint4* words, i32 steps) {
#pragma unroll
    for (i32 i = 0; i < kCount * 8; ++i) sums[i / 8][i / 4 % 2][i % 4] = 0;
#pragma unroll 4
    for (i32 step = 0; step < steps; ++step, words += 2 * kWarp, table += kCount / 2 * kWarp) {
      const uint4 first = words[0], second = words[kWarp];
      const u32 a[2][4] = {{first.x, first.y, first.z, first.w}, {second.x, second.y, second.z, second.w}};
#pragma unroll
      for (i32 k = 0; k < kCount; k += 2) {
        const uint4 columns = kIsKept ? table[k / 2 * kWarp] : __ldg(table + k / 2 * kWarp);
#pragma unroll
        for (i32 j = 0; j < 2; ++j) {
          multiply_add_bytes(sums[k][j], a[j], columns.x, columns.y);
          multiply_add_bytes(sums[k + 1][j], a[j], columns.z, columns.w);
        }
      }
    }
  }

  // The sum of the bytes of so many columns for a number of the thread's.
  template <class Sum, i32 kColumns>
  __device__ Sum joined(i32 column, i32 number) const {
    Sum sum = 0;
#pragma unroll
    for (i32 b = 0; b < kColumns; ++b) {
      const i32 c = column + b;
      sum += static_cast<Sum>(static_cast<u32>(sums[c / 2][number / 2][number % 2 * 2 + c % 2])) << (8 * b);
    }
    return sum;
  }
};

// Turns what four threads have of four numbers each: then each has what all had of one, its own.
__device__ void turn(u64 (&x)[kOwn]) {
#pragma unroll
  for (i32 bit = 1; bit < kOwn; bit *= 2) {
    const bool is_upper = threadIdx.x & bit;
#pragma unroll
    for (i32 i = 0; i < kOwn; ++i) {
      if (i & bit) continue;
      const u64 got = __shfl_xor_sync(kAll, is_upper ? x[i] : x[i | bit], bit);
      if (is_upper) {
        x[i] = got;
      } else {
        x[i | bit] = got;
      }
    }
  }
}

// Writes the quotient of the thread's own number of four behind its residues, as some more of these.
__device__ void write_quotient(const ByteProof& p, uint4* words, u64 quotient) {
  const i32 own = threadIdx.x % kOwn, count = static_cast<i32>(p.moduli);
  u8* first = reinterpret_cast<u8*>(words - own);  // of the four threads' words
  __syncwarp();
#pragma unroll
  for (i32 b = 0; b < kQuotients * kBytes; ++b) {
    const i32 residue = count + b / kBytes, place = residue / kSegments * kBytes + b % kBytes;
    const i32 vector = place / 8 * 2 + own / 2;
    u8* number = first + (vector * kWarp + residue % kSegments) * kVector + place % 8 / 4 * 8 + own % 2 * 4;
    number[place % 4] = static_cast<u8>(quotient >> (8 * b));
  }
  __syncwarp();
}

// Writes the quotients behind the bytes of the warp's numbers, that of one by each thread. Whether that
// number is within the bound if it has the residues that are compared.
__device__ bool write_quotients(const ByteProof& p, const uint4* table, uint4* words) {
  Products<2 * kWords> products;
  products.multiply(table, words, static_cast<i32>(p.steps));
  u64 sums[kWords][kOwn];
#pragma unroll
  for (i32 w = 0; w < kWords; ++w) {
#pragma unroll
    for (i32 k = 0; k < kOwn; ++k) sums[w][k] = products.template joined<u64, 4>(4 * w, k);
    turn(sums[w]);
  }
  ProofFraction<3 * kWords> fraction;
#pragma unroll
  for (i32 w = 0; w < kSegments * kWords; ++w) fraction.add(w, sums[w % kWords][w / kWords], p.window);
  write_quotient(p, words, fraction.quotient[0] | static_cast<u64>(fraction.quotient[1]) << 32);
  return fraction.is_in;
}

// Residues to compare, from a test on every fourth, of the thread's numbers.
template <bool kAsVectors>
__device__ void load_compared(const ByteProof& p, i32 test, i64 column, uint4 (&residues)[kTests]) {
#pragma unroll
  for (i32 e = 0; e < kTests; ++e) {
    residues[e] = load<kAsVectors>(p, __ldg(p.compared + test + e * kSegments), column);
  }
}

// Compares the residues of a pass with those that are extended: a bit for each of the thread's numbers that
// has others.
template <bool kAsVectors>
__device__ u32 compare(const ByteProof& p, const uint4* table, const uint4* words, i64 first, i32 pass) {
  const i32 lane = threadIdx.x % kWarp, test = pass * kTests * kSegments + lane % kSegments;
  const i64 column = first + lane / 4 * 4;
  uint4 residues[kTests];
  // Coefficients from global memory take the registers where residues would wait.
  if (kIsKept) load_compared<kAsVectors>(p, test, column, residues);
  Products<kTiles> products;
  products.multiply(table, words, static_cast<i32>(p.steps));
  if (!kIsKept) load_compared<kAsVectors>(p, test, column, residues);
  u32 wrong = 0;
#pragma unroll
  for (i32 e = 0; e < kTests; ++e) {
    const uint4 words = __ldg(reinterpret_cast<const uint4*>(p.tests) + test + e * kSegments);
    const ResidueTest one = {words.x, words.y, words.z, words.w};
    const u32 x[kOwn] = {residues[e].x, residues[e].y, residues[e].z, residues[e].w};
#pragma unroll
    for (i32 k = 0; k < kOwn; ++k) {
      const ResidueSum sum = products.template joined<ResidueSum, kBytes>(e * kBytes, k);
      wrong |= static_cast<u32>(!has_residue(sum, one, x[k])) << k;
    }
  }
  return wrong;
}

// A warp's numbers, from `first` on.
template <bool kAsVectors>
__device__ void prove(const ByteProof& p, const uint4* table, uint4* words, i64 first) {
  const i32 lane = threadIdx.x % kWarp;
  write_words<kAsVectors>(p, words, first);
  const bool is_in = write_quotients(p, table, words);
  table += p.steps * kWords * kWarp;
  u32 wrong = 0;
  for (i32 pass = 0; pass < p.passes; ++pass, table += p.steps * (kTiles / 2) * kWarp) {
    wrong |= compare<kAsVectors>(p, table, words, first, pass);
  }
  wrong |= __shfl_xor_sync(kAll, wrong, 1);
  wrong |= __shfl_xor_sync(kAll, wrong, 2);
  if (first + lane < p.count) p.proved[first + lane] = is_in && (wrong >> lane % kOwn & 1) == 0;
}

// Coefficients as a block's warps read them: in shared memory, if they are kept there.
__device__ const uint4* place_table(const ByteProof& p, uint4* shared) {
  if (!kIsKept) return p.table;
  const i64 vectors = p.steps * (kWords + p.passes * (kTiles / 2)) * kWarp;
  for (i64 k = threadIdx.x; k < vectors; k += blockDim.x) shared[k] = __ldg(p.table + k);
  __syncthreads();
  return shared;
}

#endif

}  // namespace

extern "C" {

__global__ __launch_bounds__(RNS_THREADS, RNS_BLOCKS) void prove_bound(const __grid_constant__ ByteProof p) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  extern __shared__ uint4 memory[];
  const i64 own = threadIdx.x / kWarp * kWarp, step = static_cast<i64>(gridDim.x) * blockDim.x;
  uint4* words = memory + 2 * own * p.steps + threadIdx.x % kWarp;  // the thread's own
  const uint4* table = place_table(p, memory + 2 * blockDim.x * p.steps) + threadIdx.x % kWarp;
  for (i64 first = static_cast<i64>(blockIdx.x) * blockDim.x; first < p.count; first += step) {
    if (p.is_aligned && first + blockDim.x <= p.count) {
      prove<true>(p, table, words, first + own);
    } else {
      prove<false>(p, table, words, first + own);
    }
  }
#endif
}

}  // extern "C"
