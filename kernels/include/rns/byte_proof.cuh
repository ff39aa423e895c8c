// Proof of a bound by products of bytes, the scalar part: of a number's fixed-point sum, whether it is that
// of one within the bound (docs/mathematics.md, section 4).
#pragma once

#include "base.cuh"

namespace rns {

constexpr i32 kProofRun = 8;  // residues whose bytes become words together
constexpr i32 kLowWords = 4;  // of 32 bits, the only ones of a number's sum that may be other than 0

// To each sum `start` is added; then the low words are at most `room` if the number is within the bound. Of
// both the lowest word is first.
struct ProofWindow {
  u32 start[kLowWords];
  u32 room[kLowWords];
};

// Word w of the bytes of a run of residues, `Bytes` of each.
template <i32 Bytes>
RNS_INLINE u32 word_of_bytes(const u32 (&residues)[kProofRun], i32 w) {
  const i32 first = 4 * w / Bytes, skipped = 4 * w % Bytes;
  u32 word = residues[first] >> (8 * skipped);
  for (i32 k = 1; k * Bytes - skipped < 4; ++k) word |= residues[first + k] << (8 * (k * Bytes - skipped));
  return word;
}

// A segment of the words of a sum, with no carry from the one before it. With that all of its words should be
// 0: so without it the first one is the carry's complement, and the others are 0 or, if it is not, all ones.
struct ProofSegment {
  u32 carry = 0;
  u32 first = 0;
  u32 wrong = 0;

  // The next word, given by a sum below 2^63.
  RNS_INLINE u32 next(u64 sum) {
    sum += carry;
    carry = static_cast<u32>(sum >> 32);
    return static_cast<u32>(sum);
  }

  // A word behind the first one.
  RNS_INLINE void compare(u32 word) { wrong |= word ^ (first == 0 ? 0 : ~u32{0}); }

  // What it carries if it is right.
  RNS_INLINE u32 carried() const { return carry + (first != 0); }
};

}  // namespace rns
