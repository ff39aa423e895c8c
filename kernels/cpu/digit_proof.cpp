// Proof of a bound by digits of 100 bits, for processors that multiply words of 52 bits (AVX-512 IFMA): which
// numbers are those that the first moduli give, and within the bound (docs/mathematics.md, "Proof of a
// bound"). Nothing is written but one flag a number.
#include <algorithm>
#include <vector>

#include "bindings.hpp"
#include "digits.hpp"

namespace rns {

#ifdef RNS_X86_LEVELS

namespace {

constexpr int kFractionBits = 45;
constexpr i64 kProofTiles = 32;  // tiles taken together, so that each row is read in pieces of 2 KiB
// So many residues on, rows are asked for: of rows a power of 2 apart, which share few places of the cache,
// no more would stay there.
constexpr i64 kAhead = 256;
constexpr int kMostGroups = 2;  // of targets taken together: registers hold no more sums of a tile

// A row of a tile's 16 numbers is one vector of 32-bit residues: the even numbers' words, then the odd ones'.
constexpr int kHalves = 2;

// Constants of one of the first moduli, m: floor(2^52 w / m), two words of w P_k / m.
struct ProofSource {
  u64 quotient;
  u64 word[2];
};

// Constants of a group of these, of b bits: 2^52 less the lower word of P_k, and 2^52 - 4 less the upper one,
// together -P_k; 50 + e and |e| of e = 47 - b, which shift S_k below 2^52, whether e is positive, and
// floor(2^(97 - e) / P_k).
struct ProofGroup {
  u64 negative[2];
  u64 upper_shift, lower_shift, is_left;
  u64 fraction;
};

// Two words of P / m, of one of the other moduli.
struct ProofTarget {
  u64 word[2];
};

// Constants of a group of these: 1 / P and -1 / P modulo 2^50, 4 times the lower word of P and the upper one,
// two words each of the number that its sums start with, 2^50 - 1 more, and of the factor of the quotient.
struct TargetGroup {
  u64 inverse, negative_inverse;
  u64 four_lower, upper;
  u64 start[2];
  u64 last[2];
};

// What the residues of a group of targets give, for each number of a tile: two words, not reduced.
struct TargetSum {
  WordRow word[2];
};

RNS_IFMA_INLINE __m512i low_sum(__m512i sum, __m512i a, __m512i b) {
  return _mm512_madd52lo_epu64(sum, a, b);
}
RNS_IFMA_INLINE __m512i high_sum(__m512i sum, __m512i a, __m512i b) {
  return _mm512_madd52hi_epu64(sum, a, b);
}
RNS_IFMA_INLINE __m512i high_product(__m512i a, __m512i b) { return high_sum(_mm512_setzero_si512(), a, b); }
RNS_IFMA_INLINE __m512i add(__m512i a, __m512i b) { return _mm512_add_epi64(a, b); }
RNS_IFMA_INLINE __m512i subtract(__m512i a, __m512i b) { return _mm512_sub_epi64(a, b); }
RNS_IFMA_INLINE __m512i lowest_bits(__m512i x, int bits) {
  return _mm512_and_si512(x, spread((u64{1} << bits) - 1));
}
RNS_IFMA_INLINE void store_words(WordRow& row, int half, __m512i words) {
  _mm512_store_si512(row.x + 8 * half, words);
}
RNS_IFMA_INLINE __m512i half_of(const WordRow& row, int half) { return load_words(row, 8 * half); }

// In a register: where one vector is loaded a cycle, to load all again would take more of them than the
// products.
RNS_IFMA_INLINE __m512i held(__m512i x) {
  asm("" : "+v"(x));
  return x;
}

// The term of a group: its two words and their sum.
struct Term {
  WordRow word[3];
};

// Adds S_k / P_k in units of 2^-45, less than three units too low.
RNS_IFMA_INLINE __m512i add_fraction(__m512i sum, __m512i lower, __m512i upper, const ProofGroup& group) {
  const __m128i by = _mm_cvtsi64_si128(static_cast<i64>(group.lower_shift));
  const __m512i low = group.is_left ? _mm512_sll_epi64(lower, by) : _mm512_srl_epi64(lower, by);
  const __m512i high = _mm512_sll_epi64(upper, _mm_cvtsi64_si128(static_cast<i64>(group.upper_shift)));
  return high_sum(sum, add(low, high), spread(group.fraction));
}

// Of 8 sums z[0] + 2^50 z[1] + 2^100 z[2] + ..., what is not 0 where P does not divide them: two steps of
// Montgomery's reduction leave v, and v / P is below 2^7 just when P divides v. To z[0] and z[1], 2^50 - 1 is
// added, so that the carry is that of z[0] + t P, whose lowest word is 0. Units of high[j] are 2^(50 j + 2).
RNS_IFMA_INLINE __m512i remainder_of(__m512i* z, __m512i* high, const TargetGroup& group, __m512i before) {
  const __m512i inverse = spread_at(&group.inverse), negative = spread_at(&group.negative_inverse);
  const __m512i p0 = spread_at(&group.four_lower), p1 = spread_at(&group.upper);
#pragma GCC unroll 2
  for (int j = 0; j < 2; ++j) {
    const __m512i t = word_of(low_sum(negative, z[j], negative));
    z[j + 1] = low_sum(high_sum(add(z[j + 1], carry_of(z[j])), t, p0), t, p1);
    high[j + 2] = high_sum(high[j + 2], t, p1);
    z[j + 2] = add(z[j + 2], next_word(high[j + 2]));
  }
  const __m512i t = word_of(low_product(z[2], inverse));
  const __m512i upper = add(z[3], carry_of(z[2]));
  const __m512i rest = subtract(subtract(upper, high_product(t, p0)), _mm512_mullo_epi64(t, p1));
  constexpr int kAnyOfThree = 0xFE;
  return _mm512_ternarylogic_epi64(before, rest, _mm512_srli_epi64(t, 7), kAnyOfThree);
}

struct BoundProof {
  Residues residues;
  Groups<ProofSource> sources;
  const ProofGroup* groups;
  const PairFactors* table;  // of each target group and each pair of terms
  Groups<ProofTarget> targets;
  const TargetGroup* target_groups;
  u64 lowest;  // of the fractions that numbers within the bound have
  u64 room;    // of these, above the lowest

