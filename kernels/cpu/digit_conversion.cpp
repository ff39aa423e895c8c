// Conversion and base extension by digits of 100 bits, for processors that multiply words of 52 bits (AVX-512
// IFMA): the results of convert.cpp from fewer products. Moduli are taken in groups whose products P_k are at
// most 2^96, and numbers in tiles of 16, side by side (docs/mathematics.md, "By digits of 100 bits").
#include <algorithm>
#include <vector>

#include "bindings.hpp"
#include "digit_tiles.hpp"

namespace rns {

#ifdef RNS_X86_LEVELS

namespace {

using Limbs = nb::ndarray<const u32, nb::ndim<2>, nb::device::cpu>;

constexpr i64 kWidth = 8;      // numbers of a vector
constexpr i64 kPairBits = 64;  // of two limbs, which are moved together

// The word that holds some bits of a number of so many digits; 0 above them.
RNS_IFMA_INLINE __m512i word_at(const Digits* digits, i64 count, i64 w, i64 half) {
  return w < 2 * count ? load_words(digits[w / 2].word[w % 2], half) : _mm512_setzero_si512();
}
RNS_IFMA_INLINE __m512i shifted_right(__m512i x, i64 bits) {
  return _mm512_srl_epi64(x, _mm_cvtsi64_si128(bits));
}
RNS_IFMA_INLINE __m512i shifted_left(__m512i x, i64 bits) {
  return _mm512_sll_epi64(x, _mm_cvtsi64_si128(bits));
}

// Of a vector's limbs, those that a number of `limb_count` has from its pair l on.
RNS_IFMA_INLINE __mmask16 limbs_from(i64 l, i64 limb_count) {
  return lanes(std::max<i64>(0, limb_count - 2 * l));
}

// 8 vectors of 8 words, the rows of a matrix, become its columns.
RNS_IFMA_INLINE void transpose(__m512i* x) {
  __m512i y[kWidth], z[kWidth];
#pragma GCC unroll 4
  for (int i = 0; i < kWidth; i += 2) {
    y[i] = _mm512_unpacklo_epi64(x[i], x[i + 1]);
    y[i + 1] = _mm512_unpackhi_epi64(x[i], x[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const int k = i % 2 + i / 2 * 4;
    z[k] = _mm512_shuffle_i64x2(y[k], y[k + 2], 0x88);
    z[k + 2] = _mm512_shuffle_i64x2(y[k], y[k + 2], 0xDD);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    x[i] = _mm512_shuffle_i64x2(z[i], z[i + 4], 0x88);
    x[i + 4] = _mm512_shuffle_i64x2(z[i], z[i + 4], 0xDD);
  }
}

// Rows of pairs of limbs that numbers of so many digits take, and one that is read above them.
i64 pair_rows(i64 digits) { return (2 * kWordBits * digits / kPairBits + 1 + kWidth) / kWidth * kWidth; }

// Up to 8 numbers, each `stride` limbs after the one before, as rows of pairs. Above its limbs, a signed
// number has its sign.
RNS_IFMA void load_pairs(const u32* limbs, i64 stride, i64 limb_count, bool is_signed, i64 numbers, i64 half,
                         i64 rows, WordRow* pairs) {
  for (i64 l = 0; l < rows; l += kWidth) {
    __m512i x[kWidth];
#pragma GCC unroll 8
    for (i64 j = 0; j < kWidth; ++j) {
      const u32* number = limbs + std::min(j, numbers - 1) * stride;
      const i32 sign = is_signed ? static_cast<i32>(number[limb_count - 1]) >> 31 : 0;
      x[j] = _mm512_mask_loadu_epi32(_mm512_set1_epi32(sign), limbs_from(l, limb_count), number + 2 * l);
    }
    transpose(x);
#pragma GCC unroll 8
    for (i64 i = 0; i < kWidth; ++i) _mm512_store_si512(pairs[l + i].x + half, x[i]);
  }
}

// The digits of 8 numbers from rows of pairs.
RNS_IFMA void split_pairs(const WordRow* pairs, i64 count, i64 half, Digits* digits) {
  for (i64 w = 0; w < 2 * count; ++w) {
    const i64 l = kWordBits * w / kPairBits, shift = kWordBits * w % kPairBits;
    const __m512i low = shifted_right(load_words(pairs[l], half), shift);
    const __m512i high = shifted_left(load_words(pairs[l + 1], half), kPairBits - shift);
    _mm512_store_si512(digits[w / 2].word[w % 2].x + half, word_of(_mm512_or_si512(low, high)));
  }
}

// The limbs of up to 8 numbers of so many digits, one number after the other.
RNS_IFMA void join_digits(const Digits* digits, i64 count, i64 half, i64 numbers, u32* limbs,
                          i64 limb_count) {
  for (i64 l = 0; 2 * l < limb_count; l += kWidth) {
    __m512i x[kWidth];
#pragma GCC unroll 8
    for (i64 i = 0; i < kWidth; ++i) {
      const i64 w = kPairBits * (l + i) / kWordBits, shift = kPairBits * (l + i) % kWordBits;
      const __m512i first = shifted_right(word_at(digits, count, w, half), shift);
      const __m512i second = shifted_left(word_at(digits, count, w + 1, half), kWordBits - shift);
      const __m512i third = shifted_left(word_at(digits, count, w + 2, half), 2 * kWordBits - shift);
      x[i] = _mm512_or_si512(_mm512_or_si512(first, second), third);
    }
    transpose(x);
    const __mmask16 mask = limbs_from(l, limb_count);
    for (i64 j = 0; j < numbers; ++j) _mm512_mask_storeu_epi32(limbs + j * limb_count + 2 * l, mask, x[j]);
  }
}

i64 digits_of(i64 limb_count) { return (32 * limb_count + 2 * kWordBits - 1) / (2 * kWordBits); }

struct ForwardDigits {
  const u32* limbs;
  i64 stride;
  i64 limb_count;
  bool is_signed;
  DigitTable table;
  Targets targets;

  i64 digits() const { return digits_of(limb_count); }

  // The digits of a tile; of signed numbers the sign is a term of its own.
  RNS_IFMA void load_tile(i64 first, i64 width, WordRow* pairs, Digits* terms) const {
    for (i64 h = 0; h < width; h += kWidth) {
      const u32* number = limbs + (first + h) * stride;
      load_pairs(number, stride, limb_count, is_signed, std::min(kWidth, width - h), h, pair_rows(digits()),
                 pairs);
      split_pairs(pairs, digits(), h, terms);
    }
    for (i64 j = 0; is_signed && j < width; ++j)
      terms[digits()].word[0].x[j] = limbs[(first + j) * stride + limb_count - 1] >> 31;
  }

  RNS_IFMA void convert(i64 count, u32* residues, i64 residue_stride) const {
    std::vector<Digits> terms(kTiles * table.rows());
    std::vector<WordRow> pairs(pair_rows(digits()));
    for (i64 first = 0; first < count; first += kWide * kTiles) {
      const i64 width = std::min(kWide * kTiles, count - first);
      for (i64 t = 0; kWide * t < width; ++t)
        load_tile(first + kWide * t, std::min(kWide, width - kWide * t), pairs.data(),
                  terms.data() + t * table.rows());
      write_residues(terms.data(), table.rows(), table, targets, width, Finish{}, residues + first,
                     residue_stride);
    }
  }
};

RNS_IFMA void write_limbs(const ReverseDigits& numbers, u32* limbs, i64 limb_count) {
  const i64 digits = numbers.digits, count = numbers.residues.count;
  std::vector<Digits> terms(kTiles * numbers.table.rows()), result(kTiles * paired(digits));
  for (i64 first = 0; first < count; first += kTiles * kWide) {
    const i64 width = std::min(kTiles * kWide, count - first), tiles = (width + kWide - 1) / kWide;
    numbers.load(first, tiles, terms.data(), result.data());
    for (i64 j = 0; j < width; j += kWidth)
      join_digits(result.data() + j / kWide * paired(digits), digits, j % kWide, std::min(kWidth, width - j),
                  limbs + (first + j) * limb_count, limb_count);
  }
}

struct ExtensionDigits {
  Residues residues;
  Sources sources;
  DigitTable table;  // the last row is -M, for the term q
  u32 start;
  u32 ambiguous_below;
  Targets targets;

  RNS_IFMA void extend(u32* result, i64 result_stride, u8* ambiguous) const {
    std::vector<Digits> terms(kTiles * table.rows());
    u32 fraction[kTiles * kWide];
    for (i64 first = 0; first < residues.count; first += kTiles * kWide) {
      const i64 width = std::min(kTiles * kWide, residues.count - first);
      load_terms(residues, first, sources, start, table.rows(), terms.data(), fraction);
      for (i64 j = 0; j < width; ++j) ambiguous[first + j] = fraction[j] < ambiguous_below;
      write_residues(terms.data(), table.rows(), table, targets, width, Finish{}, result + first,
                     result_stride);
    }
  }
};

void limbs_to_residues(const Limbs& limbs, bool is_signed, const Blocks64& table, const Vector32& starts,
                       const Table64& factors, MutableResidues residues) {
  const i64 count = static_cast<i64>(limbs.shape(0)), limb_count = static_cast<i64>(limbs.shape(1));
  require(limb_count >= 1 && (count == 0 || limb_count == 1 || limbs.stride(1) == 1),
          "limbs: the limbs' axis must be contiguous");
  const ForwardDigits forward = {limbs.data(),
                                 limbs.stride(0),
                                 limb_count,
                                 is_signed,
                                 DigitTable(table, digits_of(limb_count) + is_signed),
                                 Targets(starts, factors)};
  require(forward.table.is_whole(), "the table must have a row a digit");
  require(forward.targets.count == forward.table.columns, "a group has a column");
  check_result(residues, forward.targets.size(), count);
  nb::gil_scoped_release release;
  forward.convert(count, residues.data(), residues.stride(0));
}

void residues_to_limbs(const Matrix32& array, const Vector32& starts, const Table64& factors,
                       const Blocks64& table, const Vector64& product, const Vector64& highest,
                       MutableMatrix32 limbs) {
  const ReverseDigits reverse(array, starts, factors, table, product, highest);
  const i64 limb_count = static_cast<i64>(limbs.shape(1));
  require(limbs.shape(0) == array.shape(1) && 2 * kWordBits * reverse.digits >= 32 * limb_count,
          "one row of no more limbs than the digits have for each number is needed");
  nb::gil_scoped_release release;
  write_limbs(reverse, limbs.data(), limb_count);
}

void base_extend(const Matrix32& array, const Vector32& starts, const Table64& factors, const Blocks64& table,
                 u32 start, u32 ambiguous_below, const Vector32& target_starts, const Table64& target_factors,
                 MutableResidues result, Vector8 ambiguous) {
  const Sources sources(starts, factors);
  const ExtensionDigits extension = {
      Residues(array), sources,         DigitTable(table, sources.count + 1),
      start,           ambiguous_below, Targets(target_starts, target_factors)};
  require(extension.residues.moduli == extension.sources.size() && extension.table.is_whole() &&
              ambiguous.shape(0) == array.shape(1),
          "one row of constants for each modulus, and one flag for each number is needed");
  require(extension.targets.count == extension.table.columns, "a group has a column");
  check_result(result, extension.targets.size(), extension.residues.count);
  nb::gil_scoped_release release;
  extension.extend(result.data(), result.stride(0), ambiguous.data());
}

}  // namespace

void bind_digit_conversion(nb::module_& module) {
  module.def("multiplies_words",
             [] { return __builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512ifma"); });
  module.def("limbs_to_residues_by_digits", limbs_to_residues);
  module.def("residues_to_limbs_by_digits", residues_to_limbs);
  module.def("base_extend_by_digits", base_extend);
}

#else

void bind_digit_conversion(nb::module_& module) {
  module.def("multiplies_words", [] { return false; });
}

#endif

}  // namespace rns
