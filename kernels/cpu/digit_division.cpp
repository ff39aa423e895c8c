// Division of numbers by numbers, all as residues, on processors that multiply words of 52 bits (AVX-512
// IFMA): a tile of 16 at a time, from residues to digits, divided in digits of 52 bits, and back, in the
// cache.
//
// The floor of magnitudes by Algorithm D of D. E. Knuth, "The Art of Computer Programming", vol. 2, 4.3.1. A
// digit is estimated from three by two: Algorithm 4 of N. Moller and T. Granlund, "Improved division by
// invariant integers", IEEE Trans. Computers 60(2), 2011. It is right or one too great.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "digit_tiles.hpp"
#include "long_division.hpp"

namespace rns {

#ifdef RNS_X86_LEVELS

namespace {

constexpr int kDigitBits = 52;
constexpr u64 kDigitMask = (u64{1} << kDigitBits) - 1;

using Rows = std::vector<WordRow>;

RNS_IFMA_INLINE void store_words(WordRow& row, i64 half, __m512i x) { _mm512_store_si512(row.x + half, x); }
RNS_IFMA_INLINE __m512i digit_of(__m512i x) { return _mm512_and_si512(x, spread(kDigitMask)); }
RNS_IFMA_INLINE __m512i digit_carry(__m512i x) { return _mm512_srai_epi64(x, kDigitBits); }
RNS_IFMA_INLINE __m512i shifted_right(__m512i x, i64 bits) {
  return _mm512_srl_epi64(x, _mm_cvtsi64_si128(bits));
}
RNS_IFMA_INLINE __m512i shifted_left(__m512i x, i64 bits) {
  return _mm512_sll_epi64(x, _mm_cvtsi64_si128(bits));
}
RNS_IFMA_INLINE __mmask8 mask_of(__mmask16 lanes, int h) { return static_cast<__mmask8>(lanes >> 8 * h); }
RNS_IFMA_INLINE __mmask16 nonzero(const WordRow& row) {
  const __m512i low = load_words(row, 0), high = load_words(row, 8);
  return static_cast<__mmask16>(_mm512_test_epi64_mask(low, low) | _mm512_test_epi64_mask(high, high) << 8);
}

inline WordRow& word(Digits* number, i64 w) { return number[w / 2].word[w % 2]; }

// ---- words of 50 bits and digits of 52
// ---------------------------------------------------------------------

// Replaces negative numbers in two's complement by their magnitudes; returns which these are.
RNS_IFMA __mmask16 make_positive(Digits* number, i64 digits) {
  __mmask16 negative = 0;
  for (i64 j = 0; j < kWide; ++j)
    negative |= static_cast<__mmask16>(word(number, 2 * digits - 1).x[j] >> (kWordBits - 1) << j);
  for (int h = 0; negative != 0 && h < 2; ++h) {
    const __mmask8 mask = mask_of(negative, h);
    __m512i carry = _mm512_maskz_set1_epi64(mask, 1);
    for (i64 w = 0; w < 2 * digits; ++w) {
      const __m512i x = load_words(word(number, w), 8 * h);
      const __m512i sum = _mm512_add_epi64(_mm512_mask_xor_epi64(x, mask, x, spread(kWordMask)), carry);
      store_words(word(number, w), 8 * h, word_of(sum));
      carry = carry_of(sum);
    }
  }
  return negative;
}

// Into rows that hold them; returns how many rows are used.
RNS_IFMA i64 words_to_digits(Digits* number, i64 digits, WordRow* rows) {
  i64 used = 0;
  for (i64 d = 0; kDigitBits * d < 2 * kWordBits * digits; ++d) {
    const i64 w = kDigitBits * d / kWordBits, shift = kDigitBits * d % kWordBits;
    for (int h = 0; h < 2; ++h) {
      __m512i x = shifted_right(load_words(word(number, w), 8 * h), shift);
      if (w + 1 < 2 * digits)
        x = _mm512_or_si512(x, shifted_left(load_words(word(number, w + 1), 8 * h), kWordBits - shift));
      store_words(rows[d], 8 * h, digit_of(x));
    }
    if (nonzero(rows[d]) != 0) used = d + 1;
  }
  return used;
}

// Of `count` rows; returns how many digits of 100 bits are written: those that are not 0.
RNS_IFMA i64 digits_to_words(const WordRow* rows, i64 count, Digits* number) {
  while (count > 0 && nonzero(rows[count - 1]) == 0) --count;
  const i64 digits = (kDigitBits * count + 2 * kWordBits - 1) / (2 * kWordBits);
  i64 used = 0;
  for (i64 w = 0; w < 2 * digits; ++w) {
    const i64 d = kWordBits * w / kDigitBits, shift = kWordBits * w % kDigitBits;
    for (int h = 0; h < 2; ++h) {
      __m512i x = d < count ? shifted_right(load_words(rows[d], 8 * h), shift) : _mm512_setzero_si512();
      if (d + 1 < count)
        x = _mm512_or_si512(x, shifted_left(load_words(rows[d + 1], 8 * h), kDigitBits - shift));
      store_words(word(number, w), 8 * h, word_of(x));
    }
    if (nonzero(word(number, w)) != 0) used = w / 2 + 1;
  }
  return used;
}

// ---- division of magnitudes
// --------------------------------------------------------------------------------

// Divisors of `count` digits, at least two, scaled by 2^(52 whole + part) each so that the highest bit of the
// highest digit is set; and floor((2^156 - 1) / (d1 2^52 + d0)) - 2^52 of the leading two.
struct Divisors {
  Rows digits;
  i64 count, most_whole;
  WordRow whole, part, reciprocal;
  __mmask16 is_zero;
};

// x times the scale of each number, in `count` rows.
RNS_IFMA void scale(const Divisors& by, const WordRow* x, i64 x_count, WordRow* rows, i64 count) {
  for (i64 i = 0; i < count; ++i) {
    rows[i] = by.most_whole == 0 && i < x_count ? x[i] : WordRow{};
    for (i64 j = 0; by.most_whole != 0 && j < kWide; ++j) {
      const i64 from = i - static_cast<i64>(by.whole.x[j]);
      if (from >= 0 && from < x_count) rows[i].x[j] = x[from].x[j];
    }
  }
  for (int h = 0; h < 2; ++h) {
    const __m512i part = load_words(by.part, 8 * h), rest = _mm512_sub_epi64(spread(kDigitBits), part);
    for (i64 i = count - 1; i >= 0; --i) {
      __m512i x = _mm512_sllv_epi64(load_words(rows[i], 8 * h), part);
      if (i > 0) x = _mm512_or_si512(x, _mm512_srlv_epi64(load_words(rows[i - 1], 8 * h), rest));
      store_words(rows[i], 8 * h, digit_of(x));
    }
  }
}

// The reverse, in place.
RNS_IFMA void scale_back(const Divisors& by, WordRow* rows, i64 count) {
  for (int h = 0; h < 2; ++h) {
    const __m512i part = load_words(by.part, 8 * h), rest = _mm512_sub_epi64(spread(kDigitBits), part);
    for (i64 i = 0; i < count; ++i) {
      __m512i x = _mm512_srlv_epi64(load_words(rows[i], 8 * h), part);
      if (i + 1 < count) x = _mm512_or_si512(x, _mm512_sllv_epi64(load_words(rows[i + 1], 8 * h), rest));
      store_words(rows[i], 8 * h, digit_of(x));
    }
  }
  for (i64 i = 0; by.most_whole != 0 && i < count; ++i) {
    for (i64 j = 0; j < kWide; ++j) {
      const i64 from = i + static_cast<i64>(by.whole.x[j]);
      rows[i].x[j] = from < count ? rows[from].x[j] : 0;
    }
  }
}

// Of `count` rows of magnitudes, which may be changed; there are two at least. One stands for 0.
void load_divisors(WordRow* magnitudes, i64 count, Divisors& by) {
  by.count = std::max<i64>(2, count);
  if (count < 2) magnitudes[1] = {};
  if (count < 1) magnitudes[0] = {};
  by.most_whole = 0;
  by.is_zero = 0;
  for (i64 j = 0; j < kWide; ++j) {
    i64 top = by.count - 1;
    while (top > 0 && magnitudes[top].x[j] == 0) --top;
    u64& leading = magnitudes[top].x[j];
    if (leading == 0) {
      by.is_zero |= static_cast<__mmask16>(1 << j);
      leading = 1;
    }
    by.whole.x[j] = static_cast<u64>(by.count - 1 - top);
    by.part.x[j] = static_cast<u64>(__builtin_clzll(leading) - (64 - kDigitBits));
    by.most_whole = std::max(by.most_whole, by.count - 1 - top);
  }
  by.digits.resize(by.count);
  scale(by, magnitudes, by.count, by.digits.data(), by.count);
  const WordRow &d1 = by.digits[by.count - 1], &d0 = by.digits[by.count - 2];
  for (i64 j = 0; j < kWide; ++j) {
    // floor((2^192 - 1) / (2^24 d)) - 2^64 without its lower 12 bits.
    const LeadingWords leading(d1.x[j] << 12 | d0.x[j] >> 40, d0.x[j] << 24);
    by.reciprocal.x[j] = leading.reciprocal >> 12;
  }
}

// The floor of three digits of 8 numbers by the leading two of the divisors, or the greatest digit if it is
// more.
RNS_IFMA_INLINE __m512i estimate_digit(const Divisors& by, const WordRow* x, i64 half) {
  const __m512i d1 = load_words(by.digits[by.count - 1], half),
                d0 = load_words(by.digits[by.count - 2], half);
  const __m512i x2 = load_words(x[0], half), x1 = load_words(x[-1], half), x0 = load_words(x[-2], half);
  const __m512i one = spread(1), reciprocal = load_words(by.reciprocal, half);
  const __mmask8 is_most =
      _mm512_cmpgt_epu64_mask(x2, d1) | (_mm512_cmpeq_epu64_mask(x2, d1) & _mm512_cmpge_epu64_mask(x1, d0));
  const __m512i low = _mm512_madd52lo_epu64(x1, reciprocal, x2);
  const __m512i high = digit_of(
      _mm512_add_epi64(_mm512_madd52hi_epu64(x2, reciprocal, x2), _mm512_srli_epi64(low, kDigitBits)));
  // The rest by one more than that, modulo 2^104.
  __m512i r0 = _mm512_sub_epi64(_mm512_sub_epi64(x0, d0), low_product(high, d0));
  const __m512i t1 = _mm512_madd52hi_epu64(low_product(high, d1), high, d0);
  __m512i r1 = digit_of(_mm512_add_epi64(_mm512_sub_epi64(_mm512_sub_epi64(x1, d1), t1), digit_carry(r0)));
  r0 = digit_of(r0);
  const __mmask8 is_less = _mm512_cmpge_epu64_mask(r1, digit_of(low));
  __m512i digit = _mm512_mask_add_epi64(high, static_cast<__mmask8>(~is_less), high, one);
  r0 = _mm512_mask_add_epi64(r0, is_less, r0, d0);
  r1 = _mm512_mask_add_epi64(r1, is_less, r1, d1);
  r1 = digit_of(_mm512_add_epi64(r1, _mm512_srli_epi64(r0, kDigitBits)));
  r0 = digit_of(r0);
  const __mmask8 is_more =
      _mm512_cmpgt_epu64_mask(r1, d1) | (_mm512_cmpeq_epu64_mask(r1, d1) & _mm512_cmpge_epu64_mask(r0, d0));
  digit = digit_of(_mm512_mask_add_epi64(digit, is_more, digit, one));
  return _mm512_mask_mov_epi64(digit, is_most, spread(kDigitMask));
}

// x -= q d, over the digits of d from `begin` on and one above; returns where that is negative, modulo
// 2^(52 (digits + 1)).
RNS_IFMA_INLINE __mmask16 subtract_multiple(WordRow* x, const Divisors& by, i64 begin, const __m512i* q) {
  __m512i high[2] = {}, carry[2] = {};
  for (i64 i = begin; i < by.count; ++i) {
    for (int h = 0; h < 2; ++h) {
      const __m512i d = load_words(by.digits[i], 8 * h);
      const __m512i low = _mm512_madd52lo_epu64(high[h], q[h], d);
      high[h] = _mm512_madd52hi_epu64(_mm512_setzero_si512(), q[h], d);
      const __m512i rest = _mm512_add_epi64(_mm512_sub_epi64(load_words(x[i], 8 * h), low), carry[h]);
      store_words(x[i], 8 * h, digit_of(rest));
      carry[h] = digit_carry(rest);
    }
  }
  __mmask8 is_over[2];
  for (int h = 0; h < 2; ++h) {
    const __m512i top = load_words(x[by.count], 8 * h);
    is_over[h] = _mm512_movepi64_mask(_mm512_add_epi64(_mm512_sub_epi64(top, high[h]), carry[h]));
  }
  return static_cast<__mmask16>(is_over[0] | is_over[1] << 8);
}

// Adds the divisors of some numbers, without the last carry.
RNS_IFMA void add_divisors(WordRow* x, const Divisors& by, __mmask16 chosen) {
  for (int h = 0; h < 2; ++h) {
    __m512i carry = _mm512_setzero_si512();
    for (i64 i = 0; i < by.count; ++i) {
      const __m512i d = _mm512_maskz_mov_epi64(mask_of(chosen, h), load_words(by.digits[i], 8 * h));
      const __m512i sum = _mm512_add_epi64(_mm512_add_epi64(load_words(x[i], 8 * h), d), carry);
      store_words(x[i], 8 * h, digit_of(sum));
      carry = digit_carry(sum);
    }
  }
}

// Quotients of numbers that had `x_count` digits before they were scaled to `count`, of which those above the
// divisors' are the quotients'. What is left in `x` are the remainders, still scaled.
RNS_IFMA void divide_magnitudes(const Divisors& by, i64 x_count, WordRow* x, i64 count, WordRow* quotients) {
  for (i64 i = count - by.count - 1; i >= 0; --i) {
    __m512i q[2];
    for (int h = 0; h < 2; ++h) q[h] = estimate_digit(by, x + i + by.count, 8 * h);
    // A number that still has digits here was scaled by so many, as were the zeros of its divisor.
    const i64 begin = std::max<i64>(0, i + by.count - 1 - x_count);
    const __mmask16 is_over = subtract_multiple(x + i, by, begin, q);
    if (__builtin_expect(is_over != 0, 0)) {
      add_divisors(x + i, by, is_over);
      for (int h = 0; h < 2; ++h) q[h] = _mm512_mask_sub_epi64(q[h], mask_of(is_over, h), q[h], spread(1));
    }
    for (int h = 0; h < 2; ++h) store_words(quotients[i], 8 * h, q[h]);
    x[i + by.count] = {};
  }
}

// From quotients and remainders of magnitudes to those of numbers whose signs differ: these are one further
// from 0, and divisors less remainders, unless nothing is left.
RNS_IFMA void round_away(const Divisors& by, __mmask16 differ, WordRow* rest, WordRow* quotients, i64 count) {
  __mmask16 some = 0;
  for (i64 i = 0; i < by.count; ++i) some |= nonzero(rest[i]);
  for (int h = 0; h < 2; ++h) {
    const __mmask8 away = mask_of(differ & some, h);
    __m512i carry = _mm512_setzero_si512();
    for (i64 i = 0; i < by.count; ++i) {
      const __m512i x = load_words(rest[i], 8 * h), d = load_words(by.digits[i], 8 * h);
      const __m512i left = _mm512_add_epi64(_mm512_sub_epi64(d, x), carry);
      store_words(rest[i], 8 * h, _mm512_mask_mov_epi64(x, away, digit_of(left)));
      carry = digit_carry(left);
    }
    carry = _mm512_maskz_set1_epi64(away, 1);
    for (i64 i = 0; i < count; ++i) {
      const __m512i sum = _mm512_add_epi64(load_words(quotients[i], 8 * h), carry);
      store_words(quotients[i], 8 * h, digit_of(sum));
      carry = digit_carry(sum);
    }
  }
}

// ---- of residues
// -------------------------------------------------------------------------------------------

// Where residues of a part go, or nowhere.
struct Part {
  u32* residues = nullptr;
  i64 stride = 0;

