// Tiles of numbers between residues and digits of 100 bits, on processors that multiply words of 52 bits
// (docs/mathematics.md, "By digits of 100 bits"): what conversion and division share.
#pragma once

#include <algorithm>
#include <vector>

#include "digits.hpp"

#ifdef RNS_X86_LEVELS

namespace rns {

using MutableResidues = Written<u32, nb::ndim<2>>;

// Columns of a table that share what is loaded of a number: registers hold no more sums. Of a table of few
// terms, two share it for 16 numbers.
constexpr i64 kColumns = 4;
constexpr i64 kFewColumns = 2, kFewTerms = 8;

// The sums of a tile's digits times those of a column.
struct DigitSum {
  ProductSums half[2];
};

// x - y if it is not negative, else x.
RNS_IFMA_INLINE __m512i less_if_fits(__m512i x, __m512i y) {
  return _mm512_min_epu64(x, _mm512_sub_epi64(x, y));
}

// |x w| modulo m for x below 2^52, with the quotient floor(2^52 w / m): as mod_mul, by words of 52 bits.
RNS_IFMA_INLINE __m512i multiply(__m512i x, __m512i w, __m512i quotient, __m512i m) {
  const __m512i q = _mm512_madd52hi_epu64(_mm512_setzero_si512(), x, quotient);
  const __m512i r = _mm512_sub_epi64(low_product(x, w), low_product(q, m));
  return less_if_fits(word_of(r), m);
}

// A table of digits. For each column, it has minus the sum of the products within its pairs, the lower 52
// bits and what is above of each product, and then the pairs, of which the last has a zero if there is none
// for it. Of fewer than 2^9 terms, the sums are below 2^60 in magnitude, and what next_digit makes of them
// below 2^63.
struct DigitTable {
  const PairFactors* data;
  i64 columns;
  i64 all_pairs;
  i64 terms;  // that are taken, from the first on; the others are 0
  std::vector<PairFactors> starts;

  // The number of terms of a whole table is even, with the zero.
  static i64 rows_of(const Blocks64& array) { return 2 * static_cast<i64>(array.shape(1)) - 2; }

  DigitTable(const Blocks64& array, i64 count)
      : data(reinterpret_cast<const PairFactors*>(array.data())),
        columns(static_cast<i64>(array.shape(0))),
        all_pairs(rows_of(array) / 2),
        terms(rows()),
        starts(columns) {
    require(array.shape(2) * sizeof(u64) == sizeof(PairFactors) && rows() >= 2 && rows() <= 512 &&
                count <= rows(),
            "no table of digits");
    for (i64 k = 0; k < columns; ++k) starts[k] = *column(k);
    use(count);
  }

  const PairFactors* column(i64 k) const { return data + k * (all_pairs + 1); }
  i64 rows() const { return 2 * all_pairs; }
  i64 pairs() const { return (terms + 1) / 2; }
  bool is_whole() const { return pairs() == all_pairs; }

  // From now on, only so many terms are taken.
  void use(i64 count) {
    const i64 before = pairs();
    terms = count;
    for (i64 k = 0; pairs() != before && k < columns; ++k) starts[k] = start_of(column(k));
  }

  PairFactors start_of(const PairFactors* column) const {
    PairFactors start = *column;
    for (int j = 0; j < 3; ++j) {
      unsigned __int128 left_out = 0;
      for (i64 p = pairs(); p < all_pairs; ++p) {
        const u64* c = column[1 + p].word[j];
        left_out += static_cast<unsigned __int128>(c[0]) * c[1];
      }
      start.word[j][0] += static_cast<u64>(left_out) & ((u64{1} << 52) - 1);
      start.word[j][1] += static_cast<u64>(left_out >> 52);
    }
    return start;
  }

  // Columns that are taken together.
  i64 step() const { return is_short() ? kFewColumns : kColumns; }
  bool is_short() const { return terms <= kFewTerms; }

  // The sums of a tile's digits, for which `start` is made, times `count` columns, at most step().
  RNS_IFMA_INLINE void sum(const Digits* digits, const ProductSums* start, i64 first, i64 count,
                           DigitSum* sums) const {
    if (is_short())
      sum_few(digits, first, count, sums);
    else if (count == 4)
      sum_columns<4>(digits, start, first, sums);
    else if (count == 3)
      sum_columns<3>(digits, start, first, sums);
    else if (count == 2)
      sum_columns<2>(digits, start, first, sums);
    else
      sum_columns<1>(digits, start, first, sums);
  }

