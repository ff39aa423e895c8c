// Proof of a bound by products of bytes, the scalar part: the first moduli's residues become bytes, sums of
// whose products say what number they are, and what its other residues are (docs/mathematics.md, section 4).
#pragma once

#include "modular.cuh"

namespace rns {

// One of the first moduli: what its residues are multiplied by, |1 / (M' / m)| modulo m, and m - 1.
struct ProofSource {
  Factor weight;
  u32 last;
  u32 unused;
};
static_assert(sizeof(ProofSource) == 4 * sizeof(u32), "a row of a table");

// One of the others, and |-M'| modulo it.
struct ProofTarget {
  Modulus modulus;
  u32 product;
};
static_assert(sizeof(ProofTarget) == 5 * sizeof(u32), "a row of a table");

// Sums are in units of 2^-fraction_bits of M'. To one `start` is added; then the number is within the bound
// if its fraction is at most `room`. Of both the lower half is first.
struct ProofWindow {
  u64 start[2];
  u64 room[2];
  i64 fraction_bits;
};

constexpr i32 kProofRun = 8;   // moduli whose residues become words together
constexpr i32 kProofSums = 8;  // words of a sum, of as many bits as residues have

// Word w of the bytes of a run of numbers, `Bytes` of each.
template <i32 Bytes>
RNS_INLINE u32 word_of_bytes(const u32 (&numbers)[kProofRun], i32 w) {
  const i32 first = 4 * w / Bytes, skipped = 4 * w % Bytes;
  u32 word = numbers[first] >> (8 * skipped);
  if (Bytes - skipped < 4) word |= numbers[first + 1] << (8 * (Bytes - skipped));
  return word;
}

// The integer part of a sum modulo 2^128, given by sums for each `Bytes` bytes of it; and whether its
// fraction is that of a number within the bound.
template <i32 Bytes>
RNS_INLINE bool is_in_window(const u64* sums, const ProofWindow& window, u32& quotient) {
  using u128 = unsigned __int128;
  u128 total = static_cast<u128>(window.start[1]) << 64 | window.start[0];
  for (i32 w = 0; w < kProofSums && 8 * Bytes * w < 128; ++w) {
    total += static_cast<u128>(sums[w]) << (8 * Bytes * w);
  }
  const i32 bits = static_cast<i32>(window.fraction_bits);
  quotient = static_cast<u32>(total >> bits);
  const u128 fraction = total - (static_cast<u128>(quotient) << bits);
  return fraction <= (static_cast<u128>(window.room[1]) << 64 | window.room[0]);
}

}  // namespace rns