  Part() = default;
  Part(const std::optional<MutableResidues>& array, i64 rows, i64 count) {
    if (!array) return;
    check_result(*array, rows, count);
    residues = array->data();
    stride = array->stride(0);
  }
};

// Digits of one part of the results of some tiles, before they become residues.
struct Results {
  DigitTable table;
  std::vector<Digits> terms;
  i64 used = 0;
  __mmask16 negative[kTiles] = {};

  // One digit more, for zeros that a tile leaves after its last one, where that of the next follows.
  explicit Results(const DigitTable& back) : table(back), terms(kTiles * back.rows() + 1) {}

  void clear() {
    used = 0;
    std::fill(terms.begin(), terms.end(), Digits{});
  }
  RNS_IFMA void take(i64 tile, const WordRow* digits, i64 count, __mmask16 sign) {
    used = std::max(used, digits_to_words(digits, count, terms.data() + tile * table.rows()));
    negative[tile] = sign;
  }
};

struct Division {
  ReverseDigits x, y;
  bool is_signed;
  DigitTable table;
  Targets targets;
  Part quotient, remainder;

  // A row more than numbers have, for carries.
  static i64 rows_for(i64 digits) { return 2 * digits + 1; }

  // The first number whose divisor is 0, and the first whose quotient, where these are wanted, is above the
  // highest value; or -1.
  RNS_IFMA std::pair<i64, i64> divide() {
    const i64 count = x.residues.count;
    std::vector<Digits> terms(kTiles * std::max(x.table.rows(), y.table.rows()));
    std::vector<Digits> dividends(kTiles * paired(x.digits)), divisors(kTiles * paired(y.digits));
    for (i64 first = 0; first < count; first += kTiles * kWide) {
      const i64 width = std::min(kTiles * kWide, count - first), tiles = (width + kWide - 1) / kWide;
      x.load(first, tiles, terms.data(), dividends.data());
      y.load(first, tiles, terms.data(), divisors.data());
      if (quotient.residues != nullptr) quotients_.clear();
      if (remainder.residues != nullptr) remainders_.clear();
      for (i64 t = 0; t < tiles; ++t)
        divide_tile(t, first + kWide * t, dividends.data() + t * paired(x.digits),
                    divisors.data() + t * paired(y.digits));
      write(quotients_, quotient, first, width);
      write(remainders_, remainder, first, width);
    }
    return {zero_, outside_};
  }

