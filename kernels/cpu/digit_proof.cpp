// Proof of a bound by digits of 102 bits, for processors that multiply words of 52 bits (AVX-512 IFMA): which
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

// A digit of each number of a tile, with the sum of its two words between them.
struct Term {
  WordRow word[3];
};

// Constants of one of the first moduli, m: 2^52 - m, w_i, floor(2^52 w_i / m), two words of P_k / m.
struct ProofSource {
  u64 negative_modulus;
  u64 inverse, inverse_quotient;
  u64 word[2];
};

// Constants of a group of these, of b bits: 51 + e and |e| of e = 46 - b, which shift S_k below 2^51, whether
// e is positive, and floor(2^(97 - e) / P_k).
struct ProofGroup {
  u64 upper_shift, lower_shift, is_left;
  u64 fraction;
};

// Constants of a group of other moduli: 1 / P modulo 2^51, 2 |P| modulo 2^52, P / 2^51 rounded down, and two
// words of a multiple of P from 2^98 on.
struct TargetGroup {
  u64 inverse;
  u64 twice_lower, upper;
  u64 offset[2];
};

// Constants of one of the other moduli, m: m, 1 / m and -1 / m modulo 2^52, floor((2^52 - 1) / m).
struct ProofTarget {
  u64 modulus;
  u64 inverse, negative_inverse;
  u64 greatest;
};

RNS_IFMA_INLINE __m512i low_sum(__m512i sum, __m512i a, __m512i b) {
  return _mm512_madd52lo_epu64(sum, a, b);
}
RNS_IFMA_INLINE __m512i high_sum(__m512i sum, __m512i a, __m512i b) {
  return _mm512_madd52hi_epu64(sum, a, b);
}

// S_k / P_k in units of 2^-45, less than three units too low.
RNS_IFMA_INLINE __m512i fraction_of(__m512i lower, __m512i upper, const ProofGroup& group) {
  const __m128i by = _mm_cvtsi64_si128(static_cast<i64>(group.lower_shift));
  __m512i top = group.is_left ? _mm512_sll_epi64(lower, by) : _mm512_srl_epi64(lower, by);
  top =
      _mm512_add_epi64(top, _mm512_sll_epi64(upper, _mm_cvtsi64_si128(static_cast<i64>(group.upper_shift))));
  return high_sum(_mm512_setzero_si512(), top, spread(group.fraction));
}

RNS_IFMA_INLINE __m512i twice(__m512i x) { return _mm512_slli_epi64(x, 1); }

// Of 8 numbers, a sum of products of digits as in DigitSum.
struct WordSums {
  __m512i low[3];
  __m512i high[3];
};

// Of 8 sums t, two words of 52 bits of v from 2^97 to 2^103, with v 2^102 = t modulo P: two steps of
// Montgomery's reduction, in words of 51 bits that may be negative on the way.
RNS_IFMA_INLINE void reduce_words(WordSums& sums, const TargetGroup& group, __m512i* v) {
  __m512i *low = sums.low, *high = sums.high;
  low[1] = _mm512_sub_epi64(_mm512_sub_epi64(low[1], low[0]), low[2]);
  high[1] = _mm512_sub_epi64(_mm512_sub_epi64(high[1], high[0]), high[2]);
  __m512i z[4] = {low[0], _mm512_add_epi64(low[1], twice(high[0])), _mm512_add_epi64(low[2], twice(high[1])),
                  twice(high[2])};
  const __m512i zero = _mm512_setzero_si512(), inverse = spread_at(&group.inverse);
  const __m512i p0 = spread_at(&group.twice_lower), p1 = spread_at(&group.upper);
  for (int j = 0; j < 2; ++j) {
    const __m512i t = word_of(low_sum(zero, z[j], inverse));
    const __m512i taken = low_sum(high_sum(zero, t, p0), t, p1);
    z[j + 1] = _mm512_sub_epi64(_mm512_add_epi64(z[j + 1], carry_of(z[j])), taken);
    z[j + 2] = _mm512_sub_epi64(z[j + 2], twice(high_sum(zero, t, p1)));
  }
  const __m512i lower = _mm512_add_epi64(z[2], spread_at(group.offset));
  const __m512i upper =
      _mm512_add_epi64(_mm512_add_epi64(z[3], spread_at(group.offset + 1)), carry_of(lower));
  v[0] = _mm512_or_si512(word_of(lower), _mm512_slli_epi64(_mm512_and_si512(upper, spread(1)), kWordBits));
  v[1] = _mm512_srli_epi64(upper, 1);
}

