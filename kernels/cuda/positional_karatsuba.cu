// Exact products of positional numbers whose limbs are in the registers of several lanes of a warp, by A.
// Karatsuba's method: x y = x_0 y_0 + (x_0 y_0 + x_1 y_1 - (x_0 - x_1)(y_0 - y_1)) B + x_1 y_1 B^2. The
// product of differences is taken by all lanes, each with half of its limbs; then those of lower halves by
// the lower half of the lanes, and of upper ones by the others at once. Each goes by rows, as in
// limb_lanes.cuh.
#include "grid.cuh"
#include "limb_lanes.cuh"
#include "product_task.cuh"

using namespace rns;

namespace {

constexpr i32 kBlock = 64;

// Registers for 12 warps at once, where lanes have many limbs.
#if RNS_LIMBS > 24
#define LANE_BOUNDS __launch_bounds__(kBlock, 6)
#else
#define LANE_BOUNDS
#endif

#if RNS_ROWS > 0

constexpr i32 kPart = RNS_LIMBS / 2;           // limbs of a lane where all lanes have one half of a number
constexpr i32 kHalfLimbs = RNS_LANES * kPart;  // of half a number
constexpr i32 kHalfWords = kHalfLimbs * kNumbers;          // of these of a warp
constexpr i32 kLanes = RNS_LANES > 1 ? RNS_LANES / 2 : 1;  // of a half

// What the lanes of a warp share: halves of numbers, limb after limb, each of all numbers.
struct Halves {
  u32 lower[kHalfWords];  // of x_0 y_0; before that |y_0 - y_1|
  u32 upper[kHalfWords];
  u32 next[kHalfWords];        // the lower half of x_1 y_1
  u32 middle[2 * kHalfWords];  // |x_0 - x_1| |y_0 - y_1|
};

// The lane's limbs of |x_0 - x_1|; returns whether x_0 > x_1.
__device__ bool distance(const LimbOperand& x, i64 j, i32 part, u32* to) {
  u32 other[kPart], all_ones = ~0u;
  load_from<kPart>(to, x, j, part * kPart);
  load_from<kPart>(other, x, j, kHalfLimbs + part * kPart);
#pragma unroll
  for (i32 i = 0; i < kPart; ++i) other[i] = ~other[i];
  const u32 carry = add_to_limbs<kPart>(to, other, 0);  // x_0 - x_1 - 1
#pragma unroll
  for (i32 i = 0; i < kPart; ++i) all_ones &= to[i];
  const bool propagates = all_ones == ~0u, is_lowest = part == 0;
  const i32 highest = 32 - kNumbers + lane() % kNumbers;
  const bool is_greater = (carries(carry != 0, propagates) >> highest & 1) != 0;
  const u32 passed = carries(carry != 0 || (propagates && is_lowest && is_greater), propagates);
  add_one_limb<kPart>(to, is_lowest ? u32{is_greater} : passed << kNumbers >> lane() & 1);
  const u32 flip = is_greater ? 0 : ~0u;  // -z - 1 is ~z
#pragma unroll
  for (i32 i = 0; i < kPart; ++i) to[i] ^= flip;
  return is_greater;
}

// The middle of the product but for x_0 y_0 + x_1 y_1; returns whether it is to be subtracted.
__device__ __forceinline__ bool multiply_distances(const ProductTask& task, i64 j, Halves& halves) {
  const i32 number = lane() % kNumbers, part = lane() / kNumbers;
  u32* const factor = halves.lower + number;
  u32* const middle = halves.middle + number;
  u32 x[kPart];
  const bool y_is_greater = distance(task.y, j, part, x);
#pragma unroll
  for (i32 i = 0; i < kPart; ++i) factor[(part * kPart + i) * kNumbers] = x[i];
  const bool x_is_greater = distance(task.x, j, part, x);
  __syncwarp();
  LaneSums<kPart> sums;
  sums.clear();
#pragma unroll 1
  for (i32 done = 0; done < kHalfLimbs; done += RNS_ROWS) {
#pragma unroll
    for (i32 step = 0; step < RNS_ROWS; ++step) {
      sums.add_product(x, factor[(done + step) * kNumbers]);
      const u32 low = sums.lowest();
      if (part == 0) middle[(done + step) * kNumbers] = low;
      sums.shift(of_lane(part == 0 ? 0 : low, lane() + kNumbers));
    }
  }
  sums.resolve(x);
#pragma unroll
  for (i32 i = 0; i < kPart; ++i) middle[(kHalfLimbs + part * kPart + i) * kNumbers] = x[i];
  __syncwarp();
  return x_is_greater == y_is_greater;
}

// x_0 y_0 and x_1 y_1: their lower halves and the lowest upper one are shared, `upper` gets the lane's limbs
// of either.
__device__ __forceinline__ void multiply_halves(const ProductTask& task, const Share& share, Halves& halves,
                                                u32* upper) {
  const i32 part = lane() / kNumbers, place = part % kLanes;
  const bool is_lowest = place == 0;
  const i32 first = part < kLanes ? 0 : kHalfLimbs;
  u32* const lower = (part < kLanes ? halves.lower : halves.next) + lane() % kNumbers;
  u32 x[RNS_LIMBS], y[RNS_ROWS], next[RNS_ROWS];
  share.load(x, task.x);
  load_from<RNS_ROWS>(next, task.y, share.j, first);
  LaneSums<> sums;
  sums.clear();
#pragma unroll 1
  for (i32 done = 0; done < kHalfLimbs; done += RNS_ROWS) {
#pragma unroll
    for (i32 i = 0; i < RNS_ROWS; ++i) y[i] = next[i];
    load_from<RNS_ROWS>(next, task.y, share.j, first + done + RNS_ROWS);
#pragma unroll
    for (i32 step = 0; step < RNS_ROWS; ++step) {
      sums.add_product(x, y[step]);
      const u32 low = sums.lowest();
      if (is_lowest) lower[(done + step) * kNumbers] = low;
      sums.shift(kLanes == 1 ? 0 : of_lane(is_lowest ? 0 : low, lane() + kNumbers));
    }
  }
  sums.resolve(upper, is_lowest);
  if (part >= kLanes) return;
#pragma unroll
  for (i32 i = 0; i < RNS_LIMBS; ++i) {
    halves.upper[(part * RNS_LIMBS + i) * kNumbers + lane() % kNumbers] = upper[i];
  }
}

// Adds a lane's limbs, which are shared, or their complements.
__device__ __forceinline__ u32 add_shared(u32* limbs, const u32* shared, i32 first, u32 flip, u32 carry) {
  u32 term[RNS_LIMBS];
#pragma unroll
  for (i32 i = 0; i < RNS_LIMBS; ++i) term[i] = shared[(first + i) * kNumbers + lane() % kNumbers] ^ flip;
  return add_to_limbs<RNS_LIMBS>(limbs, term, carry);
}

#endif

}  // namespace