  template <int kCount>
  RNS_IFMA void sum_columns(const Digits* digits, const ProductSums* start, i64 first, DigitSum* sums) const {
    const PairFactors* factors[kCount];
    for (int k = 0; k < kCount; ++k) factors[k] = column(first + k) + 1;
    for (int h = 0; h < 2; ++h) {
      ProductSums total[kCount];
#pragma GCC unroll 4
      for (int k = 0; k < kCount; ++k) {
        const PairFactors& own = starts[first + k];
        for (int j = 0; j < 3; ++j) {
          total[k].low[j] = _mm512_add_epi64(start[h].low[j], spread_at(own.word[j]));
          total[k].high[j] = _mm512_add_epi64(start[h].high[j], spread_at(own.word[j] + 1));
        }
      }
      add_products<kCount>(digits, pairs(), 8 * h, factors, total);
#pragma GCC unroll 4
      for (int k = 0; k < kCount; ++k) sums[k].half[h] = total[k];
    }
  }

  // The same with a product for each digit: what pairs take besides is more than what they save.
  RNS_IFMA void sum_few(const Digits* digits, i64 first, i64 count, DigitSum* sums) const {
    const PairFactors* factors[kFewColumns] = {column(first) + 1, column(first + count - 1) + 1};
    ProductSums total[kFewColumns][2] = {};
    for (i64 r = 0; r < terms; ++r) {
      __m512i x[2][3];
      load_factors(digits[r], 0, x[0]);
      load_factors(digits[r], 8, x[1]);
#pragma GCC unroll 12
      for (int i = 0; i < 6 * kFewColumns; ++i) {
        const int k = i / 6, j = i / 2 % 3, h = i % 2;
        const __m512i c = spread_at(factors[k][r / 2].word[j] + (r + 1) % 2);
        total[k][h].low[j] = _mm512_madd52lo_epu64(total[k][h].low[j], x[h][j], c);
        total[k][h].high[j] = _mm512_madd52hi_epu64(total[k][h].high[j], x[h][j], c);
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < 2 * kFewColumns; ++i) sums[i / 2].half[i % 2] = total[i / 2][i % 2];
  }

  // What the sums of a tile's digits start with.
  RNS_IFMA_INLINE void start(const Digits* digits, ProductSums* start) const {
    for (int h = 0; !is_short() && h < 2; ++h) start[h] = start_products(digits, pairs(), 8 * h);
  }
};

// What a column of sums hands to the next: to add to its two words.
struct Carry {
  __m512i word[2];
};

// The two words of a column, of 8 numbers.
RNS_IFMA_INLINE Carry next_digit(const Carry& carry, const ProductSums& sum, __m512i* word) {
  __m512i high[3];
  for (int j = 0; j < 3; ++j) high[j] = next_word(sum.high[j]);
  const __m512i low_middle = _mm512_sub_epi64(_mm512_sub_epi64(sum.low[2], sum.low[0]), sum.low[1]);
  const __m512i high_middle = _mm512_sub_epi64(_mm512_sub_epi64(high[2], high[0]), high[1]);
  const __m512i first = _mm512_add_epi64(sum.low[0], carry.word[0]);
  const __m512i second = _mm512_add_epi64(_mm512_add_epi64(low_middle, high[0]),
                                          _mm512_add_epi64(carry.word[1], carry_of(first)));
  word[0] = word_of(first);
  word[1] = word_of(second);
  return {{_mm512_add_epi64(_mm512_add_epi64(sum.low[1], high_middle), carry_of(second)), high[1]}};
}

// Constants of a modulus m of b bits that residues are converted from: m, w_i and floor(2^52 w_i / m), two
// words of P_k / m, 52 - b and floor(2^(50 + b) / m).
struct SourceModulus {
  u64 modulus;
  u64 inverse, inverse_quotient;
  u64 word[2];
  u64 shift, fraction;
};

constexpr int kMostWords = 5;

// Constants of a modulus m that residues are converted to: m, and for each word, 2^(50 j) modulo m and the
// quotient floor(2^52 value / m).
struct TargetModulus {
  u64 modulus;
  u64 value[kMostWords];
  u64 quotient[kMostWords];
};

using Sources = Groups<SourceModulus>;
using Targets = Groups<TargetModulus>;

// Of a tile, the term of one group, S_k = sum of u_i P_k / m_i < 2^100. The sums of u_i / m_i, in units of
// 2^-50, grow by the group's; there are fewer than 2^14 moduli, as pairwise coprime ones multiply to more
// than all groups hold.
RNS_IFMA inline void load_group(const Residues& residues, i64 first, const Sources& sources, i64 group,
                                Digits& term, WordRow& fractions) {
  const __mmask16 mask = lanes(residues.count - first);
  __m512i sum[2][3] = {};  // three for each vector, for a sum waits for the one before it
  __m512i fraction[2] = {load_words(fractions, 0), load_words(fractions, 8)};
  const u32* row = residues.row(sources.starts[group]) + first;
  // The rows of the next group are asked for early: they are too far apart for the processor to foresee.
  const i64 ahead =
      group + 1 < sources.count ? residues.stride * (sources.starts[group + 1] - sources.starts[group]) : 0;
  for (i64 i = sources.starts[group]; i < sources.starts[group + 1]; ++i, row += residues.stride) {
    const SourceModulus& s = sources.moduli[i];
    __builtin_prefetch(row + ahead);
    const __m512i word0 = spread_at(s.word), word1 = spread_at(s.word + 1);
    const __m512i x = _mm512_maskz_loadu_epi32(mask, row);
    const __m256i halves[2] = {_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1)};
    for (int h = 0; h < 2; ++h) {
      const __m512i u = multiply(_mm512_cvtepu32_epi64(halves[h]), spread_at(&s.inverse),
                                 spread_at(&s.inverse_quotient), spread_at(&s.modulus));
      sum[h][0] = _mm512_madd52lo_epu64(sum[h][0], u, word0);
      sum[h][1] = _mm512_madd52hi_epu64(sum[h][1], u, word0);
      sum[h][2] = _mm512_madd52lo_epu64(sum[h][2], u, word1);
      // Each rounding down, of the constant and here, loses less than a unit.
      const __m512i shifted = _mm512_sllv_epi64(u, spread_at(&s.shift));
      fraction[h] = _mm512_madd52hi_epu64(fraction[h], shifted, spread_at(&s.fraction));
    }
  }
  for (int h = 0; h < 2; ++h) {
    const __m512i upper = _mm512_add_epi64(next_word(sum[h][1]), sum[h][2]);
    _mm512_store_si512(term.word[0].x + 8 * h, word_of(sum[h][0]));
    _mm512_store_si512(term.word[1].x + 8 * h, _mm512_add_epi64(upper, carry_of(sum[h][0])));
    _mm512_store_si512(fractions.x + 8 * h, fraction[h]);
  }
}

// The terms of up to kTiles tiles, each in `rows` rows: of every group, and q of `start` (in units of 2^-32)
// and the fractions, whose first 32 bits are left in `fraction`. What is in further rows stays.
RNS_IFMA inline void load_terms(const Residues& residues, i64 first, const Sources& sources, u32 start,
                                i64 rows, Digits* terms, u32* fraction) {
  const i64 width = std::min(kWide * kTiles, residues.count - first);
  WordRow fractions[kTiles] = {};
  for (i64 group = 0; group < sources.count; ++group) {
    for (i64 t = 0; kWide * t < width; ++t)
      load_group(residues, first + kWide * t, sources, group, terms[t * rows + group], fractions[t]);
  }
  for (i64 t = 0; kWide * t < width; ++t) {
    Digits& q = terms[t * rows + sources.count];
    q = {};
    for (i64 j = 0; j < kWide; ++j) {
      const u64 total = (fractions[t].x[j] >> (50 - 32)) + start;
      q.word[0].x[j] = total >> 32;
      fraction[kWide * t + j] = static_cast<u32>(total);
    }
  }
}

// Residues of numbers that others are subtracted from: with the residues r that are found, and for each
// modulus a factor w beside floor(2^52 w / m), the results are (x - r) w modulo m.
struct Minuend {
  const u32* residues;
  i64 stride;
  const u64* factors;

