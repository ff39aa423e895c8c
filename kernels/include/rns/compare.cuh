// What two 64-bit evaluations ("keys") say about the order of their numbers.
#pragma once

#include "base.cuh"

namespace rns {

constexpr i32 kUndecided = 2;

// -1, 0 or +1 as the first number is less than, equal to or greater than the second, or kUndecided. A key
// exceeds its exact value by at most `slack`, unless it is ambiguous: then it says nothing about order.
// `difference` is 0 if all residues are equal. Written as a chain of selections, which compilers vectorise.
RNS_INLINE i32 compare_keys(u64 a, u64 b, u32 difference, u64 slack, u64 ambiguous_below) {
  const u64 distance = a > b ? a - b : b - a;
  i64 order = a > b ? 1 : -1;
  order = distance <= slack ? kUndecided : order;
  order = a < ambiguous_below ? kUndecided : order;
  order = b < ambiguous_below ? kUndecided : order;
  return static_cast<i32>(difference == 0 ? 0 : order);
}

}  // namespace rns