#if RNS_ROWS > 0

extern "C" {

__global__ void LANE_BOUNDS multiply_by_karatsuba(ProductTask task) {
  const Share share(thread_index() / 32, task.count);
  __shared__ Halves shared[kBlock / 32];
  Halves& halves = shared[threadIdx.x / 32];
  const i32 part = lane() / kNumbers, first = part * RNS_LIMBS;
  const u32 subtracts = multiply_distances(task, share.j, halves) ? ~0u : 0;
  u32 middle[RNS_LIMBS], outer[RNS_LIMBS];
  multiply_halves(task, share, halves, middle);
  __syncwarp();
#pragma unroll
  for (i32 i = 0; i < RNS_LIMBS; ++i) outer[i] = part < kLanes ? 0 : middle[i];
  // Of the two quarters in the middle each is an upper half and the lower one of x_1 y_1, and what is beside.
  u32 above = add_shared(middle, halves.lower, first, 0, 0);  // goes on into `upper`
  above += add_shared(middle, halves.next, part % kLanes * RNS_LIMBS, 0, 0);
  above += add_shared(middle, halves.middle, first, subtracts, part == 0 ? subtracts & 1 : 0);
  above = pass_on<RNS_LIMBS>(middle, above, part == 0) - (subtracts & 1);
  const u32 carry = of_lane(above, 32 - kNumbers + lane() % kNumbers);
  pass_on<RNS_LIMBS>(outer, part == kLanes - 1 ? carry : 0, part == 0);
  if (part < kLanes) {
    u32 lower[RNS_LIMBS] = {};
    add_shared(lower, halves.lower, first, 0, 0);
#pragma unroll
    for (i32 i = 0; i < RNS_LIMBS; ++i) outer[i] = lower[i];
  }
  if (!share.is_stored) return;
  Result result(task, share.j);
  result.take_all<RNS_LIMBS>(outer, part < kLanes ? first : 2 * kHalfLimbs + first);
  result.take_all<RNS_LIMBS>(middle, kHalfLimbs + first);
}

}  // extern "C"

#endif
