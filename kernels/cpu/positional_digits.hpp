// Positional numbers in tiles of 2 to 8, side by side: limbs of 32 bits, as they are stored, and digits of as
// many bits as the instructions multiply: 52, or 29 where these are AVX2's.
#pragma once

#include <string>
#include <vector>

#include "residues.hpp"

namespace rns {

constexpr i64 kMostLanes = 8;  // numbers of a tile
constexpr i64 kDigitTile = 4;  // digits of a tile of products

// Digits, each of as many numbers as a level's vectors hold, aligned as these.
class LaneVector {
 public:
  void resize(i64 count) { lanes_.resize(count); }
  template <class Lanes>
  Lanes* as() {
    static_assert(sizeof(Lanes) <= sizeof(Aligned), "vectors must not be wider");
    return reinterpret_cast<Lanes*>(lanes_.data());
  }
  template <class Lanes>
  const Lanes* as() const {
    return reinterpret_cast<const Lanes*>(lanes_.data());
  }

 private:
  struct alignas(64) Aligned {
    u64 lane[kMostLanes];
  };
  std::vector<Aligned> lanes_;
};

// Limb i of number j is data[i * stride + j].
struct LimbRows {
  const u32* data;
  i64 limbs;
  i64 stride;

  const u32* row(i64 i) const { return data + i * stride; }
};

// Whether they are the same numbers in memory, so that a product is a square.
inline bool are_same(const LimbRows& x, const LimbRows& y) {
  return x.data == y.data && x.limbs == y.limbs && x.stride == y.stride;
}

// Where a result modulo 2^bits goes, in its canonical form: 0 or copies of the sign above it.
struct LimbResult {
  u32* data;
  i64 limbs;
  i64 stride;
  i64 bits;
  bool is_signed;

  u32* row(i64 i) const { return data + i * stride; }
};

// Memory of the loops, kept from tile to tile.
struct PositionalScratch {
  LaneVector x, y, z, sum, table;
};

// One modulus for each number, odd, in `digits` digits that hold 4 times as much; their inverses modulo
// 2^(bits of a digit), negated.
struct MontgomeryTile {
  i64 digits;
  LaneVector modulus, square;  // of R, the power of two of so many digits, modulo the modulus
  LaneVector inverse;
};

// One divisor for each number, in `digits` digits: the magnitudes, scaled by 2^(whole digits + part bits) so
// that the highest bit of the highest digit is set.
struct DivisorTile {
  i64 digits, limbs, most_whole;
  LaneVector divisor;
  LaneVector whole, part, reciprocal;  // the last of the leading two digits
  LaneVector sign;                     // all ones of negative ones
};

// x y + z modulo 2^bits. `addend` may have no limbs. Unless `flags` is null, it becomes 1 for each number
// that the result does not hold, else 0. Operands of `least` digits are multiplied by Karatsuba's method.
using MultiplyTile = void (*)(const LimbRows& x, const LimbRows& y, const LimbRows& addend,
                              const LimbResult& out, i64 least, u8* flags, PositionalScratch& scratch);
using LoadMontgomery = void (*)(const LimbRows& modulus, const LimbRows& square, MontgomeryTile& tile);
// x y modulo each modulus, of numbers that need not be below it, in no more limbs.
using MontgomeryMultiply = void (*)(const MontgomeryTile& modulus, const LimbRows& x, const LimbRows& y,
                                    const LimbResult& out, PositionalScratch& scratch);
// x^exponent likewise, of exponents below 2^bits, by windows of `window` bits; x^0 is 1 modulo the modulus.
using MontgomeryPower = void (*)(const MontgomeryTile& modulus, const LimbRows& x, const LimbRows& exponent,
                                 i64 bits, int window, const LimbResult& out, PositionalScratch& scratch);

// x + y or x - y modulo each modulus, in the limbs of the result; whether all operands of `lanes` numbers are
// below the moduli, else the result means nothing.
using AddModular = bool (*)(const LimbRows& x, const LimbRows& y, const LimbRows& modulus, bool subtract,
                            i64 lanes, const LimbResult& out, PositionalScratch& scratch);

using LoadDivisor = void (*)(const LimbRows& y, bool is_signed, DivisorTile& tile,
                             PositionalScratch& scratch);
// Quotients, rounded down, and remainders of the divisor's sign, as far as the results' limbs hold them. By 0
// they mean nothing.
using Divide = void (*)(const DivisorTile& divisor, const LimbRows& x, bool is_signed,
                        const LimbResult& quotient, const LimbResult& remainder, PositionalScratch& scratch);

// x y modulo each divisor, of numbers without a sign.
using ModMultiply = void (*)(const DivisorTile& divisor, const LimbRows& x, const LimbRows& y,
                             const LimbResult& out, PositionalScratch& scratch);

// Inverses modulo odd numbers, of others in no more limbs; 1 in `has_none` of those that have none.
using Invert = void (*)(const LimbRows& x, const LimbRows& modulus, const LimbResult& out, u8* has_none,
                        PositionalScratch& scratch);

struct PositionalLoops {
  i64 lanes;
  int digit_bits;
  i64 least_halved_digits;              // from which Karatsuba's products are quicker, as measured
  i64 (*montgomery_digits)(i64 limbs);  // of R, which is at least 4 times every number of so many limbs
  MultiplyTile multiply;
  LoadMontgomery load_montgomery;
  MontgomeryMultiply montgomery_multiply;
  MontgomeryPower montgomery_power;
  LoadDivisor load_divisor;
  Divide divide;
  ModMultiply mod_multiply;
  Invert invert;
};

struct ModularSums {
  i64 lanes;
  AddModular add_modular;
};

// The levels of instructions that the processor has of "avx2" and "ifma", the best last: all give the same,
// but for R.
std::vector<std::string> positional_levels();
const PositionalLoops& positional_loops(const std::string& level);
// Of a level, or without one.
const ModularSums& modular_sums(const std::string& level);

}  // namespace rns
