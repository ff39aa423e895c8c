// The tests by which keys prove that a result is in range, or that it is not.
#pragma once

#include "modular.cuh"

namespace rns {

// What is known of a result: it fits, it overflows, or other means must decide.
constexpr u8 kFits = 0;
constexpr u8 kOverflows = 1;
constexpr u8 kOpen = 2;

// With h, half the sum or difference of two numbers' keys, the result fits if h is from `fits_lowest` on less
// than `fits_width` away, and overflows if h is not within `open_width` of `open_lowest`. A key below
// `ambiguous_below` may have wrapped. rnsdask/constants/arithmetic.py derives the limits.
struct SumTest {
  u64 ambiguous_below;
  u64 fits_lowest;
  u64 fits_width;
  u64 open_lowest;
  u64 open_width;
};

RNS_INLINE u8 sum_state(u64 x, u64 y, bool subtract, SumTest test) {
  const u64 h = subtract ? (x >> 1) - (y >> 1) : (x >> 1) + (y >> 1);
  const bool ambiguous = x < test.ambiguous_below || y < test.ambiguous_below;
  const bool fits = h - test.fits_lowest < test.fits_width;
  const bool open = ambiguous || h - test.open_lowest < test.open_width;
  return fits && !ambiguous ? kFits : open ? kOpen : kOverflows;
}

// One operand decides: the result fits if that operand's key is in the first window, it overflows if the key
// is outside of the second one. Both include their ends. A key below `ambiguous_below` may have wrapped.
struct WindowTest {
  u64 ambiguous_below;
  u64 fits_first;
  u64 fits_last;
  u64 open_first;
  u64 open_last;
};

RNS_INLINE u8 window_state(u64 key, WindowTest test) {
  const bool fits = key >= test.fits_first && key <= test.fits_last;
  const bool open = key < test.ambiguous_below || (key >= test.open_first && key <= test.open_last);
  return fits ? kFits : open ? kOpen : kOverflows;
}

}  // namespace rns
