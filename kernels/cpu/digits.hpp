// Digits of 102 bits on processors that multiply words of 52 (AVX-512 IFMA): words of a
// tile of numbers, and groups of moduli (docs/mathematics.md, "By digits of 102 bits").
#pragma once

#include "residues.hpp"

#ifdef RNS_X86_LEVELS
#include <immintrin.h>
#define RNS_IFMA __attribute__((target("arch=x86-64-v4,avx512ifma")))
#define RNS_IFMA_INLINE __attribute__((target("arch=x86-64-v4,avx512ifma"), always_inline)) inline

namespace rns {

using Table64 = nb::ndarray<const u64, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Blocks64 = nb::ndarray<const u64, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

constexpr i64 kWide = 16;      // numbers of a tile: two vectors
constexpr i64 kTiles = 4;      // tiles taken together, to read and write 64 numbers of a row at a time
constexpr int kWordBits = 51;  // of half a digit, so that the sum of both halves is a factor of 52 bits
constexpr u64 kWordMask = (u64{1} << kWordBits) - 1;

// One word of each number of a tile.
struct alignas(64) WordRow {
  u64 x[kWide];
};

RNS_IFMA_INLINE __m512i load_words(const WordRow& row, i64 half) { return _mm512_load_si512(row.x + half); }
RNS_IFMA_INLINE __m512i spread(u64 value) { return _mm512_set1_epi64(static_cast<i64>(value)); }
// Loaded so, for GCC would pass some constants through registers.
RNS_IFMA_INLINE __m512i spread_at(const u64* x) {
  return _mm512_broadcastq_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(x)));
}
RNS_IFMA_INLINE __m512i low_product(__m512i a, __m512i b) {
  return _mm512_madd52lo_epu64(_mm512_setzero_si512(), a, b);
}
RNS_IFMA_INLINE __m512i word_of(__m512i x) { return _mm512_and_si512(x, spread(kWordMask)); }
// The carry of a sum, which may be negative.
RNS_IFMA_INLINE __m512i carry_of(__m512i x) { return _mm512_srai_epi64(x, kWordBits); }

template <class Modulus>
struct Groups {
  const Modulus* moduli;
  const u32* starts;  // group k is of moduli starts[k] to starts[k + 1] - 1
  i64 count;

  Groups(const Vector32& bounds, const Table64& factors)
      : moduli(reinterpret_cast<const Modulus*>(factors.data())),
        starts(bounds.data()),
        count(static_cast<i64>(bounds.shape(0)) - 1) {
    require(count >= 1 && factors.shape(1) * sizeof(u64) == sizeof(Modulus), "no groups of moduli");
    require(starts[count] == factors.shape(0), "one row of constants for each modulus is needed");
  }
  i64 size() const { return starts[count]; }
};

// Those lanes of a tile's 16 that the first `width` numbers have.
RNS_IFMA_INLINE __mmask16 lanes(i64 width) {
  return static_cast<__mmask16>(width >= kWide ? 0xFFFF : (1 << width) - 1);
}

}  // namespace rns

#endif
