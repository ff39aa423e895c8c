// Fixed-point interval evaluation with 64, 96 or 128 fraction bits, and lengths by it, one number a thread.
#include <rns/fixed_point.cuh>

#include "grid.cuh"

using namespace rns;

namespace {

// Evaluates a number, and returns whether it is 0.
template <int kWords>
__device__ bool evaluate(const u32* x, i64 stride, i32 moduli, const u32* c, u32 (&word)[kWords]) {
  FixedPointSum<kWords> sum = {};
  u32 any = 0;
  for (i32 i = 0; i < moduli; ++i) {
    const u32 residue = __ldcs(x + i * stride);
    fixed_point_accumulate<kWords>(sum, residue, c + i * kWords);
    any |= residue;
  }
  fixed_point_words<kWords>(sum, word);
  return any == 0;
}

template <int kWords>
__device__ void fixed_point(const u32* residues, i64 stride, i64 count, i32 moduli, const u32* c, u32* words,
                            u8* zero) {
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    u32 word[kWords];
    zero[j] = evaluate<kWords>(residues + j, stride, moduli, c, word);
    for (int k = 0; k < kWords; ++k) words[k * count + j] = word[k];
  }
}

template <int kWords>
__device__ void bit_lengths(const u32* residues, i64 stride, i64 count, i32 moduli, const u32* c,
                            const LengthTable& table, i64* lengths, u8* decided) {
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    u32 word[kWords];
    const bool is_zero = evaluate<kWords>(residues + j, stride, moduli, c, word);
    const i32 length = length_of_words<kWords>(word, is_zero, table);
    lengths[j] = length;
    decided[j] = length != kOpenLength;
  }
}

}  // namespace

extern "C" {

__global__ void fixed_point_64(const u32* residues, i64 stride, i64 count, i32 moduli, const u32* c,
                               u32* words, u8* zero) {
  fixed_point<2>(residues, stride, count, moduli, c, words, zero);
}

__global__ void fixed_point_96(const u32* residues, i64 stride, i64 count, i32 moduli, const u32* c,
                               u32* words, u8* zero) {
  fixed_point<3>(residues, stride, count, moduli, c, words, zero);
}

__global__ void fixed_point_128(const u32* residues, i64 stride, i64 count, i32 moduli, const u32* c,
                                u32* words, u8* zero) {
  fixed_point<4>(residues, stride, count, moduli, c, words, zero);
}

__global__ void bit_lengths_64(const u32* residues, i64 stride, i64 count, i32 moduli, const u32* c,
                               LengthTable table, i64* lengths, u8* decided) {
  bit_lengths<2>(residues, stride, count, moduli, c, table, lengths, decided);
}

__global__ void bit_lengths_128(const u32* residues, i64 stride, i64 count, i32 moduli, const u32* c,
                                LengthTable table, i64* lengths, u8* decided) {
  bit_lengths<4>(residues, stride, count, moduli, c, table, lengths, decided);
}

}  // extern "C"