  // Terms are taken in pairs; the last is 0 if there is none for it.
  i64 pairs() const { return (sources.count + 1) / 2; }

  // The residues of a tile modulo one m, those of the even numbers and those of the odd ones. The turns of
  // tiles and rows go up by 1.
  RNS_IFMA_INLINE void load_residues(const u32* row, __mmask16 mask, i64 turn, __m512i* x) const {
    bring_near(row + kAhead, turn);
    const __m512i both = _mm512_maskz_loadu_epi32(mask, row);
    x[0] = lowest_bits(both, 32);
    x[1] = _mm512_srli_epi64(both, 32);
  }

  // The term of one group for a tile, and its part of the fractions: the sum of u_i P_k / m_i, of
  // u_i = x_i w_i - q_i m_i < 2 m_i.
  RNS_IFMA void load_group(i64 first, i64 k, Term& term, WordRow& fractions) const {
    const __mmask16 mask = lanes(residues.count - first);
    __m512i low[kHalves] = {}, high[kHalves] = {}, next[kHalves] = {}, q[kHalves] = {};
    const u32* row = residues.row(sources.starts[k]) + first;
    for (i64 i = sources.starts[k]; i < sources.starts[k + 1]; ++i, row += residues.stride) {
      const ProofSource& s = sources.moduli[i];
      __m512i x[kHalves];
      load_residues(row, mask, first / kWide + i, x);
#pragma GCC unroll 2
      for (int h = 0; h < kHalves; ++h) {
        q[h] = high_sum(q[h], x[h], spread_at(&s.quotient));
        low[h] = low_sum(low[h], x[h], spread_at(s.word));
        high[h] = high_sum(high[h], x[h], spread_at(s.word));
        next[h] = low_sum(next[h], x[h], spread_at(s.word + 1));
      }
    }
    const ProofGroup& group = groups[k];
    const __m512i n0 = spread(group.negative[0]), n1 = spread(group.negative[1]);
    for (int h = 0; h < kHalves; ++h) {
      const __m512i z = low_sum(low[h], q[h], n0);
      const __m512i above = add(next_word(high_sum(high[h], q[h], n0)), low_sum(next[h], q[h], n1));
      const __m512i lower = word_of(z), upper = word_of(add(above, carry_of(z)));
      store_words(term.word[0], h, lower);
      store_words(term.word[1], h, upper);
      store_words(term.word[2], h, add(lower, upper));
      store_words(fractions, h, add_fraction(half_of(fractions, h), lower, upper, group));
    }
  }

  // What the residues of one group of targets give a tile's sums.
  RNS_IFMA void load_target(i64 first, i64 k, TargetSum& sum) const {
    const __mmask16 mask = lanes(residues.count - first);
    const TargetGroup& group = target_groups[k];
    __m512i low[kHalves], high[kHalves] = {}, next[kHalves];
    for (int h = 0; h < kHalves; ++h) {
      low[h] = spread(group.start[0]);
      next[h] = spread(group.start[1]);
    }
    const u32* row = residues.row(sources.size() + targets.starts[k]) + first;
    for (i64 i = targets.starts[k]; i < targets.starts[k + 1]; ++i, row += residues.stride) {
      const ProofTarget& m = targets.moduli[i];
      __m512i x[kHalves];
      load_residues(row, mask, first / kWide + i, x);
      for (int h = 0; h < kHalves; ++h) {
        low[h] = low_sum(low[h], x[h], spread_at(m.word));
        high[h] = high_sum(high[h], x[h], spread_at(m.word));
        next[h] = low_sum(next[h], x[h], spread_at(m.word + 1));
      }
    }
    for (int h = 0; h < kHalves; ++h) {
      store_words(sum.word[0], h, low[h]);
      store_words(sum.word[1], h, add(next[h], next_word(high[h])));
    }
  }

