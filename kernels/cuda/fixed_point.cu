// Fixed-point interval evaluation with 64, 96 or 128 fraction bits, one number a thread.
#include <rns/fixed_point.cuh>

#include "grid.cuh"

using namespace rns;

namespace {

template <int kWords>
__device__ void fixed_point(const u32* residues, i64 stride, i64 count, i32 moduli, const u32* c, u32* words,
                            u8* zero) {
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    FixedPointSum<kWords> sum = {};
    u32 any = 0;
    for (i32 i = 0; i < moduli; ++i) {
      const u32 x = __ldcs(residues + i * stride + j);
      fixed_point_accumulate<kWords>(sum, x, c + i * kWords);
      any |= x;
    }
    u32 word[kWords];
    fixed_point_words<kWords>(sum, word);
    for (int k = 0; k < kWords; ++k) words[k * count + j] = word[k];
    zero[j] = any == 0;
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

}  // extern "C"
