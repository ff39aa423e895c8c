// Digits of 100 bits on processors that multiply words of 52 (AVX-512 IFMA): words of a tile of numbers, sums
// of products of digits, and groups of moduli (docs/mathematics.md, "By digits of 100 bits").
#pragma once

#include "residues.hpp"

#ifdef RNS_X86_LEVELS
#include <immintrin.h>

namespace rns {

using Table64 = nb::ndarray<const u64, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Blocks64 = nb::ndarray<const u64, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

constexpr i64 kWide = 16;      // numbers of a tile: two vectors
constexpr i64 kTiles = 4;      // tiles taken together, to read and write 64 numbers of a row at a time
constexpr int kWordBits = 50;  // of half a digit, so that the sum of four such words is a factor of 52 bits
constexpr u64 kWordMask = (u64{1} << kWordBits) - 1;

// Brings a run of tiles of a row into the cache, each kRun-th turn: many rows in turn are more
// than the processor foresees, and memory gives some lines of one row sooner than one line each of as many
// rows.
RNS_IFMA_INLINE void bring_near(const u32* row, i64 turn) {
  constexpr i64 kRun = 4;
  if (turn % kRun != 0) return;
#pragma GCC unroll 4
  for (i64 k = 0; k < kRun; ++k) __builtin_prefetch(row + kWide * k);
}

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

// What exceeds 52 bits of a product, in units of the next word.
RNS_IFMA_INLINE __m512i next_word(__m512i high) { return _mm512_slli_epi64(high, 52 - kWordBits); }

// A digit of each number.
struct Digits {
  WordRow word[2];
};

// A pair of digits of a table, the second one first: the lower words, the upper words, and the sums of both.
struct PairFactors {
  u64 word[3][2];
};

// Of 8 numbers, a sum of products of digits, (x0 + x1 2^50) (c0 + c1 2^50): of the products x0 c0, x1 c1 and
// (x0 + x1) (c0 + c1) (Karatsuba), their lower 52 bits and what is above these.
struct ProductSums {
  __m512i low[3];
  __m512i high[3];
};

// The factors of half a tile's digits: their words, and the sum of both.
RNS_IFMA_INLINE void load_factors(const Digits& digits, i64 half, __m512i* x) {
  x[0] = load_words(digits.word[0], half);
  x[1] = load_words(digits.word[1], half);
  x[2] = _mm512_add_epi64(x[0], x[1]);
}

// A pair of digits takes one product: a c + b d = (a + d) (b + c) - a b - c d (S. Winograd, "A new algorithm
// for inner product", 1968). This is minus the sum of the a b of half a tile's pairs of digits.
RNS_IFMA_INLINE ProductSums start_products(const Digits* digits, i64 pairs, i64 half) {
  ProductSums sums = {};
  for (i64 p = 0; p < pairs; ++p, digits += 2) {
    __m512i a[3], b[3];
    load_factors(digits[0], half, a);
    load_factors(digits[1], half, b);
    for (int j = 0; j < 3; ++j) {
      sums.low[j] = _mm512_madd52lo_epu64(sums.low[j], a[j], b[j]);
      sums.high[j] = _mm512_madd52hi_epu64(sums.high[j], a[j], b[j]);
    }
  }
#pragma GCC unroll 3
  for (int j = 0; j < 3; ++j) {
    sums.low[j] = _mm512_sub_epi64(_mm512_setzero_si512(), sums.low[j]);
    sums.high[j] = _mm512_sub_epi64(_mm512_setzero_si512(), sums.high[j]);
  }
  return sums;
}

// Adds the products of half a tile's pairs of digits with kCount columns of a table, each as a (b + c).
template <int kCount>
RNS_IFMA_INLINE void add_products(const Digits* digits, i64 pairs, i64 half,
                                  const PairFactors* const* columns, ProductSums* sums) {
  ProductSums total[kCount];
#pragma GCC unroll 4
  for (int k = 0; k < kCount; ++k) total[k] = sums[k];
  for (i64 p = 0; p < pairs; ++p, digits += 2) {
    __m512i a[3], b[3];
    load_factors(digits[0], half, a);
    load_factors(digits[1], half, b);
#pragma GCC unroll 3
    for (int j = 0; j < 3; ++j) {
#pragma GCC unroll 4
      for (int k = 0; k < kCount; ++k) {
        const __m512i left = _mm512_add_epi64(a[j], spread_at(columns[k][p].word[j]));
        const __m512i right = _mm512_add_epi64(b[j], spread_at(columns[k][p].word[j] + 1));
        total[k].low[j] = _mm512_madd52lo_epu64(total[k].low[j], left, right);
        total[k].high[j] = _mm512_madd52hi_epu64(total[k].high[j], left, right);
      }
    }
  }
#pragma GCC unroll 4
  for (int k = 0; k < kCount; ++k) sums[k] = total[k];
}

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
