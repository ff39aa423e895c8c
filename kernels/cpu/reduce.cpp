// MAX / MIN / SUM of an array of numbers, in one pass over its residues.
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "bindings.hpp"
#include "keys.hpp"

namespace rns {

namespace {

// The sums of a tile, aligned as vectors are; those of a long one would be much of a thread's stack.
class TileSums {
 public:
  explicit TileSums(i64 count) : lines_(count <= kTile ? 0 : (count + kInLine - 1) / kInLine) {}
  u64* data() { return lines_.empty() ? few_ : lines_.data()->sums; }

 private:
  static constexpr i64 kInLine = 8;
  struct alignas(64) Line {
    u64 sums[kInLine];
  };
  std::vector<Line> lines_;
  alignas(64) u64 few_[kTile];
};

struct Extremum {
  u64 best = 0;
  u64 runner_up = 0;
  i64 index = 0;
  u64 ambiguous = 0;
};

struct TileSummary {
  u64 greatest;
  u64 ambiguous;
};

// The greatest of a tile's keys, complemented for MIN, that are not ambiguous, and how many are; from their
// sums in any order.
RNS_VECTORISED TileSummary summarise(const u64* sums, u64 start, i64 width, u64 ambiguous_below, u64 flip) {
  u64 greatest = 0;
  u64 ambiguous = 0;
  for (i64 j = 0; j < width; ++j) {
    const u64 key = start + sums[j];
    const u64 one = key < ambiguous_below ? 1 : 0;
    const u64 compared = (key ^ flip) & (one - 1);
    greatest = compared > greatest ? compared : greatest;
    ambiguous += one;
  }
  return {greatest, ambiguous};
}

void scan_tile(const u64* keys, i64 width, i64 first, u64 ambiguous_below, u64 flip, Extremum& result) {
  for (i64 j = 0; j < width; ++j) {
    if (keys[j] < ambiguous_below) continue;
    const u64 key = keys[j] ^ flip;
    if (key > result.best) {
      result.runner_up = result.best;
      result.best = key;
      result.index = first + j;
    } else if (key > result.runner_up) {
      result.runner_up = key;
    }
  }
}

Extremum extremum(const Residues& residues, const u64* c, u64 start, u64 ambiguous_below, u64 flip) {
  Extremum result;
  const i64 most = key_tiles(residues.moduli).length;
  TileSums sums(std::min(most, residues.count));
  for (i64 first = 0; first < residues.count; first += most) {
    const i64 length = std::min(most, residues.count - first);
    sum_keys(residues, c, first, length, sums.data());
    for (i64 j = 0; j < length; j += kTile) {
      const i64 width = std::min(kTile, length - j);
      const TileSummary tile = summarise(sums.data() + j, start, width, ambiguous_below, flip);
      result.ambiguous += tile.ambiguous;
      // Most parts of a long array hold nothing greater than the runner-up: they need no scan.
      if (tile.greatest <= result.runner_up) continue;
      alignas(64) u64 keys[kTile];
      finish_keys(sums.data() + j, start, width, keys);
      scan_tile(keys, width, first + j, ambiguous_below, flip, result);
    }
  }
  return result;
}

struct KeySum {
  u64 low = 0;   // sum of the keys' lower halves
  u64 high = 0;  // sum of the keys' upper halves
  u64 ambiguous = 0;
};

RNS_VECTORISED void add_tile(const u64* sums, u64 start, i64 width, u64 ambiguous_below, KeySum& sum) {
  KeySum tile;
  for (i64 j = 0; j < width; ++j) {
    const u64 key = start + sums[j];
    tile.low += static_cast<u32>(key);
    tile.high += key >> 32;
    tile.ambiguous += key < ambiguous_below;
  }
  sum.low += tile.low;
  sum.high += tile.high;
  sum.ambiguous += tile.ambiguous;
}

KeySum row_sums(const Residues& residues, const u64* c, u64 start, u64 ambiguous_below, u64* rows) {
  KeySum result;
  const i64 most = key_tiles(residues.moduli).length;
  TileSums sums(std::min(most, residues.count));
  for (i64 first = 0; first < residues.count; first += most) {
    const i64 width = std::min(most, residues.count - first);
    sum_keys(residues, c, first, width, sums.data(), rows);
    add_tile(sums.data(), start, width, ambiguous_below, result);
  }
  return result;
}

RNS_VECTORISED void mark_candidates(const u64* keys, i64 width, u64 ambiguous_below, u64 flip, u64 threshold,
                                    u8* flags) {
  for (i64 j = 0; j < width; ++j) flags[j] = keys[j] < ambiguous_below || (keys[j] ^ flip) >= threshold;
}

void check_factors(const Residues& residues, const Vector64& c) {
  require(static_cast<i64>(c.shape(0)) == residues.moduli, "one coefficient for each modulus is needed");
}

}  // namespace

void bind_reduce(nb::module_& module) {
  module.def(
      "extremum", [](const Matrix32& array, const Vector64& c, u64 start, u64 ambiguous_below, bool minimum) {
        const Residues residues(array);
        check_factors(residues, c);
        nb::gil_scoped_release release;
        const Extremum e = extremum(residues, c.data(), start, ambiguous_below, minimum ? ~0ull : 0ull);
        return std::make_tuple(e.best, e.index, e.runner_up, e.ambiguous);
      });
  module.def("row_sums", [](const Matrix32& array, const Vector64& c, u64 start, u64 ambiguous_below,
                            MutableVector64 rows) {
    const Residues residues(array);
    check_factors(residues, c);
    require(static_cast<i64>(rows.shape(0)) == residues.moduli, "one sum for each modulus is needed");
    nb::gil_scoped_release release;
    const KeySum s = row_sums(residues, c.data(), start, ambiguous_below, rows.data());
    return std::make_tuple(s.low, s.high, s.ambiguous);
  });
  module.def("candidates", [](const Matrix32& array, const Vector64& c, u64 start, u64 ambiguous_below,
                              bool minimum, u64 threshold, Vector8 flags) {
    const Residues residues(array);
    check_factors(residues, c);
    require(static_cast<i64>(flags.shape(0)) == residues.count, "one flag for each number is needed");
    nb::gil_scoped_release release;
    alignas(64) u64 keys[kTile];
    for (i64 first = 0; first < residues.count; first += kTile) {
      const i64 width = std::min(kTile, residues.count - first);
      evaluate_keys(residues, c.data(), start, first, width, keys);
      mark_candidates(keys, width, ambiguous_below, minimum ? ~0ull : 0ull, threshold, flags.data() + first);
    }
  });
}

}  // namespace rns
