// Positional numbers in tiles of 8, side by side: limbs of 32 bits, as they are stored, and digits of 52
// bits, by which they are multiplied.
#pragma once

#include <string>
#include <vector>

#include "residues.hpp"

namespace rns {

constexpr i64 kPositionalLanes = 8;
constexpr int kDigitBits = 52;
constexpr i64 kDigitTile = 4;  // digits of a tile of products

// One digit, or one sum of products of digits, of each number.
typedef u64 Lanes __attribute__((vector_size(64), aligned(64), may_alias));

// Memory of digits. A vector of Lanes would not know how they are aligned: attributes are no part of its
// type.
class LaneVector {
 public:
  void resize(i64 count) { lanes_.resize(count); }
  Lanes* data() { return reinterpret_cast<Lanes*>(lanes_.data()); }
  const Lanes* data() const { return reinterpret_cast<const Lanes*>(lanes_.data()); }

 private:
  struct alignas(64) Aligned {
    u64 lane[kPositionalLanes];
  };
  std::vector<Aligned> lanes_;
};

// How many digits hold so many bits: whole tiles of them.
inline i64 digits_for(i64 bits) {
  const i64 digits = (bits + kDigitBits - 1) / kDigitBits;
  return (digits + kDigitTile - 1) / kDigitTile * kDigitTile;
}

// Limb i of number j is data[i * stride + j].
struct LimbRows {
  const u32* data;
  i64 limbs;
  i64 stride;

  const u32* row(i64 i) const { return data + i * stride; }
};

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

// One modulus for each number, odd, in `digits` digits that hold 4 times as much; their inverses modulo 2^52,
// negated.
struct MontgomeryTile {
  i64 digits;
  LaneVector modulus, square;  // of R = 2^(52 digits), modulo the modulus
  Lanes inverse;
};

// x y + z modulo 2^bits. `addend` may have no limbs. Unless `flags` is null, it becomes 1 for each number
// that the result does not hold, else 0.
using MultiplyTile = void (*)(const LimbRows& x, const LimbRows& y, const LimbRows& addend,
                              const LimbResult& out, u8* flags, PositionalScratch& scratch);
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

struct PositionalLoops {
  MultiplyTile multiply;
  AddModular add_modular;
  LoadMontgomery load_montgomery;
  MontgomeryMultiply montgomery_multiply;
  MontgomeryPower montgomery_power;
};

// Digits of R = 2^(52 digits), which is at least 4 times every number of so many limbs.
inline i64 montgomery_digits(i64 limbs) { return (32 * limbs + 2 + kDigitBits - 1) / kDigitBits; }

// All loops give the same: "portable" and, where the processor has AVX-512 IFMA, "ifma".
std::vector<std::string> positional_methods();
const PositionalLoops& positional_loops(const std::string& method);

}  // namespace rns
