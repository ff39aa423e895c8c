// Fixed-point interval evaluation with 64, 96 or 128 fraction bits.
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

template <int kWords>
void fixed_point(const Residues& residues, const u32* c, u32* words, u8* zero) {
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
      for (int k = 0; k < kWords; ++k) words[k * residues.count + first + j] = word[k];
      zero[first + j] = tile.any[j] == 0;
    }
  }
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
}

}  // namespace rns
