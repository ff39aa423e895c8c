// Remainders by an integer as residues, and quotients (x - r) / d, by digits of 100 bits, on processors that
// multiply words of 52 bits (AVX-512 IFMA): as remainder.cpp, and the limbs stay in the cache.
//
// With the terms S_k and q of digit_tiles.hpp, R' = sum of S_k |M / P_k| + q |-M|, taken modulo d each, is
// congruent to X modulo d. Two columns of the table hold floor(2^200 r / d) for each of these factors r: the
// sum of their products with the t terms, times 2^-200, falls short of R' / d by less than t 2^-100, so that
// its floor is k = floor(R' / d) or one less, and R' minus d times it is below 2 d. The two digits of k are
// terms too, whose factors are -d and -2^100 d modulo the power of 2^100 that the digits of the result have.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "bindings.hpp"
#include "digit_tiles.hpp"

namespace rns {

#ifdef RNS_X86_LEVELS

namespace {

constexpr i64 kFractions = 2;

struct Remainders {
  Residues residues;  // of as few moduli as determine the numbers
  Residues minuends;  // of all
  Sources sources;
  DigitTable table;
  DigitTable fractions;  // the first columns of the table, without k's terms
  u32 start;
  u32 ambiguous_below;
  const u64* divisor;
  const u64* highest;  // d - 1
  i64 digits;
  DigitTable back;
  Targets targets;
  const u64* factors;  // by which quotients are exact, or null

  // The digits of k of a tile, the last two of its terms.
  RNS_IFMA void find_k(Digits* terms) const {
    DigitSum sums[kColumns];
    ProductSums start[2];
    fractions.start(terms, start);
    fractions.sum(terms, start, 0, kFractions, sums);
    Digits* k = terms + sources.count + 1;
    for (int h = 0; h < 2; ++h) {
      __m512i fraction[2];
      Carry carry = {};
      for (int i = 0; i < kFractions; ++i) carry = next_digit(carry, sums[i].half[h], fraction);
      const __m512i second = _mm512_add_epi64(carry.word[1], carry_of(carry.word[0]));
      _mm512_store_si512(k[0].word[0].x + 8 * h, word_of(carry.word[0]));
      _mm512_store_si512(k[0].word[1].x + 8 * h, word_of(second));
      _mm512_store_si512(k[1].word[0].x + 8 * h, carry_of(second));
      _mm512_store_si512(k[1].word[1].x + 8 * h, _mm512_setzero_si512());
    }
  }

  // The residues of remainders, or with factors, those of the quotients.
  RNS_IFMA void find(u32* result, i64 stride, u8* ambiguous) const {
    std::vector<Digits> terms(kTiles * table.rows()), found(kTiles * paired(digits));
    u32 fraction[kTiles * kWide];
    for (i64 first = 0; first < residues.count; first += kTiles * kWide) {
      const i64 width = std::min(kTiles * kWide, residues.count - first), tiles = (width + kWide - 1) / kWide;
      load_terms(residues, first, sources, start, table.rows(), terms.data(), fraction);
      for (i64 j = 0; j < width; ++j) ambiguous[first + j] = fraction[j] < ambiguous_below;
      for (i64 t = 0; t < tiles; ++t) find_k(terms.data() + t * table.rows());
      sum_digits(table, kFractions, terms.data(), tiles, divisor, highest, digits, found.data());
      const Minuend minuend = {minuends.data + first, minuends.stride, factors};
      write_residues(found.data(), paired(digits), back, targets, width,
                     Finish{nullptr, factors != nullptr ? &minuend : nullptr}, result + first, stride);
    }
  }
};

void remainders_by_digits(const Matrix32& array, const Matrix32& all, const Vector32& starts,
                          const Table64& factors, const Blocks64& table, u32 start, u32 ambiguous_below,
                          const Vector64& divisor, const Vector64& highest, const Blocks64& back,
                          const Vector32& target_starts, const Table64& target_factors,
                          const std::optional<Table64>& quotient_factors, MutableResidues result,
                          Vector8 ambiguous) {
  const Sources sources(starts, factors);
  const i64 digits = static_cast<i64>(divisor.shape(0)) / 2;
  const Remainders remainders = {
      Residues(array), Residues(all), sources, DigitTable(table, sources.count + 3),
      DigitTable(table, sources.count + 1), start, ambiguous_below, divisor.data(), highest.data(), digits,
      // The digits have room for 2 d, but d may take a row less.
      DigitTable(back, std::min(digits, DigitTable::rows_of(back))), Targets(target_starts, target_factors),
      quotient_factors ? quotient_factors->data() : nullptr};
  require(remainders.residues.moduli == remainders.sources.size() && remainders.table.is_whole(),
          "one row of constants for each modulus and each term is needed");
  require(divisor.shape(0) % 2 == 0 && highest.shape(0) == divisor.shape(0) && digits >= 1 &&
              digits == remainders.table.columns - kFractions && digits <= remainders.back.rows() + 1,
          "the constants must have the digits of two divisors");
  require(remainders.targets.count == remainders.back.columns, "a group has a column");
  require(ambiguous.shape(0) == array.shape(1), "one flag for each number is needed");
  require(
      remainders.minuends.moduli == remainders.targets.size() && all.shape(1) == array.shape(1) &&
          (!quotient_factors || (static_cast<i64>(quotient_factors->shape(0)) == remainders.targets.size() &&
                                 quotient_factors->shape(1) == 2)),
      "one row of residues and of factors for each modulus is needed");
  check_result(result, remainders.targets.size(), remainders.residues.count);
  nb::gil_scoped_release release;
  remainders.find(result.data(), result.stride(0), ambiguous.data());
}

}  // namespace

void bind_digit_remainder(nb::module_& module) {
  module.def("remainders_by_digits", remainders_by_digits, nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg().none(), nb::arg(), nb::arg());
}

#else

void bind_digit_remainder(nb::module_&) {}

#endif

}  // namespace rns