  RNS_IFMA void divide_tile(i64 tile, i64 first, Digits* dividends, Digits* divisors) {
    const __mmask16 used = lanes(x.residues.count - first);
    const __mmask16 x_negative = is_signed ? make_positive(dividends, x.digits) : 0;
    const __mmask16 y_negative = is_signed ? make_positive(divisors, y.digits) : 0;
    load_divisors(magnitudes_.data(), words_to_digits(divisors, y.digits, magnitudes_.data()), by_);
    note(by_.is_zero & used, first, zero_);
    const i64 x_count = words_to_digits(dividends, x.digits, magnitudes_.data());
    const i64 rows = std::max(by_.count, x_count + by_.most_whole) + 1;
    // One more than quotients of magnitudes have, for what becomes a power of 2^52 one further from 0.
    const i64 q_rows = rows - by_.count + 1;
    rest_.resize(rows);
    digits_.resize(q_rows);
    digits_[q_rows - 1] = {};
    scale(by_, magnitudes_.data(), x_count, rest_.data(), rows);
    divide_magnitudes(by_, x_count, rest_.data(), rows, digits_.data());
    const __mmask16 differ = x_negative ^ y_negative;
    if (differ != 0) round_away(by_, differ, rest_.data(), digits_.data(), q_rows);
    if (quotient.residues != nullptr) {
      quotients_.take(tile, digits_.data(), q_rows, differ);
      if (is_signed) note(beyond(tile) & ~differ & used, first, outside_);
    }
    if (remainder.residues == nullptr) return;
    scale_back(by_, rest_.data(), by_.count);
    remainders_.take(tile, rest_.data(), by_.count, y_negative);
  }

