// Whether every residue is below its modulus, and a plain read of every residue.
#include "check.hpp"

#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <tuple>

#include "bindings.hpp"
#include "keys.hpp"

namespace rns {

RNS_VECTORISED u32 greatest(const u32* x, i64 width) {
  u32 result = 0;
  for (i64 j = 0; j < width; ++j) result = x[j] > result ? x[j] : result;
  return result;
}

namespace {

// The first (row, index) whose residue exceeds last[row], by row then index; (-1, -1) if none does.
std::tuple<i64, i64> first_invalid(const Residues& residues, const u32* last) {
  for (i64 i = 0; i < residues.moduli; ++i) {
    const u32* row = residues.row(i);
    for (i64 first = 0; first < residues.count; first += kTile) {
      const i64 end = std::min(first + kTile, residues.count);
      if (greatest(row + first, end - first) <= last[i]) continue;
      const u32* found = std::find_if(row + first, row + end, [&](u32 x) { return x > last[i]; });
      return {i, found - row};
    }
  }
  return {-1, -1};
}

u64 read_all(const Residues& residues) {
  u64 total = 0;
  for (i64 i = 0; i < residues.moduli; ++i) total += sum_row(residues.row(i), residues.count);
  return total;
}

}  // namespace

void bind_check(nb::module_& module) {
  module.def("first_invalid", [](const Matrix32& array, const Vector32& last) {
    const Residues residues(array);
    require(static_cast<i64>(last.shape(0)) == residues.moduli, "one modulus for each row is needed");
    nb::gil_scoped_release release;
    return first_invalid(residues, last.data());
  });
  module.def("read_all", [](const Matrix32& array) {
    const Residues residues(array);
    nb::gil_scoped_release release;
    return read_all(residues);
  });
}

}  // namespace rns