  RNS_IFMA_INLINE void apply(i64 row, i64 first, __mmask16 mask, __m512i m, __m512i* r) const {
    const __m512i x = _mm512_maskz_loadu_epi32(mask, residues + row * stride + first);
    const __m256i halves[2] = {_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1)};
    for (int h = 0; h < 2; ++h) {
      const __m512i rest = _mm512_add_epi64(_mm512_cvtepu32_epi64(halves[h]), _mm512_sub_epi64(m, r[h]));
      r[h] = multiply(rest, spread_at(factors + 2 * row), spread_at(factors + 2 * row + 1), m);
    }
  }
};

// What becomes of the residues that are found.
struct Finish {
  const __mmask16* negative = nullptr;  // of each tile, the numbers whose residues are those of the negative
  const Minuend* minuend = nullptr;     // or what all are subtracted from
};

// The residues of a tile modulo a group's moduli, from the group's column, a sum of kWords words, the last of
// which may have 52 bits. A word of 50 bits times its factor leaves less than 5/4 m, the last one less than 2
// m (as mod_mul), so all leave less than 8 m.
template <int kWords>
RNS_IFMA inline void reduce_group(const DigitSum& sum, const Targets& targets, i64 group, i64 width,
                                  const Finish& finish, i64 tile, u32* residues, i64 stride) {
  const __mmask16 mask = lanes(width), negative = finish.negative != nullptr ? finish.negative[tile] : 0;
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  __m512i word[2][kMostWords];
  for (int h = 0; h < 2; ++h) {
    const Carry carry = next_digit({}, sum.half[h], word[h]);
    const __m512i upper = _mm512_add_epi64(carry.word[1], carry_of(carry.word[0]));
    word[h][2] = word_of(carry.word[0]);
    word[h][3] = kWords == 4 ? upper : word_of(upper);
    word[h][4] = carry_of(upper);
  }
  for (i64 i = targets.starts[group]; i < targets.starts[group + 1]; ++i) {
    const TargetModulus& target = targets.moduli[i];
    const __m512i m = spread_at(&target.modulus);
    __m512i r[2];
    for (int h = 0; h < 2; ++h) {
      __m512i q = _mm512_setzero_si512(), rest = word[h][0];
      for (int j = 0; j < kWords; ++j)
        q = _mm512_madd52hi_epu64(q, word[h][j], spread_at(target.quotient + j));
      for (int j = 1; j < kWords; ++j)
        rest = _mm512_madd52lo_epu64(rest, word[h][j], spread_at(target.value + j));
      r[h] = word_of(_mm512_sub_epi64(rest, low_product(q, m)));
      for (int shift = 2; shift >= 0; --shift) r[h] = less_if_fits(r[h], _mm512_slli_epi64(m, shift));
    }
    if (finish.minuend != nullptr) finish.minuend->apply(i, kWide * tile, mask, m, r);
    __m512i x = _mm512_permutex2var_epi32(r[0], even, r[1]);
    if (negative != 0) {
      const __m512i m32 = _mm512_set1_epi32(static_cast<i32>(target.modulus));
      x = _mm512_mask_sub_epi32(x, negative & _mm512_test_epi32_mask(x, x), m32, x);
    }
    _mm512_mask_storeu_epi32(residues + i * stride, mask, x);
  }
}

