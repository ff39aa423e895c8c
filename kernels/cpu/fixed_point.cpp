// Fixed-point interval evaluation with 64, 96 or 128 fraction bits, and lengths of numbers by it.
#include "rns/fixed_point.cuh"

#include <algorithm>

#include "bindings.hpp"

namespace rns {

namespace {

constexpr i64 kSumTile = 256;

template <int kWords>
struct SumTile {
  alignas(64) u64 lanes[kWords][kSumTile];
  alignas(64) u32 any[kSumTile];
};

// The same lanes as FixedPointSum, with the numbers of a tile side by side.
template <int kWords>
RNS_INLINE void accumulate_row_of(const u32* x, const u32* c, i64 width, SumTile<kWords>& tile) {
  for (i64 j = 0; j < width; ++j) {
    FixedPointSum<kWords> sum;
    for (int k = 0; k < kWords; ++k) sum.lane[k] = tile.lanes[k][j];
    fixed_point_accumulate<kWords>(sum, x[j], c);
    for (int k = 0; k < kWords; ++k) tile.lanes[k][j] = sum.lane[k];
    tile.any[j] |= x[j];
  }
}

// target_clones does not apply to templates, so each width has a function of its own.
RNS_VECTORISED void accumulate_row(const u32* x, const u32* c, i64 width, SumTile<2>& tile) {
  accumulate_row_of<2>(x, c, width, tile);
}
RNS_VECTORISED void accumulate_row(const u32* x, const u32* c, i64 width, SumTile<3>& tile) {
  accumulate_row_of<3>(x, c, width, tile);
}
RNS_VECTORISED void accumulate_row(const u32* x, const u32* c, i64 width, SumTile<4>& tile) {
  accumulate_row_of<4>(x, c, width, tile);
}

// Evaluates all numbers, and calls use(j, words, is_zero) for each.
template <int kWords, class Use>
void for_each_evaluation(const Residues& residues, const u32* c, Use use) {
  for (i64 first = 0; first < residues.count; first += kSumTile) {
    const i64 width = std::min(kSumTile, residues.count - first);
    SumTile<kWords> tile = {};
    for (i64 i = 0; i < residues.moduli; ++i)
      accumulate_row(residues.row(i) + first, c + i * kWords, width, tile);
    for (i64 j = 0; j < width; ++j) {
      FixedPointSum<kWords> sum;
      for (int k = 0; k < kWords; ++k) sum.lane[k] = tile.lanes[k][j];
      u32 word[kWords];
      fixed_point_words<kWords>(sum, word);
      use(first + j, word, tile.any[j] == 0);
    }
  }
}

template <int kWords>
void fixed_point(const Residues& residues, const u32* c, u32* words, u8* zero) {
  for_each_evaluation<kWords>(residues, c, [&](i64 j, const u32* word, bool is_zero) {
    for (int k = 0; k < kWords; ++k) words[k * residues.count + j] = word[k];
    zero[j] = is_zero;
  });
}

template <int kWords>
void bit_lengths(const Residues& residues, const u32* c, const LengthTable& table, i64* lengths,
                 u8* decided) {
  for_each_evaluation<kWords>(residues, c, [&](i64 j, const u32* word, bool is_zero) {
    lengths[j] = length_of_words<kWords>(word, is_zero, table);
    decided[j] = lengths[j] != kOpenLength;
  });
}

}  // namespace

void bind_fixed_point(nb::module_& module) {
  module.def("fixed_point", [](const Matrix32& array, const Table32& c, MutableMatrix32 words, Vector8 zero) {
    const Residues residues(array);
    require(static_cast<i64>(c.shape(0)) == residues.moduli, "one coefficient for each modulus is needed");
    require(c.shape(1) == words.shape(0) && words.shape(0) >= 2 && words.shape(0) <= 4,
            "words must be 2, 3 or 4");
    require(static_cast<i64>(words.shape(1)) == residues.count &&
                static_cast<i64>(zero.shape(0)) == residues.count,
            "words and zero must have one column for each number");
    nb::gil_scoped_release release;
    switch (words.shape(0)) {
      case 2:
        return fixed_point<2>(residues, c.data(), words.data(), zero.data());
      case 3:
        return fixed_point<3>(residues, c.data(), words.data(), zero.data());
      default:
        return fixed_point<4>(residues, c.data(), words.data(), zero.data());
    }
  });
  module.def("bit_lengths", [](const Matrix32& array, const Table32& c, u64 width_high, u64 width_low,
                               u64 size, i32 bits, bool is_signed, MutableVectorI64 lengths,
                               Vector8 decided) {
    const Residues residues(array);
    const LengthTable table = {width_high, width_low, size, bits, is_signed};
    require(static_cast<i64>(c.shape(0)) == residues.moduli, "one coefficient for each modulus is needed");
    require(c.shape(1) == 2 || c.shape(1) == 4, "coefficients must have 2 or 4 words");
    require(static_cast<i64>(lengths.shape(0)) == residues.count &&
                static_cast<i64>(decided.shape(0)) == residues.count,
            "lengths and decided must have one item for each number");
    nb::gil_scoped_release release;
    const auto measure = c.shape(1) == 2 ? bit_lengths<2> : bit_lengths<4>;
    measure(residues, c.data(), table, lengths.data(), decided.data());
  });
}

}  // namespace rns
