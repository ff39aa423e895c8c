// Proof of a bound by products of bytes, the scalar part: of a number's fixed-point sum, whether it is that
// of one within the bound (docs/mathematics.md, section 4).
#pragma once

#include "base.cuh"

namespace rns {

constexpr i32 kProofWords = 8;  // of 32 bits, that are known of a sum at a time
constexpr i32 kProofRun = 8;    // residues whose bytes become words together

// To each sum `start` is added; then it is at most `room` if the number is within the bound. Of both the
// lower half is first.
struct ProofWindow {
  u64 start[2];
  u64 room[2];
};

// Word w of the bytes of a run of residues, `Bytes` of each.
template <i32 Bytes>
RNS_INLINE u32 word_of_bytes(const u32 (&residues)[kProofRun], i32 w) {
  const i32 first = 4 * w / Bytes, skipped = 4 * w % Bytes;
  u32 word = residues[first] >> (8 * skipped);
  for (i32 k = 1; k * Bytes - skipped < 4; ++k) word |= residues[first + k] << (8 * (k * Bytes - skipped));
  return word;
}

// A sum, of which words become known from the lowest on.
struct ProofSum {
  u64 carry = 0;
  u64 low[2] = {};
  u32 above = 0;  // the bits of all words behind these

  // The words from `word` on, each given by a sum below 2^63; they count up to word `end`.
  RNS_INLINE void add(const u64 (&sums)[kProofWords], const ProofWindow& window, i32 word, i32 end) {
#pragma unroll
    for (i32 k = 0; k < kProofWords; ++k) {
      u64 sum = sums[k] + carry;
      const bool is_low = k < 4 && word == 0;
      if (is_low) sum += static_cast<u32>(window.start[k / 2] >> (32 * (k % 2)));
      const u32 value = static_cast<u32>(sum);
      carry = sum >> 32;
      if (is_low) {
        low[k / 2] |= static_cast<u64>(value) << (32 * (k % 2));
      } else if (word + k < end) {
        above |= value;
      }
    }
  }

  RNS_INLINE bool is_in(const ProofWindow& window) const {
    const bool is_less = low[1] < window.room[1] || (low[1] == window.room[1] && low[0] <= window.room[0]);
    return above == 0 && is_less;
  }
};

}  // namespace rns