// Which of 8 numbers, besides `before`, have the residue x of v modulo m. With q = (v - x) / m modulo 2^52,
// the rest (v - x - q m) / 2^52 is from 0 to 2^52, and a multiple of m just when it times 1 / m is so small
// (T. Granlund and P. Montgomery, "Division by invariant integers using multiplication", 1994, section 9).
RNS_IFMA_INLINE __mmask8 is_congruent(const __m512i* v, __m512i x, const ProofTarget& m, __mmask8 before) {
  const __m512i zero = _mm512_setzero_si512();
  const __m512i lower = _mm512_sub_epi64(v[0], x);
  const __m512i q = low_sum(zero, lower, spread_at(&m.inverse));
  const __m512i borrowed = _mm512_sub_epi64(_mm512_sub_epi64(zero, v[1]), _mm512_srai_epi64(lower, 63));
  const __m512i rest = high_sum(borrowed, q, spread_at(&m.modulus));  // negative
  const __m512i quotient = low_sum(zero, rest, spread_at(&m.negative_inverse));
  return _mm512_mask_cmple_epu64_mask(before, quotient, spread_at(&m.greatest));
}

struct BoundProof {
  Residues residues;
  Groups<ProofSource> sources;
  const ProofGroup* groups;
  const u64* table;  // for each target group, three words of each term's digit, the second those of the sum
  Groups<ProofTarget> targets;
  const TargetGroup* target_groups;
  u64 lowest;  // of the fractions that numbers within the bound have
  u64 room;    // of these, above the lowest

