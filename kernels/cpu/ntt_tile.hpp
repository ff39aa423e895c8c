// What transforms do to a tile: kLanes columns of numbers modulo a prime, row after row.
#pragma once

#include <string>
#include <vector>

#include "residues.hpp"
#include "rns/modular.cuh"

namespace rns {

// Columns of a tile: 128 bytes of a row.
constexpr i64 kLanes = 32;

// How a prime's factors are stored, and its products found.
struct Prime {
  u32 value;
  u32 inverse;     // of the value modulo 2^32, for an odd prime
  u64 reciprocal;  // floor((2^64 - 1) / value)

  explicit Prime(u32 p);

  // Below 2^31, sums of two residues fit 32 bits, and factors w are stored as Shoup does, (w, floor(2^32 w /
  // p)). Else they are stored as P. Montgomery does, (W, W / p mod 2^32) with W = 2^32 w mod p.
  bool is_narrow() const { return value >> 31 == 0; }
  Factor factor(u32 w) const;

  // That of 2^32, by which the loops find others.
  Factor two_to_32() const { return factor(static_cast<u32>((u64{1} << 32) % value)); }
};

// Rows of kLanes words, `stride` words apart.
template <class T>
struct RowsOf {
  T* data;
  i64 stride;

  operator RowsOf<const T>() const { return {data, stride}; }
  RNS_INLINE T* row(i64 r) const { return data + r * stride; }
  RNS_INLINE RowsOf from(i64 r) const { return {row(r), stride}; }
};
using Rows = RowsOf<u32>;
using ConstRows = RowsOf<const u32>;

// Factors in two tables.
struct Factors {
  u32* values;
  u32* quotients;
};

// Loops for one instruction set and one kind of prime; all give the same. roots[half + k] is the factor of
// the power k of a root of unity of order 2 half.
struct TileLoops {
  // Transforms of all columns, by decimation in frequency: row r of the tile is X_j with j the reverse of r
  // in bits.
  void (*forward)(ConstRows from, u32* tile, i64 length, const Factor* roots, Prime p);

  // What undoes it, times the length, with the inverse roots: by decimation in time, from that order of rows,
  // in the tile, which it uses up.
  void (*inverse)(u32* tile, Rows to, i64 length, const Factor* roots, Prime p);

  // Row r times the factors of its columns, and times numbers[r].
  void (*multiply)(ConstRows from, Rows to, i64 length, Factors columns, Factors numbers, Prime p);

  // The factors of the powers 0 to kLanes - 1 of each of `count` numbers, in a row for each.
  void (*powers)(Factors numbers, i64 count, Factors rows, Prime p);

  // x[k] becomes its product with y[k], and factors[k] the factor of that.
  void (*multiply_factors)(u32* x, Factors y, i64 count, Factors factors, Prime p);

  // x y / 2^32 times a factor.
  void (*product)(u32* x, const u32* y, i64 count, Factor factor, Prime p);
  void (*scale)(u32* x, i64 count, Factor factor, Prime p);

  // Column k of the tile from, or to, lines[k], `length` words each; row r is word r of it, or row order[r]
  // is.
  void (*gather)(const u32* const* lines, i64 length, u32* tile);
  void (*scatter)(const u32* tile, i64 length, const i64* order, i64 width, u32* const* lines);

  // Row order[r] of a tile is row r of the result.
  void (*copy_rows)(const u32* tile, i64 length, const i64* order, Rows to);
};

// The loops by one of the instruction sets that this processor has, the portable ones first, the best last.
std::vector<std::string> transform_methods();
const TileLoops& tile_loops(const std::string& method, bool narrow);

}  // namespace rns