  // The numbers whose quotient's magnitude is above the highest value.
  __mmask16 beyond(i64 tile) const {
    const Digits* q = quotients_.terms.data() + tile * table.rows();
    __mmask16 found = 0;
    for (i64 j = 0; j < kWide; ++j) {
      i64 w = 2 * x.digits - 1;
      const auto at = [&](i64 i) { return i < 2 * table.rows() ? q[i / 2].word[i % 2].x[j] : 0; };
      while (w > 0 && at(w) == x.highest[w]) --w;
      if (at(w) > x.highest[w]) found |= static_cast<__mmask16>(1 << j);
    }
    return found;
  }

  static void note(__mmask16 found, i64 first, i64& index) {
    if (found != 0 && index < 0) index = first + __builtin_ctz(found);
  }

  void write(Results& results, const Part& part, i64 first, i64 width) const {
    if (part.residues == nullptr) return;
    results.table.use(results.used);
    write_residues(results.terms.data(), table.rows(), results.table, targets, width,
                   Finish{results.negative}, part.residues + first, part.stride);
  }

  Divisors by_ = {};
  Rows magnitudes_ = Rows(rows_for(std::max(x.digits, y.digits))), rest_ = {}, digits_ = {};
  Results quotients_ = Results(table), remainders_ = Results(table);
  i64 zero_ = -1, outside_ = -1;
};

// The arguments of ReverseDigits but for the residues.
using ReverseArguments = std::tuple<Vector32, Table64, Blocks64, Vector64, Vector64>;

ReverseDigits reverse_of(const Matrix32& array, const ReverseArguments& arguments) {
  const auto& [starts, factors, table, product, highest] = arguments;
  return {array, starts, factors, table, product, highest};
}

std::pair<i64, i64> divide_by_digits(const Matrix32& x, const ReverseArguments& x_constants,
                                     const Matrix32& y, const ReverseArguments& y_constants, bool is_signed,
                                     const Blocks64& table, const Vector32& starts, const Table64& factors,
                                     const std::optional<MutableResidues>& quotient,
                                     const std::optional<MutableResidues>& remainder) {
  const i64 rows = static_cast<i64>(factors.shape(0)), count = static_cast<i64>(x.shape(1));
  Division division = {reverse_of(x, x_constants),
                       reverse_of(y, y_constants),
                       is_signed,
                       DigitTable(table, DigitTable::rows_of(table)),
                       Targets(starts, factors),
                       Part(quotient, rows, count),
                       Part(remainder, rows, count)};
  require(division.y.residues.count == count, "there must be a divisor for each number");
  require(division.targets.count == division.table.columns, "a group has a column");
  require(division.table.rows() + 1 >= std::max(division.x.digits, division.y.digits),
          "the table must have a row a digit");
  nb::gil_scoped_release release;
  return division.divide();
}

}  // namespace

void bind_digit_division(nb::module_& module) {
  module.def("divide_by_digits", divide_by_digits, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none());
}

#else

void bind_digit_division(nb::module_&) {}

#endif

}  // namespace rns