// The residues of up to kTiles tiles, each of `rows` terms at least.
RNS_IFMA inline void write_residues(const Digits* terms, i64 rows, const DigitTable& table,
                                    const Targets& targets, i64 width, const Finish& finish, u32* residues,
                                    i64 stride) {
  DigitSum sums[kColumns];
  ProductSums starts[kTiles][2];
  // The sum of the products of digits below 2^100 and constants below 2^96.
  const auto reduce = table.terms <= 64 ? reduce_group<4> : reduce_group<5>;
  for (i64 t = 0; kWide * t < width; ++t) table.start(terms + t * rows, starts[t]);
  for (i64 group = 0; group < targets.count; group += table.step()) {
    const i64 groups = std::min(table.step(), targets.count - group);
    for (i64 t = 0; kWide * t < width; ++t) {
      table.sum(terms + t * rows, starts[t], group, groups, sums);
      for (i64 k = 0; k < groups; ++k)
        reduce(sums[k], targets, group + k, width - kWide * t, finish, t, residues + kWide * t, stride);
    }
  }
}

// What a digit of X' hands to the next: its carry, and the borrow of the comparison of the highest value with
// the digits.
struct Chain {
  Carry carry[2];
  __m512i above[2];
};

RNS_IFMA inline void next_digits(Chain& chain, const DigitSum& sum, const u64* highest, Digits& digit) {
  for (int h = 0; h < 2; ++h) {
    __m512i word[2];
    chain.carry[h] = next_digit(chain.carry[h], sum.half[h], word);
    for (int j = 0; j < 2; ++j) {
      const __m512i rest = _mm512_sub_epi64(_mm512_sub_epi64(spread(highest[j]), word[j]), chain.above[h]);
      chain.above[h] = _mm512_srli_epi64(rest, 63);
      _mm512_store_si512(digit.word[j].x + 8 * h, word[j]);
    }
  }
}

