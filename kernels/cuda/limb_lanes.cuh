// Numbers whose limbs are in the registers of RNS_LANES lanes of a warp, RNS_LIMBS limbs each; where sums of
// products go by rows, an even number, of which RNS_ROWS are added without a loop.
#pragma once

#include "limb_sums.cuh"

#ifndef RNS_LIMBS
#define RNS_LIMBS 4
#endif
#ifndef RNS_LANES
#define RNS_LANES 1
#endif
#ifndef RNS_ROWS
#define RNS_ROWS 0
#endif

namespace rns {

// Neighbouring lanes have limbs of one weight of neighbouring numbers.
constexpr i32 kNumbers = 32 / RNS_LANES;

__device__ __forceinline__ i32 lane() { return static_cast<i32>(threadIdx.x % 32); }

// Limbs from `first` on, with zeros above.
template <i32 kLimbs = RNS_LIMBS>
__device__ __forceinline__ void load_from(u32* to, const LimbOperand& x, i64 j, i32 first) {
  const u32* from = x.data + first * x.stride + j * x.step;
  const i32 rest = static_cast<i32>(x.limbs) - first;
#pragma unroll
  for (i32 i = 0; i < kLimbs; ++i, from += x.stride) to[i] = i < rest ? __ldg(from) : 0;
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

#if RNS_ROWS > 0

__device__ __forceinline__ u32 of_lane(u32 limb, i32 from) {
  return RNS_LANES == 1 ? limb : __shfl_sync(~0u, limb, from);
}

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

__device__ __forceinline__ u32 low_of(u64 pair) { return static_cast<u32>(pair); }
__device__ __forceinline__ u32 high_of(u64 pair) { return static_cast<u32>(pair >> 32); }
// As one instruction of its own, so that the compiler keeps pairs in neighbouring registers.
__device__ __forceinline__ u64 pair_of(u32 low, u32 high) {
  u64 pair;
  asm("mov.b64 %0, {%1, %2};" : "=l"(pair) : "r"(low), "r"(high));
  return pair;
}

// s += x y + carry, and the carry out of that. All of a chain is one statement, so that nothing can come
// between a carry and its use; a product of limbs is one IMAD.WIDE with carry.
__device__ __forceinline__ void add_to_pair(u32* s, const u32* x, u32 y, u32& carry) {
  asm("add.cc.u32 %2, %2, 0xffffffff;\n\t"
      "madc.lo.cc.u32 %0, %3, %4, %0;\n\t"
      "madc.hi.cc.u32 %1, %3, %4, %1;\n\t"
      "addc.u32 %2, 0, 0;"
      : "+&r"(s[0]), "+&r"(s[1]), "+&r"(carry)
      : "r"(x[0]), "r"(y));
}
__device__ __forceinline__ void add_to_eight_pairs(u32* s, const u32* x, u32 y, u32& carry) {
  asm("add.cc.u32 %16, %16, 0xffffffff;\n\t"
      "madc.lo.cc.u32 %0, %17, %25, %0;\n\t"
      "madc.hi.cc.u32 %1, %17, %25, %1;\n\t"
      "madc.lo.cc.u32 %2, %18, %25, %2;\n\t"
      "madc.hi.cc.u32 %3, %18, %25, %3;\n\t"
      "madc.lo.cc.u32 %4, %19, %25, %4;\n\t"
      "madc.hi.cc.u32 %5, %19, %25, %5;\n\t"
      "madc.lo.cc.u32 %6, %20, %25, %6;\n\t"
      "madc.hi.cc.u32 %7, %20, %25, %7;\n\t"
      "madc.lo.cc.u32 %8, %21, %25, %8;\n\t"
      "madc.hi.cc.u32 %9, %21, %25, %9;\n\t"
      "madc.lo.cc.u32 %10, %22, %25, %10;\n\t"
      "madc.hi.cc.u32 %11, %22, %25, %11;\n\t"
      "madc.lo.cc.u32 %12, %23, %25, %12;\n\t"
      "madc.hi.cc.u32 %13, %23, %25, %13;\n\t"
      "madc.lo.cc.u32 %14, %24, %25, %14;\n\t"
      "madc.hi.cc.u32 %15, %24, %25, %15;\n\t"
      "addc.u32 %16, 0, 0;"
      : "+&r"(s[0]), "+&r"(s[1]), "+&r"(s[2]), "+&r"(s[3]), "+&r"(s[4]), "+&r"(s[5]), "+&r"(s[6]),
        "+&r"(s[7]), "+&r"(s[8]), "+&r"(s[9]), "+&r"(s[10]), "+&r"(s[11]), "+&r"(s[12]), "+&r"(s[13]),
        "+&r"(s[14]), "+&r"(s[15]), "+&r"(carry)
      : "r"(x[0]), "r"(x[2]), "r"(x[4]), "r"(x[6]), "r"(x[8]), "r"(x[10]), "r"(x[12]), "r"(x[14]), "r"(y));
}

// Adds what is above each lane's limbs, a few ones, to the next lane's, and the single ones that this passes
// on; returns what is above them then.
template <i32 kLimbs>
__device__ __forceinline__ u32 pass_on(u32* limbs, u32 above, bool is_lowest) {
  if (RNS_LANES == 1) return above;
  u32 below = of_lane(above, lane() - kNumbers), all_ones = ~0u;
  if (is_lowest) below = 0;
#pragma unroll
  for (i32 i = 1; i < kLimbs; ++i) all_ones &= limbs[i];
  const u32 lowest = limbs[0] + below;
  const u32 passed =
      carries(all_ones == ~0u && lowest < below, all_ones == ~0u && lowest == ~0u && !is_lowest);
  const u32 one = is_lowest ? 0 : passed << kNumbers >> lane() & 1;
  add_one_limb<kLimbs>(limbs, below + one);
  return above + (passed >> lane() & 1);
}

// The sum of products of a number's limbs by single ones, each lane's for its limbs: even limbs' products and
// odd limbs', which are apart by one limb, so that those of either kind lie side by side and pass carries to
// one another (as in NVIDIA's CGBN and Supranational's sppark). Carries out of a lane are kept to the end.
template <i32 kLimbs = RNS_LIMBS>
struct LaneSums {
  static constexpr i32 kPairs = kLimbs / 2;
  static_assert(kLimbs % 2 == 0, "limbs of a lane are in pairs");

  u64 even[kPairs], odd[kPairs];
  u32 rest;                   // of the lowest limb, where all moved down
  u32 even_carry, odd_carry;  // what is above these pairs

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (i32 i = 0; i < kPairs; ++i) even[i] = odd[i] = 0;
    rest = even_carry = odd_carry = 0;
  }
  __device__ __forceinline__ void set(const u32* limbs) {
    clear();
#pragma unroll
    for (i32 i = 0; i < kPairs; ++i) even[i] = pair_of(limbs[2 * i], limbs[2 * i + 1]);
  }
  // Every second limb of x by one.
  static __device__ __forceinline__ void add_chain(u64* pairs, const u32* x, u32 limb, u32& carry) {
    u32 s[kLimbs];
#pragma unroll
    for (i32 i = 0; i < kPairs; ++i) {
      s[2 * i] = low_of(pairs[i]);
      s[2 * i + 1] = high_of(pairs[i]);
    }
    constexpr i32 kLong = kLimbs / 16 * 16;
#pragma unroll
    for (i32 i = 0; i < kLong; i += 16) add_to_eight_pairs(s + i, x + i, limb, carry);
#pragma unroll
    for (i32 i = kLong; i < kLimbs; i += 2) add_to_pair(s + i, x + i, limb, carry);
#pragma unroll
    for (i32 i = 0; i < kPairs; ++i) pairs[i] = pair_of(s[2 * i], s[2 * i + 1]);
  }
  __device__ __forceinline__ void add_product(const u32* x, u32 limb) {
    u32 carry = 0, low;
    add_chain(even, x, limb, carry);
    even_carry += carry;
    asm("add.cc.u32 %0, %2, %3;\n\t"
        "addc.u32 %1, 0, 0;"
        : "=&r"(low), "=&r"(carry)
        : "r"(low_of(even[0])), "r"(rest));
    even[0] = pair_of(low, high_of(even[0]));
    rest = 0;
    add_chain(odd, x + 1, limb, carry);
    odd_carry += carry;
  }
  __device__ __forceinline__ u32 lowest() const { return low_of(even[0]); }
  // All one limb down, by which even and odd ones change their parts; `above` comes from there.
  __device__ __forceinline__ void shift(u32 above) {
    u32 low, high;
    asm("add.cc.u32 %0, %2, %3;\n\t"
        "addc.u32 %1, %4, 0;"
        : "=&r"(low), "=&r"(high)
        : "r"(above), "r"(even_carry), "r"(odd_carry));
    rest = high_of(even[0]);
#pragma unroll
    for (i32 i = 0; i < kPairs; ++i) {
      const u64 next = i + 1 < kPairs ? even[i + 1] : pair_of(low, high);
      even[i] = odd[i];
      odd[i] = next;
    }
    even_carry = odd_carry = 0;
  }
  // The limbs, with carries within a lane; returns what is above them. For sums that were moved down last.
  __device__ __forceinline__ u32 within_lane(u32* limbs) const {
    u32 more[kLimbs];
#pragma unroll
    for (i32 i = 0; i < kLimbs; ++i) {
      limbs[i] = i % 2 == 0 ? low_of(even[i / 2]) : high_of(even[i / 2]);
      more[i] = i == 0 ? rest : i % 2 == 0 ? high_of(odd[i / 2 - 1]) : low_of(odd[i / 2]);
    }
    return add_to_limbs<kLimbs>(limbs, more, 0) + high_of(odd[kPairs - 1]);
  }
  // Likewise, with carries between lanes. `is_lowest`: the lane has a number's lowest limbs.
  __device__ __forceinline__ u32 resolve(u32* limbs, bool is_lowest = lane() < kNumbers) const {
    return pass_on<kLimbs>(limbs, within_lane(limbs), is_lowest);
  }
};

#endif

}  // namespace rns
