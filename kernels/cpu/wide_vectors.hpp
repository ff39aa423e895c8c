// Eight words of 64 bits at a time on processors with AVX-512, and sums and products of them modulo m: below
// 2^61, or below 2^50 where processors multiply words of 52 bits (AVX-512 IFMA).
#pragma once

#include "wide.hpp"

#ifdef RNS_X86_LEVELS
#include <immintrin.h>
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 12 says it of its own _mm512_undefined_epi32

namespace rns {

using Words = __m512i;
constexpr i64 kWords = 8;

RNS_AVX512_INLINE Words spread_word(u64 a) { return _mm512_set1_epi64(static_cast<i64>(a)); }
RNS_AVX512_INLINE Words load_words(const u64* x) { return _mm512_loadu_si512(x); }
RNS_AVX512_INLINE void store_words(u64* x, Words a) { _mm512_storeu_si512(x, a); }

// The less of r and r - m, which wraps if it is negative: |r| for r < 2 m.
RNS_AVX512_INLINE Words less_of(Words r, Words m) { return _mm512_min_epu64(r, _mm512_sub_epi64(r, m)); }

RNS_AVX512_INLINE Words upper_half(Words a) { return _mm512_srli_epi64(a, 32); }

// The upper words of products, or up to 2 less: the products of the lower halves and what two products carry
// are left out.
RNS_AVX512_INLINE Words about_high_product(Words a, Words b) {
  const Words a_high = upper_half(a), b_high = upper_half(b);
  const Words one = upper_half(_mm512_mul_epu32(a_high, b)), other = upper_half(_mm512_mul_epu32(a, b_high));
  return _mm512_add_epi64(_mm512_mul_epu32(a_high, b_high), _mm512_add_epi64(one, other));
}

// A product's words; its upper one.
RNS_AVX512_INLINE void whole_product(Words a, Words b, Words& low, Words& high) {
  const Words half = spread_word(~u64{0} >> 32), a_high = upper_half(a), b_high = upper_half(b);
  const Words lowest = _mm512_mul_epu32(a, b);
  const Words one = _mm512_add_epi64(_mm512_mul_epu32(a, b_high), upper_half(lowest));
  const Words other = _mm512_add_epi64(_mm512_mul_epu32(a_high, b), _mm512_and_si512(one, half));
  const Words carry = _mm512_add_epi64(upper_half(one), upper_half(other));
  high = _mm512_add_epi64(_mm512_mul_epu32(a_high, b_high), carry);
  low = _mm512_or_si512(_mm512_slli_epi64(other, 32), _mm512_and_si512(lowest, half));
}

RNS_AVX512_INLINE Words high_product(Words a, Words b) {
  Words low, high;
  whole_product(a, b, low, high);
  return high;
}

// |a + b| and |a - b| for a, b < m < 2^63, where `last` is m - 1.
RNS_AVX512_INLINE Words mod_add(Words a, Words b, Words last) {
  return less_of(_mm512_add_epi64(a, b), _mm512_add_epi64(last, spread_word(1)));
}
RNS_AVX512_INLINE Words mod_sub(Words a, Words b, Words last) {
  const Words r = _mm512_sub_epi64(a, b);
  return _mm512_min_epu64(r, _mm512_add_epi64(r, _mm512_add_epi64(last, spread_word(1))));
}

// Barrett: of x = a b < m^2, where m has n bits, floor(x / 2^(n - 2)) times floor(2^(n + w - 2) / m), over
// 2^w, is less than 5 below x / m; all fit words of w = 64 bits for n <= 61, and of w = 52 bits for n <= 50.
namespace avx512 {

constexpr int kMostBits = 61;

struct Modulus {
  Words last, m, reciprocal;
  __m128i left, right;

  RNS_AVX512_INLINE explicit Modulus(WideModulus modulus)
      : last(spread_word(modulus.last)),
        m(spread_word(modulus.last + 1u)),
        reciprocal(spread_word(modulus.reciprocal >> 2 | u64{1} << 62)),
        left(_mm_cvtsi64_si128(static_cast<i64>(modulus.shift) + 2)),
        right(_mm_cvtsi64_si128(62 - static_cast<i64>(modulus.shift))) {}
};

RNS_AVX512_INLINE Words mod_mul(Words a, Words b, const Modulus& m) {
  Words low, high;
  whole_product(a, b, low, high);
  const Words upper = _mm512_or_si512(_mm512_sll_epi64(high, m.left), _mm512_srl_epi64(low, m.right));
  const Words q = about_high_product(upper, m.reciprocal);
  const Words r = less_of(_mm512_sub_epi64(low, _mm512_mullo_epi64(q, m.m)), _mm512_slli_epi64(m.m, 2));
  return less_of(less_of(r, _mm512_slli_epi64(m.m, 1)), m.m);
}

}  // namespace avx512

namespace ifma {

constexpr int kMostBits = 50, kWordBits = 52;

struct Modulus {
  Words last, m, minus_m, reciprocal, mask;
  __m128i left, right;

  RNS_IFMA_INLINE explicit Modulus(WideModulus modulus)
      : last(spread_word(modulus.last)),
        m(spread_word(modulus.last + 1u)),
        minus_m(spread_word((u64{1} << kWordBits) - (modulus.last + 1u))),
        reciprocal(spread_word((modulus.reciprocal >> 2 | u64{1} << 62) >> (64 - kWordBits))),
        mask(spread_word((u64{1} << kWordBits) - 1u)),
        left(_mm_cvtsi64_si128(static_cast<i64>(modulus.shift) - 10)),
        right(_mm_cvtsi64_si128(62 - static_cast<i64>(modulus.shift))) {}
};

RNS_IFMA_INLINE Words mod_mul(Words a, Words b, const Modulus& m) {
  const Words zero = _mm512_setzero_si512();
  const Words low = _mm512_madd52lo_epu64(zero, a, b), high = _mm512_madd52hi_epu64(zero, a, b);
  const Words upper = _mm512_or_si512(_mm512_sll_epi64(high, m.left), _mm512_srl_epi64(low, m.right));
  const Words q = _mm512_madd52hi_epu64(zero, upper, m.reciprocal);
  const Words r = _mm512_and_si512(_mm512_madd52lo_epu64(low, q, m.minus_m), m.mask);
  return less_of(less_of(r, _mm512_slli_epi64(m.m, 1)), m.m);
}

}  // namespace ifma

}  // namespace rns

#endif
