// Proof of a bound by one fixed-point evaluation of X/M in words of up to 52 bits, for few moduli on
// processors that multiply such words (AVX-512 IFMA; docs/mathematics.md, "Proof of a bound").
#include <algorithm>
#include <utility>

#include "bindings.hpp"
#include "digits.hpp"

namespace rns {

#ifdef RNS_X86_LEVELS

namespace {

constexpr int kMostProofWords = 12;

constexpr i64 kAhead = 512;  // so many residues on, rows are asked for

struct WordProof {
  Residues residues;
  const u64* coefficients;  // the words of each modulus' coefficient, the least significant first
  const u64* start;         // those that are added to every sum
  int word_bits;
  int top_bits;   // of the last word, beyond which sums wrap
  int low_words;  // words that may be other than 0
  u64 room;       // the greatest of these words, together, that proves the bound

  // The sums of the products of 8 numbers, each below 2^64, to one flag a number.
  template <int kWords>
  RNS_IFMA_INLINE __mmask8 is_within(const __m512i* sums) const {
    const __m128i bits = _mm_cvtsi64_si128(word_bits), top = _mm_cvtsi64_si128(top_bits);
    const __m512i ones = spread(~u64{0});
    const __m512i mask = _mm512_andnot_si512(_mm512_sll_epi64(ones, bits), ones);
    const __m512i last = _mm512_andnot_si512(_mm512_sll_epi64(ones, top), ones);
    __m512i carry = _mm512_setzero_si512(), low = carry, above = carry;
    for (int k = 0; k < kWords; ++k) {
      const __m512i sum = _mm512_add_epi64(sums[k], carry);
      const __m512i word = _mm512_and_si512(sum, k == kWords - 1 ? last : mask);
      carry = _mm512_srl_epi64(sum, bits);
      if (k < low_words) {
        low = _mm512_or_si512(low, _mm512_sll_epi64(word, _mm_cvtsi64_si128(k * word_bits)));
      } else {
        above = _mm512_or_si512(above, word);
      }
    }
    return _mm512_mask_cmple_epu64_mask(_mm512_testn_epi64_mask(above, above), low, spread(room));
  }

  template <int kWords>
  RNS_IFMA void prove(u8* proved) const {
    for (i64 first = 0; first < residues.count; first += kWide) {
      const i64 width = residues.count - first;
      const __mmask16 mask = lanes(width);
      __m512i sums[2][kWords];
      for (int k = 0; k < kWords; ++k) sums[0][k] = sums[1][k] = spread_at(start + k);
      const u32* row = residues.row(0) + first;
      const u64* c = coefficients;
      for (i64 i = 0; i < residues.moduli; ++i, row += residues.stride, c += kWords) {
        bring_near(row + kAhead, first / kWide + i);
        const __m512i x = _mm512_maskz_loadu_epi32(mask, row);
        const __m512i low = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(x));
        const __m512i high = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(x, 1));
        for (int k = 0; k < kWords; ++k) {
          const __m512i factor = spread_at(c + k);
          sums[0][k] = _mm512_madd52lo_epu64(sums[0][k], low, factor);
          sums[1][k] = _mm512_madd52lo_epu64(sums[1][k], high, factor);
        }
      }
      const int flags = is_within<kWords>(sums[0]) | is_within<kWords>(sums[1]) << 8;
      const __m128i bytes = _mm_maskz_set1_epi8(static_cast<__mmask16>(flags), 1);
      _mm_mask_storeu_epi8(proved + first, mask, bytes);
    }
  }

  template <int... kCounts>
  void prove_words(int words, u8* proved, std::integer_sequence<int, kCounts...>) const {
    ((words == kCounts + 1 ? prove<kCounts + 1>(proved) : void()), ...);
  }
};

void prove_by_words(const Matrix32& array, const Table64& coefficients, const Vector64& start, int word_bits,
                    int top_bits, int low_words, u64 room, Vector8 proved) {
  const int words = static_cast<int>(start.shape(0));
  require(words >= 1 && words <= kMostProofWords && static_cast<int>(coefficients.shape(1)) == words &&
              coefficients.shape(0) == array.shape(0),
          "one coefficient of so many words for each modulus is needed");
  require(word_bits >= 20 && word_bits <= 51 && top_bits >= 1 && top_bits <= word_bits && low_words >= 1 &&
              low_words * word_bits < 64,
          "such words hold no bound");
  require(proved.shape(0) == array.shape(1), "one flag for each number is needed");
  const WordProof proof = {Residues(array), coefficients.data(), start.data(), word_bits,
                           top_bits,        low_words,           room};
  nb::gil_scoped_release release;
  proof.prove_words(words, proved.data(), std::make_integer_sequence<int, kMostProofWords>());
}

}  // namespace

void bind_word_proof(nb::module_& module) { module.def("prove_by_words", prove_by_words); }

#else

void bind_word_proof(nb::module_&) {}

#endif

}  // namespace rns