// Subtracts a constant from those of 8 numbers of a tile for which `above` is 1.
RNS_IFMA inline void subtract(__m512i above, const u64* constant, i64 count, i64 half, Digits* digits) {
  const __mmask8 chosen = _mm512_test_epi64_mask(above, above);
  if (chosen == 0) return;
  __m512i borrow = _mm512_setzero_si512();
  for (i64 w = 0; w < 2 * count; ++w) {
    WordRow& row = digits[w / 2].word[w % 2];
    const __m512i rest = _mm512_sub_epi64(load_words(row, half), borrow);
    const __m512i difference = _mm512_mask_sub_epi64(rest, chosen, rest, spread(constant[w]));
    _mm512_store_si512(row.x + half, word_of(difference));
    borrow = _mm512_srli_epi64(difference, 63);
  }
}

// A number's digits where they become factors: an even number of them.
inline i64 paired(i64 digits) { return digits + digits % 2; }

// The digits of the sums of up to kTiles tiles' terms, times the columns of a table from the first on, less
// `product` where they are above `highest`; each tile has paired(digits).
RNS_IFMA inline void sum_digits(const DigitTable& table, i64 first, const Digits* terms, i64 tiles,
                                const u64* product, const u64* highest, i64 digits, Digits* result) {
  DigitSum sums[kColumns];
  Chain chains[kTiles] = {};
  ProductSums starts[kTiles][2];
  for (i64 t = 0; t < tiles; ++t) table.start(terms + t * table.rows(), starts[t]);
  for (i64 d = 0; d < digits; d += table.step()) {
    const i64 columns = std::min(table.step(), digits - d);
    for (i64 t = 0; t < tiles; ++t) {
      table.sum(terms + t * table.rows(), starts[t], first + d, columns, sums);
      for (i64 k = 0; k < columns; ++k)
        next_digits(chains[t], sums[k], highest + 2 * (d + k), result[t * paired(digits) + d + k]);
    }
  }
  for (i64 t = 0; t < tiles; ++t) {
    for (int h = 0; h < 2; ++h)
      subtract(chains[t].above[h], product, digits, 8 * h, result + t * paired(digits));
  }
}

// Residues to digits.
struct ReverseDigits {
  Residues residues;
  Sources sources;
  DigitTable table;
  const u64* product;
  const u64* highest;
  i64 digits;

  ReverseDigits(const Matrix32& array, const Vector32& starts, const Table64& factors, const Blocks64& blocks,
                const Vector64& product_words, const Vector64& highest_words)
      : residues(array),
        sources(starts, factors),
        table(blocks, sources.count + 1),
        product(product_words.data()),
        highest(highest_words.data()),
        digits(static_cast<i64>(product_words.shape(0)) / 2) {
    require(residues.moduli == sources.size(), "one row of constants for each modulus is needed");
    require(table.is_whole(), "the table must have a row a term");
    require(product_words.shape(0) % 2 == 0 && highest_words.shape(0) == product_words.shape(0) &&
                digits == table.columns,
            "the constants must have as many digits as a number");
  }

  // Those of up to kTiles tiles, in two's complement: X', less M where it is above the highest value. `terms`
  // are room for kTiles tiles of terms.
  RNS_IFMA void load(i64 first, i64 tiles, Digits* terms, Digits* result) const {
    u32 fraction[kTiles * kWide];
    load_terms(residues, first, sources, 0, table.rows(), terms, fraction);
    sum_digits(table, 0, terms, tiles, product, highest, digits, result);
  }
};

inline void check_result(const MutableResidues& result, i64 rows, i64 count) {
  require(static_cast<i64>(result.shape(0)) == rows && static_cast<i64>(result.shape(1)) == count,
          "the result must have one row for each modulus and one column for each number");
  require(count <= 1 || result.stride(1) == 1, "the result must have contiguous rows");
}

}  // namespace rns

#endif
