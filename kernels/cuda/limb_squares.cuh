// Squares of numbers whose limbs are in several lanes of a warp, by little more than half of the products of
// limbs: of x = x_0 + x_1 B first x_0 x_1, of each half likewise, down to the squares of half a lane's limbs.
#pragma once

#include "limb_lanes.cuh"

// Half of a lane's limbs must be pairs.
#define RNS_SQUARES (RNS_LANES > 1 && RNS_LIMBS % 4 == 0 && RNS_ROWS > 0 && RNS_LIMBS / 2 % RNS_ROWS == 0)

#if RNS_SQUARES

namespace rns {

constexpr i32 kHalf = RNS_LIMBS / 2;

// What the lanes of a warp share; a number's words are kNumbers apart, from its place among the numbers on.
struct SquareWords {
  u32 total[64 * RNS_LIMBS];
  u32 carried[128];  // to each kHalf limbs of the total, from those below
};

// Of each lane, or groups of them, a power of 2: adds the product of the lower half of its limbs and the
// upper one.
__device__ __forceinline__ void add_product_of_halves(const u32* x, u32* total, u32* carried, i32 lanes) {
  const i32 part = lane() / kNumbers, place = part & (lanes - 1), rows = lanes * kHalf;
  const bool is_lowest = place == 0, is_highest = place == lanes - 1;
  const u32* const other = x + ((part - place) * RNS_LIMBS + rows) * kNumbers;
  u32* const to = total + (2 * (part - place) * RNS_LIMBS + rows) * kNumbers;
  u32 limbs[kHalf], sum[kHalf];
#pragma unroll
  for (i32 i = 0; i < kHalf; ++i) {
    limbs[i] = x[((part - place) * RNS_LIMBS + place * kHalf + i) * kNumbers];
    sum[i] = to[(place * kHalf + i) * kNumbers];
  }
  __syncwarp();
  LaneSums<kHalf> sums;
  sums.set(sum);
#pragma unroll 1
  for (i32 done = 0; done < rows; done += RNS_ROWS) {
#pragma unroll
    for (i32 step = 0; step < RNS_ROWS; ++step) {
      const u32 next = to[(rows + done + step) * kNumbers];
      sums.add_product(limbs, other[(done + step) * kNumbers]);
      const u32 low = sums.lowest(), above = of_lane(low, lane() + kNumbers);
      if (is_lowest) to[(done + step) * kNumbers] = low;
      sums.shift(is_highest ? next : above);
    }
  }
  __syncwarp();
  const u32 above = sums.resolve(sum, is_lowest);
#pragma unroll
  for (i32 i = 0; i < kHalf; ++i) to[(rows + place * kHalf + i) * kNumbers] = sum[i];
  if (is_highest) carried[(4 * (part - place) + 3 * lanes) * kNumbers] = above;
  __syncwarp();
}

// total = 2 total + the squares of both halves of the limbs of each lane.
__device__ __forceinline__ void add_squares_of_halves(const u32* x, u32* total, u32* carried) {
  const i32 part = lane() / kNumbers;
  const u32* own = x + part * RNS_LIMBS * kNumbers;
  u32* to = total + 2 * part * RNS_LIMBS * kNumbers;
  u32 last = part == 0 ? 0 : to[-kNumbers], above = 0;
  const auto doubled = [&](i32 i) {
    const u32 limb = to[i * kNumbers], twice = limb << 1 | last >> 31;
    last = limb;
    return twice;
  };
  __syncwarp();
#pragma unroll 1
  for (i32 half = 0; half < 2; ++half, own += kHalf * kNumbers, to += RNS_LIMBS * kNumbers) {
    u32 limbs[kHalf], sum[kHalf];
#pragma unroll
    for (i32 i = 0; i < kHalf; ++i) {
      limbs[i] = own[i * kNumbers];
      sum[i] = doubled(i);
    }
    LaneSums<kHalf> sums;
    sums.set(sum);
    sums.rest = 2 * carried[(4 * part + 2 * half) * kNumbers] + above;
    sums.even_carry = 2 * carried[(4 * part + 2 * half + 1) * kNumbers];
#pragma unroll 1
    for (i32 done = 0; done < kHalf; done += RNS_ROWS) {
#pragma unroll
      for (i32 step = 0; step < RNS_ROWS; ++step) {
        sums.add_product(limbs, own[(done + step) * kNumbers]);
        to[(done + step) * kNumbers] = sums.lowest();
        sums.shift(doubled(kHalf + done + step));
      }
    }
    above = sums.within_lane(sum);
#pragma unroll
    for (i32 i = 0; i < kHalf; ++i) to[(kHalf + i) * kNumbers] = sum[i];
  }
  __syncwarp();
#pragma unroll
  for (i32 i = 1; i < 4; ++i) carried[(4 * part + i) * kNumbers] = 0;
  carried[(part == RNS_LANES - 1 ? 0 : 4 * part + 4) * kNumbers] = above;  // 0 from the highest
  __syncwarp();
}

// The square of x, of which all lanes can read all limbs: in `total`, to which what is carried is yet to be
// added.
__device__ __forceinline__ void square(const u32* x, SquareWords& words) {
  const i32 number = lane() % kNumbers;
#pragma unroll 1
  for (i32 i = lane(); i < 64 * RNS_LIMBS; i += 32) words.total[i] = 0;
#pragma unroll
  for (i32 i = 0; i < 4; ++i) words.carried[lane() + 32 * i] = 0;
  __syncwarp();
#pragma unroll 1
  for (i32 lanes = RNS_LANES; lanes > 0; lanes /= 2) {
    add_product_of_halves(x, words.total + number, words.carried + number, lanes);
  }
  add_squares_of_halves(x, words.total + number, words.carried + number);
}

}  // namespace rns

#endif