  // The quotients of a tile, and which numbers' fractions prove the bound, a mask for each half.
  RNS_IFMA void load_quotients(const WordRow& fractions, WordRow& quotients, __mmask8* flags) const {
    for (int h = 0; h < kHalves; ++h) {
      const __m512i sum = add(half_of(fractions, h), spread(u64{1} << (kFractionBits - 1)));
      const __m512i fraction = lowest_bits(sum, kFractionBits);
      flags[h] = _mm512_cmple_epu64_mask(subtract(fraction, spread(lowest)), spread(room));
      store_words(quotients, h, _mm512_srli_epi64(sum, kFractionBits));
    }
  }

  // Minus the sums of the products within the pairs of a tile's terms.
  RNS_IFMA void start_sums(const Term* terms, ProductSums* sums) const {
    for (int h = 0; h < kHalves; ++h) {
      ProductSums sum = {};
      for (i64 r = 0; r < 2 * pairs(); r += 2) {
#pragma GCC unroll 3
        for (int j = 0; j < 3; ++j) {
          const __m512i a = half_of(terms[r].word[j], h), b = half_of(terms[r + 1].word[j], h);
          sum.low[j] = low_sum(sum.low[j], a, b);
          sum.high[j] = high_sum(sum.high[j], a, b);
        }
      }
#pragma GCC unroll 3
      for (int j = 0; j < 3; ++j) {
        sums[h].low[j] = subtract(_mm512_setzero_si512(), sum.low[j]);
        sums[h].high[j] = subtract(_mm512_setzero_si512(), sum.high[j]);
      }
    }
  }

  // Adds the products of a tile's pairs of terms with the factors of kCount groups, each as a (b + c). What
  // is loaded of the factors serves both halves.
  template <int kCount>
  RNS_IFMA_INLINE void add_pairs(const Term* terms, i64 group, ProductSums (*sums)[kHalves]) const {
    const PairFactors* c[kCount];
    for (int g = 0; g < kCount; ++g) c[g] = table + (group + g) * pairs();
    for (i64 p = 0; p < pairs(); ++p, terms += 2) {
#pragma GCC unroll 3
      for (int j = 0; j < 3; ++j) {
        __m512i a[kHalves], b[kHalves];
#pragma GCC unroll 2
        for (int h = 0; h < kHalves; ++h) {
          a[h] = held(half_of(terms[0].word[j], h));
          b[h] = held(half_of(terms[1].word[j], h));
        }
#pragma GCC unroll 2
        for (int g = 0; g < kCount; ++g) {
          const __m512i second = held(spread_at(c[g][p].word[j])),
                        first = held(spread_at(c[g][p].word[j] + 1));
#pragma GCC unroll 2
          for (int h = 0; h < kHalves; ++h) {
            const __m512i left = add(a[h], second), right = add(b[h], first);
            sums[g][h].low[j] = low_sum(sums[g][h].low[j], left, right);
            sums[g][h].high[j] = high_sum(sums[g][h].high[j], left, right);
          }
        }
      }
    }
  }

  // Adds to `wrong` what is not 0 where a tile's numbers have other residues than their terms give, of kCount
  // groups. What the products within the groups' own pairs are is in the groups' constants.
  template <int kCount>
  RNS_IFMA void compare(const Term* terms, const TargetSum* target_sums, const WordRow& quotients,
                        const ProductSums* start, i64 group, __m512i* wrong) const {
    ProductSums sums[kCount][kHalves];
#pragma GCC unroll 4
    for (int k = 0; k < kCount * kHalves; ++k) sums[k / kHalves][k % kHalves] = start[k % kHalves];
    add_pairs<kCount>(terms, group, sums);
#pragma GCC unroll 4
    for (int k = 0; k < kCount * kHalves; ++k) {
      const int g = k / kHalves, h = k % kHalves;
      const TargetGroup& t = target_groups[group + g];
      const TargetSum& own = target_sums[group + g];
      const __m512i *low = sums[g][h].low, *above = sums[g][h].high;
      const __m512i quotient = half_of(quotients, h);
      const __m512i last0 = spread_at(t.last), last1 = spread_at(t.last + 1);
      const __m512i middle = subtract(subtract(low[2], low[0]), low[1]);
      __m512i high[4] = {{},
                         high_sum(above[0], quotient, last0),
                         high_sum(subtract(subtract(above[2], above[0]), above[1]), quotient, last1),
                         above[1]};
      __m512i z[4] = {low_sum(add(low[0], half_of(own.word[0], h)), quotient, last0),
                      low_sum(add(middle, half_of(own.word[1], h)), quotient, last1),
                      low[1],
                      {}};
      z[1] = add(z[1], next_word(high[1]));
      wrong[h] = remainder_of(z, high, t, wrong[h]);
    }
  }

