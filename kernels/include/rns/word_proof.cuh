// Proof of a bound by one fixed-point evaluation in words, the scalar part: of sums of products, one for each
// word, whether they are those of a number within the bound (docs/mathematics.md, section 4).
#pragma once

#include "base.cuh"

namespace rns {

constexpr i32 kMostProofWords = 8;
constexpr i32 kMostProofCoefficients = 256;  // of all moduli

// How the words of a sum are read, of up to 31 bits each. `start` is added to it; then the number is within
// the bound if the first two words together are at most `room`, and the others 0.
struct WordWindow {
  u64 start[kMostProofWords];
  u64 room;
  i64 word_bits;
  u32 masks[kMostProofWords];  // of what counts of each word: sums wrap behind the last one
};

// Of sums below 2^63, to which `start` is added.
template <i32 Words>
RNS_INLINE bool is_in_window(const u64 (&sums)[Words], const WordWindow& window) {
  const i32 bits = static_cast<i32>(window.word_bits);
  u64 carry = 0, low = 0;
  u32 above = 0;
#pragma unroll
  for (i32 k = 0; k < Words; ++k) {
    const u64 sum = sums[k] + carry;
    const u32 word = static_cast<u32>(sum) & window.masks[k];
    carry = sum >> bits;
    if (k < 2) {
      low |= static_cast<u64>(word) << (k * bits);
    } else {
      above |= word;
    }
  }
  return above == 0 && low <= window.room;
}

}  // namespace rns
