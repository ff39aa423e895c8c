// Numbers whose limbs are in the registers of RNS_LANES lanes of a warp, RNS_LIMBS limbs each.
#pragma once

#include "limb_sums.cuh"

#ifndef RNS_LIMBS
#define RNS_LIMBS 4
#endif
#ifndef RNS_LANES
#define RNS_LANES 1
#endif

namespace rns {

// Neighbouring lanes have limbs of one weight of neighbouring numbers.
constexpr i32 kNumbers = 32 / RNS_LANES;

__device__ __forceinline__ i32 lane() { return static_cast<i32>(threadIdx.x % 32); }

// The limbs from `first` on, with zeros above.
__device__ __forceinline__ void load_from(u32* to, const LimbOperand& x, i64 j, i32 first) {
  const u32* from = x.data + first * x.stride + j * x.step;
  const i32 rest = static_cast<i32>(x.limbs) - first;
#pragma unroll
  for (i32 i = 0; i < RNS_LIMBS; ++i, from += x.stride) to[i] = i < rest ? __ldg(from) : 0;
}

// Which limbs of which number a thread takes. Lanes that have none take the last number's, and store nothing.
struct Share {
  i64 j;
  i32 first;
  bool is_stored;

  __device__ Share(i64 warp, i64 count)
      : j(warp * kNumbers + lane() % kNumbers), first(lane() / kNumbers * RNS_LIMBS), is_stored(j < count) {
    if (!is_stored) j = count - 1;
  }
  __device__ __forceinline__ void load(u32* to, const LimbOperand& x) const { load_from(to, x, j, first); }
  __device__ __forceinline__ void set(u32* to, u32 number) const {
#pragma unroll
    for (i32 i = 0; i < RNS_LIMBS; ++i) to[i] = first + i == 0 ? number : 0;
  }
  __device__ __forceinline__ void copy(u32* to, const u32* from) const {
#pragma unroll
    for (i32 i = 0; i < RNS_LIMBS; ++i) to[i] = from[i];
  }
};

#if RNS_LANES > 1

__device__ __forceinline__ u32 of_lane(u32 limb, i32 from) { return __shfl_sync(~0u, limb, from); }

// Which lanes pass a carry on, if these do by themselves and those do that get one.
__device__ __forceinline__ u32 carries(bool generates, bool propagates) {
  u32 carry = __ballot_sync(~0u, generates), all = __ballot_sync(~0u, propagates);
#pragma unroll
  for (i32 step = kNumbers; step < 32; step *= 2) {
    carry |= all & carry << step;
    all &= all << step;
  }
  return carry;
}

// Sums of columns, each lane's for its limbs. No carry is passed to another lane before all are added.
struct LaneSums {
  ColumnSum column[RNS_LIMBS];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (i32 i = 0; i < RNS_LIMBS; ++i) column[i] = {0, 0, 0};
  }
  __device__ __forceinline__ void add_product(const u32* x, u32 limb) {
#pragma unroll
    for (i32 i = 0; i < RNS_LIMBS; ++i) column[i].add_product(x[i], limb);
  }
  // All one limb down; `lowest` is what leaves the lane.
  __device__ __forceinline__ void shift(u32 lowest) {
    const u32 above = of_lane(lowest, lane() + kNumbers);
    column[1].add(column[0].high, column[0].top, 0);
#pragma unroll
    for (i32 i = 0; i + 1 < RNS_LIMBS; ++i) column[i] = column[i + 1];
    column[RNS_LIMBS - 1] = {above, 0, 0};
  }
  // The limbs, with carries within a lane, then what they leave to the next lane, then the single ones that
  // this leaves; returns what is above them, in the highest lane.
  __device__ __forceinline__ u32 resolve(u32* limbs) {
#pragma unroll
    for (i32 i = 0; i + 1 < RNS_LIMBS; ++i) column[i + 1].add(column[i].high, column[i].top, 0);
    const ColumnSum& last = column[RNS_LIMBS - 1];
    const u32 low = of_lane(last.high, lane() - kNumbers), high = of_lane(last.top, lane() - kNumbers);
    u64 carry = lane() < kNumbers ? 0 : static_cast<u64>(high) << 32 | low;
    u32 all_ones = ~0u;
#pragma unroll
    for (i32 i = 0; i < RNS_LIMBS; ++i) {
      const u64 limb = static_cast<u64>(column[i].low) + static_cast<u32>(carry);
      limbs[i] = static_cast<u32>(limb);
      carry = (carry >> 32) + (limb >> 32);
      all_ones &= limbs[i];
    }
    const u32 passed = carries(carry != 0, all_ones == ~0u);
    u32 one = passed << kNumbers >> lane() & 1;
#pragma unroll
    for (i32 i = 0; i < RNS_LIMBS; ++i) {
      limbs[i] += one;
      one = limbs[i] < one;
    }
    return last.high + (passed >> lane() & 1);
  }
};

#endif

}  // namespace rns