  // Which of a tile's numbers have the residues that their terms give, a mask for each half.
  RNS_IFMA void compare_all(const Term* terms, const TargetSum* target_sums, const WordRow& quotients,
                            __mmask8* flags) const {
    ProductSums start[kHalves];
    start_sums(terms, start);
    __m512i wrong[kHalves] = {};
    i64 group = 0;
    for (; group + kMostGroups <= targets.count; group += kMostGroups)
      compare<kMostGroups>(terms, target_sums, quotients, start, group, wrong);
    if (group < targets.count) compare<1>(terms, target_sums, quotients, start, group, wrong);
    for (int h = 0; h < kHalves; ++h) flags[h] = _mm512_mask_testn_epi64_mask(flags[h], wrong[h], wrong[h]);
  }

  // Up to kProofTiles tiles; their terms stay in the second-level cache.
  RNS_IFMA void prove_tiles(i64 first, Term* terms, TargetSum* target_sums, u8* proved) const {
    const i64 tiles = (std::min(kWide * kProofTiles, residues.count - first) + kWide - 1) / kWide;
    const i64 rows = 2 * pairs();
    WordRow fractions[kProofTiles] = {};
    for (i64 k = 0; k < sources.count; ++k) {
      for (i64 t = 0; t < tiles; ++t) load_group(first + kWide * t, k, terms[t * rows + k], fractions[t]);
    }
    for (i64 k = 0; k < targets.count; ++k) {
      for (i64 t = 0; t < tiles; ++t) load_target(first + kWide * t, k, target_sums[t * targets.count + k]);
    }
    for (i64 t = 0; t < tiles; ++t) {
      WordRow quotients;
      __mmask8 flags[kHalves];
      load_quotients(fractions[t], quotients, flags);
      compare_all(terms + t * rows, target_sums + t * targets.count, quotients, flags);
      const u32 mask = _pdep_u32(flags[0], 0x5555) | _pdep_u32(flags[1], 0xAAAA);
      const i64 at = first + kWide * t;
      _mm_mask_storeu_epi8(proved + at - first, lanes(residues.count - at),
                           _mm_maskz_set1_epi8(static_cast<__mmask16>(mask), 1));
    }
  }

  void prove(u8* proved) const {
    const i64 tiles = std::min(kProofTiles, (residues.count + kWide - 1) / kWide);
    std::vector<Term> terms(tiles * 2 * pairs());
    std::vector<TargetSum> target_sums(tiles * targets.count);
    for (i64 first = 0; first < residues.count; first += kProofTiles * kWide)
      prove_tiles(first, terms.data(), target_sums.data(), proved + first);
  }
};

void prove_bound(const Matrix32& array, const Vector32& starts, const Table64& factors, const Table64& groups,
                 const Blocks64& table, const Vector32& target_starts, const Table64& target_factors,
                 const Table64& target_groups, u64 lowest, u64 room, Vector8 proved) {
  const BoundProof proof = {Residues(array),
                            {starts, factors},
                            reinterpret_cast<const ProofGroup*>(groups.data()),
                            reinterpret_cast<const PairFactors*>(table.data()),
                            {target_starts, target_factors},
                            reinterpret_cast<const TargetGroup*>(target_groups.data()),
                            lowest,
                            room};
  require(proof.residues.moduli == proof.sources.size() + proof.targets.size() &&
              static_cast<i64>(table.shape(0)) == proof.targets.count &&
              static_cast<i64>(table.shape(1)) == proof.pairs() &&
              table.shape(2) * sizeof(u64) == sizeof(PairFactors),
          "one row of constants for each modulus and each group is needed");
  require(static_cast<i64>(groups.shape(0)) == proof.sources.count &&
              groups.shape(1) * sizeof(u64) == sizeof(ProofGroup) &&
              static_cast<i64>(target_groups.shape(0)) == proof.targets.count &&
              target_groups.shape(1) * sizeof(u64) == sizeof(TargetGroup),
          "one row of constants for each group is needed");
  require(proved.shape(0) == array.shape(1), "one flag for each number is needed");
  nb::gil_scoped_release release;
  proof.prove(proved.data());
}

}  // namespace

void bind_digit_proof(nb::module_& module) { module.def("prove_bound", prove_bound); }

#else

void bind_digit_proof(nb::module_&) {}

#endif

}  // namespace rns
