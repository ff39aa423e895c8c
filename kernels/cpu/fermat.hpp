// Arithmetic modulo r^k + 1 on tiles of numbers side by side: row i holds the digits i of all of them.
#pragma once

#include <array>

#include "residues.hpp"
#include "rns/fermat.cuh"
#include "rns/fermat_limbs.cuh"

namespace rns {

// Numbers in a tile: those of 32-bit digits fill vector registers, others are computed one by one.
template <class Digit>
constexpr i64 kFermatLanes = 64 / static_cast<i64>(sizeof(Digit));

// The rows of a tile, `stride` digits apart.
template <class Digit>
struct FermatRows {
  const Digit* data;
  i64 stride;

  RNS_INLINE const Digit* row(i64 i) const { return data + i * stride; }
};

template <class Digit>
struct FermatResult {
  Digit* data;
  i64 stride;

  RNS_INLINE Digit* row(i64 i) const { return data + i * stride; }
  RNS_INLINE operator FermatRows<Digit>() const { return {data, stride}; }
};

struct FermatField {
  FermatRadix radix;
  i32 digits;
};

// The fields of FermatRadix in their order, and the number of digits.
using FermatParameters = std::array<u64, 7>;

inline FermatField field_of(const FermatParameters& p) {
  const auto at = [&](i32 k) { return static_cast<i32>(p[k]); };
  require(p[6] > 0 && p[6] <= kMostDigits, "a Fermat field has 1 to 128 digits");
  return {{p[0], at(1), at(2), at(3), at(4), at(5)}, at(6)};
}

template <class Digit>
using FermatMatrix = nb::ndarray<const Digit, nb::ndim<2>, nb::device::cpu>;
template <class Digit>
using FermatOut = Written<Digit, nb::ndim<2>, nb::c_contig>;

template <class Digit>
void check_operand(const FermatMatrix<Digit>& x, const FermatField& f, i64 count) {
  require(static_cast<i64>(x.shape(0)) == f.digits, "an operand must have one row for each digit");
  const i64 width = static_cast<i64>(x.shape(1));
  require(width == count || width == 1, "an operand must have the result's columns, or one column");
  require(width <= 1 || x.stride(1) == 1, "the numbers' axis must be contiguous");
}

// Operations on tiles. Results are other memory than operands.
template <class Digit>
struct FermatTiles {
  using Rows = FermatRows<Digit>;
  using Result = FermatResult<Digit>;

  static void add(const FermatField& f, Rows x, Rows y, Result out);
  static void subtract(const FermatField& f, Rows x, Rows y, Result out);
  // x r^shift, for a shift from 0 to 2 k - 1.
  static void shift(const FermatField& f, Rows x, i32 shift, Result out);
  // x + y r^shift and x - y r^shift.
  static void butterfly(const FermatField& f, Rows x, Rows y, i32 shift, Result sum, Result difference);
  static void multiply(const FermatField& f, Rows x, Rows y, Result out);
};

}  // namespace rns