  // The term of one group for a tile, and its part of the fractions. The u_i are below 2 m_i.
  RNS_IFMA void load_group(i64 first, i64 group, Term& term, WordRow& fractions) const {
    const __m512i zero = _mm512_setzero_si512();
    const __mmask16 mask = lanes(residues.count - first);
    __m512i sum[2][3] = {};
    const u32* row = residues.row(sources.starts[group]) + first;
    for (i64 i = sources.starts[group]; i < sources.starts[group + 1]; ++i, row += residues.stride) {
      const ProofSource& s = sources.moduli[i];
      __builtin_prefetch(row + kWide * kTiles);  // rows are too far apart for the processor to foresee
      const __m512i x = _mm512_maskz_loadu_epi32(mask, row);
      const __m256i halves[2] = {_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1)};
      const __m512i word0 = spread_at(s.word), word1 = spread_at(s.word + 1);
      for (int h = 0; h < 2; ++h) {
        const __m512i wide = _mm512_cvtepu32_epi64(halves[h]);
        const __m512i q = high_sum(zero, wide, spread_at(&s.inverse_quotient));
        const __m512i u =
            low_sum(low_sum(zero, wide, spread_at(&s.inverse)), q, spread_at(&s.negative_modulus));
        sum[h][0] = low_sum(sum[h][0], u, word0);
        sum[h][1] = high_sum(sum[h][1], u, word0);
        sum[h][2] = low_sum(sum[h][2], u, word1);
      }
    }
    for (int h = 0; h < 2; ++h) {
      const __m512i lower = word_of(sum[h][0]);
      const __m512i upper =
          _mm512_add_epi64(_mm512_add_epi64(_mm512_slli_epi64(sum[h][1], 1), sum[h][2]), carry_of(sum[h][0]));
      _mm512_store_si512(term.word[0].x + 8 * h, lower);
      _mm512_store_si512(term.word[1].x + 8 * h, _mm512_add_epi64(lower, upper));
      _mm512_store_si512(term.word[2].x + 8 * h, upper);
      _mm512_store_si512(fractions.x + 8 * h, _mm512_add_epi64(load_words(fractions, 8 * h),
                                                               fraction_of(lower, upper, groups[group])));
    }
  }

  // The last term of a tile, and which numbers' fractions prove the bound.
  RNS_IFMA __mmask16 load_quotients(const WordRow& fractions, Term& q) const {
    __mmask8 within[2];
    for (int h = 0; h < 2; ++h) {
      const __m512i sum =
          _mm512_add_epi64(load_words(fractions, 8 * h), spread(u64{1} << (kFractionBits - 1)));
      const __m512i fraction = _mm512_and_si512(sum, spread((u64{1} << kFractionBits) - 1));
      within[h] = _mm512_cmple_epu64_mask(_mm512_sub_epi64(fraction, spread(lowest)), spread(room));
      const __m512i whole = _mm512_srli_epi64(sum, kFractionBits);
      _mm512_store_si512(q.word[0].x + 8 * h, whole);
      _mm512_store_si512(q.word[1].x + 8 * h, whole);
      _mm512_store_si512(q.word[2].x + 8 * h, _mm512_setzero_si512());
    }
    return static_cast<__mmask16>(within[0] | within[1] << 8);
  }

  i64 rows() const { return sources.count + 1; }

  // The sums of a tile's terms times a column of the table.
  RNS_IFMA_INLINE void add_products(const Term* terms, i64 group, WordSums* sums) const {
    const u64* c = table + 3 * rows() * group;
    for (i64 r = 0; r < rows(); ++r, c += 3) {
      for (int j = 0; j < 3; ++j) {
        const __m512i factor = spread_at(c + j);
        for (int h = 0; h < 2; ++h) {
          const __m512i x = load_words(terms[r].word[j], 8 * h);
          sums[h].low[j] = low_sum(sums[h].low[j], x, factor);
          sums[h].high[j] = high_sum(sums[h].high[j], x, factor);
        }
      }
    }
  }

  // Which of a tile's numbers have the residues modulo a group's moduli that their terms give.
  RNS_IFMA __mmask16 agree(const Term* terms, i64 group, i64 first, __mmask16 before) const {
    const __mmask16 mask = lanes(residues.count - first);
    __mmask8 same[2] = {static_cast<__mmask8>(before), static_cast<__mmask8>(before >> 8)};
    WordSums sums[2] = {};
    add_products(terms, group, sums);
    __m512i v[2][2];
    for (int h = 0; h < 2; ++h) reduce_words(sums[h], target_groups[group], v[h]);
    const i64 start = targets.starts[group];
    const u32* row = residues.row(sources.size() + start) + first;
    for (i64 i = start; i < targets.starts[group + 1]; ++i, row += residues.stride) {
      __builtin_prefetch(row + kWide * kTiles);  // rows are too far apart for the processor to foresee
      const __m512i x = _mm512_maskz_loadu_epi32(mask, row);
      const __m256i halves[2] = {_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1)};
      for (int h = 0; h < 2; ++h)
        same[h] = is_congruent(v[h], _mm512_cvtepu32_epi64(halves[h]), targets.moduli[i], same[h]);
    }
    return static_cast<__mmask16>(same[0] | same[1] << 8);
  }

  // Up to kTiles tiles.
  RNS_IFMA void prove_tiles(i64 first, std::vector<Term>& terms, u8* proved) const {
    const i64 width = std::min(kWide * kTiles, residues.count - first);
    WordRow fractions[kTiles] = {};
    __mmask16 flags[kTiles];
    for (i64 group = 0; group < sources.count; ++group) {
      for (i64 t = 0; kWide * t < width; ++t)
        load_group(first + kWide * t, group, terms[t * rows() + group], fractions[t]);
    }
    for (i64 t = 0; kWide * t < width; ++t)
      flags[t] = load_quotients(fractions[t], terms[(t + 1) * rows() - 1]);
    for (i64 group = 0; group < targets.count; ++group) {
      for (i64 t = 0; kWide * t < width; ++t)
        flags[t] = agree(terms.data() + t * rows(), group, first + kWide * t, flags[t]);
    }
    for (i64 j = 0; j < width; ++j) proved[j] = flags[j / kWide] >> j % kWide & 1;
  }

  void prove(u8* proved) const {
    std::vector<Term> terms(kTiles * rows());
    for (i64 first = 0; first < residues.count; first += kTiles * kWide)
      prove_tiles(first, terms, proved + first);
  }
};

void prove_bound(const Matrix32& array, const Vector32& starts, const Table64& factors, const Table64& groups,
                 const Blocks64& table, const Vector32& target_starts, const Table64& target_factors,
                 const Table64& target_groups, u64 lowest, u64 room, Vector8 proved) {
  const BoundProof proof = {Residues(array),
                            {starts, factors},
                            reinterpret_cast<const ProofGroup*>(groups.data()),
                            table.data(),
                            {target_starts, target_factors},
                            reinterpret_cast<const TargetGroup*>(target_groups.data()),
                            lowest,
                            room};
  require(proof.residues.moduli == proof.sources.size() + proof.targets.size() &&
              static_cast<i64>(table.shape(0)) == proof.targets.count &&
              static_cast<i64>(table.shape(1)) == proof.rows() && table.shape(2) == 3,
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
