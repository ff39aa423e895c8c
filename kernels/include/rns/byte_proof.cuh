// Proof of a bound by products of bytes, the scalar part: a number's quotient from its fixed-point sum, and
// whether a residue is that of another sum (docs/mathematics.md, section 4).
#pragma once

#include "base.cuh"

namespace rns {

constexpr i32 kProofRun = 8;        // residues whose bytes become words together
constexpr i32 kMostProofWords = 6;  // of 32 bits, of a fraction

// To each fraction `start` is added; then it is at most `room` if the number is within the bound. The lowest
// word is first.
struct ProofWindow {
  u32 start[kMostProofWords];
  u32 room[kMostProofWords];
};

// What tells whether a residue modulo an odd m is that of a sum.
struct ResidueTest {
  u32 modulus;
  u32 inverse;  // of m modulo 2^32
  u32 most;     // floor((2^32 - 1) / m)
  u32 unused;
};

// Word w of the bytes of a run of residues, `Bytes` of each.
template <i32 Bytes>
RNS_INLINE u32 word_of_bytes(const u32 (&residues)[kProofRun], i32 w) {
  const i32 first = 4 * w / Bytes, skipped = 4 * w % Bytes;
  u32 word = residues[first] >> (8 * skipped);
  for (i32 k = 1; k * Bytes - skipped < 4; ++k) word |= residues[first + k] << (8 * (k * Bytes - skipped));
  return word;
}

// A number's sum of fractions, word by word from the lowest one on: `Words` of the fraction, then the
// quotient in one or two.
template <i32 Words>
struct ProofFraction {
  u64 carry = 0;
  bool is_in = true;
  u32 quotient[2] = {};

  // The next word, given by a sum below 2^63; the first of the window's words that are left.
  RNS_INLINE void add(i32 word, u64 sum, const ProofWindow& window) {
    carry += sum;
    if (word < Words) carry += window.start[word];
    const u32 own = static_cast<u32>(carry);
    carry >>= 32;
    if (word < Words) {
      is_in = own < window.room[word] || (own == window.room[word] && is_in);
    } else {
      quotient[word - Words] = own;
    }
  }
};

// Whether x is the residue of a sum that is below 2^32 with m.
RNS_INLINE bool has_residue(u32 sum, ResidueTest test, u32 x) {
  return (sum + (test.modulus - x)) * test.inverse <= test.most;
}

// The same of a sum below 2^32 m.
RNS_INLINE bool has_residue(u64 sum, ResidueTest test, u32 x) {
  sum += test.modulus - x;
  const u32 multiple = static_cast<u32>(sum) * test.inverse;  // sum / m, if m divides it
  return static_cast<u64>(multiple) * test.modulus >> 32 == sum >> 32;
}

}  // namespace rns
