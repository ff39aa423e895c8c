// Mixed-radix conversion of a tile of numbers at a time, in place in the array of digits.
#include "rns/mixed_radix.cuh"

#include <algorithm>
#include <cstring>

#include "bindings.hpp"

namespace rns {

namespace {

// The digits found so far of a tile stay in cache: 512 moduli x 128 numbers are 256 KiB.
constexpr i64 kDigitTile = 128;

RNS_VECTORISED void remove_digit(u32* x, const u32* digit, i64 width, Factor one, Factor inverse, u32 last) {
  for (i64 j = 0; j < width; ++j) x[j] = mixed_radix_step(x[j], digit[j], one, inverse, last);
}

void convert_tile(const Residues& residues, const u32* last, const Factor* ones, const Factor* inverses,
                  i64 first, i64 width, u32* digits) {
  for (i64 i = 0; i < residues.moduli; ++i) {
    u32* digit = digits + i * residues.count + first;
    std::memcpy(digit, residues.row(i) + first, static_cast<size_t>(width) * sizeof(u32));
    const Factor* row = inverses + inverse_row(i);
    for (i64 j = 0; j < i; ++j) {
      remove_digit(digit, digits + j * residues.count + first, width, ones[i], row[j], last[i]);
    }
  }
}

}  // namespace

void bind_mixed_radix(nb::module_& module) {
  module.def("mixed_radix_digits", [](const Matrix32& array, const Vector32& last, const Table32& ones,
                                      const Table32& inverses, MutableMatrix32 digits) {
    const Residues residues(array);
    const i64 n = residues.moduli;
    require(static_cast<i64>(last.shape(0)) == n && static_cast<i64>(ones.shape(0)) == n &&
                static_cast<i64>(inverses.shape(0)) == inverse_row(n),
            "the tables do not fit the number of moduli");
    require(static_cast<i64>(digits.shape(0)) == n && static_cast<i64>(digits.shape(1)) == residues.count,
            "digits must have the shape of residues");
    nb::gil_scoped_release release;
    for (i64 first = 0; first < residues.count; first += kDigitTile) {
      convert_tile(residues, last.data(), reinterpret_cast<const Factor*>(ones.data()),
                   reinterpret_cast<const Factor*>(inverses.data()), first,
                   std::min(kDigitTile, residues.count - first), digits.data());
    }
  });
}

}  // namespace rns
