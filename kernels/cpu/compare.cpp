// The order of numbers of two arrays, or of an array and one number, a tile at a time.
#include "rns/compare.cuh"

#include <algorithm>

#include "bindings.hpp"
#include "keys.hpp"

namespace rns {

namespace {

using Signed8 = Written<i8, nb::ndim<1>, nb::c_contig>;

RNS_VECTORISED bool any_equal(const u64* a, const u64* b, i64 width) {
  u64 equal = 0;
  for (i64 j = 0; j < width; ++j) equal |= a[j] == b[j];
  return equal != 0;
}

RNS_VECTORISED void add_differences(const u32* x, const u32* y, i64 width, u32* __restrict__ bits) {
  for (i64 j = 0; j < width; ++j) bits[j] |= x[j] ^ y[j];
}

RNS_VECTORISED void add_differences_from(const u32* x, u32 y, i64 width, u32* __restrict__ bits) {
  for (i64 j = 0; j < width; ++j) bits[j] |= x[j] ^ y;
}

RNS_VECTORISED void compare_tile(const u64* a, const u64* b, const u32* different, i64 width, u64 slack,
                                 u64 ambiguous_below, i8* __restrict__ order) {
  for (i64 j = 0; j < width; ++j) {
    order[j] = static_cast<i8>(compare_keys(a[j], b[j], different[j], slack, ambiguous_below));
  }
}

RNS_VECTORISED i64 count_undecided(const i8* order, i64 width) {
  i64 undecided = 0;
  for (i64 j = 0; j < width; ++j) undecided += order[j] == kUndecided;
  return undecided;
}

struct Comparison {
  Residues a;
  Residues b;  // as many numbers as a, or one
  const u64* c;
  u64 start;
  u64 slack;
  u64 ambiguous_below;
  u64 settled_key;  // of a single number, never ambiguous

  i64 run(i8* order) const {
    const bool scalar = b.count != a.count;
    alignas(64) u64 a_keys[kTile], b_keys[kTile], settled[kTile];
    if (scalar) {
      evaluate_keys(b, c, start, 0, 1, b_keys);
      std::fill_n(b_keys + 1, kTile - 1, b_keys[0]);
      std::fill_n(settled, kTile, settled_key);
    }
    i64 undecided = 0;
    for (i64 first = 0; first < a.count; first += kTile) {
      const i64 width = std::min(kTile, a.count - first);
      evaluate_keys(a, c, start, first, width, a_keys);
      if (!scalar) evaluate_keys(b, c, start, first, width, b_keys);
      alignas(64) u32 different[kTile];
      find_differences(first, width, scalar, any_equal(a_keys, b_keys, width), different);
      compare_tile(a_keys, scalar ? settled : b_keys, different, width, slack, ambiguous_below,
                   order + first);
      undecided += count_undecided(order + first, width);
    }
    return undecided;
  }

 private:
  // Equal numbers have equal keys: where no keys are equal, all numbers differ. The tile is still in cache.
  void find_differences(i64 first, i64 width, bool scalar, bool equal_keys, u32* different) const {
    std::fill_n(different, width, equal_keys ? 0u : 1u);
    if (!equal_keys) return;
    for (i64 i = 0; i < a.moduli; ++i) {
      const u32* x = a.row(i) + first;
      if (scalar) {
        add_differences_from(x, b.row(i)[0], width, different);
      } else {
        add_differences(x, b.row(i) + first, width, different);
      }
    }
  }
};

}  // namespace

void bind_compare(nb::module_& module) {
  module.def("compare", [](const Matrix32& first, const Matrix32& second, const Vector64& c, u64 start,
                           u64 ambiguous_below, u64 slack, u64 settled_key, Signed8 order) {
    const Residues a(first), b(second);
    require(b.moduli == a.moduli && static_cast<i64>(c.shape(0)) == a.moduli,
            "operands and coefficients must have one row for each modulus");
    require(b.count == a.count || b.count == 1, "operands must have the same length, or the second length 1");
    require(static_cast<i64>(order.shape(0)) == a.count, "one result for each number is needed");
    nb::gil_scoped_release release;
    return Comparison{a, b, c.data(), start, slack, ambiguous_below, settled_key}.run(order.data());
  });
}

}  // namespace rns
