// Sums modulo a number and products of few limbs, one number a thread, as A. Carlessi and S. Kashani compare
// them (semester project, EPFL, 2013, Figures 4.1 to 4.3): steps in registers or each in global memory, limbs
// of one weight side by side or those of one number, schoolbook or Karatsuba products.
#include <grid.cuh>
#include <limb_sums.cuh>

using namespace rns;

#ifndef RNS_LIMBS
#define RNS_LIMBS 8
#endif
#ifndef RNS_INTERLEAVED
#define RNS_INTERLEAVED 1
#endif

namespace {

constexpr i32 kLow = (RNS_LIMBS + 1) / 2, kHigh = RNS_LIMBS - kLow;  // limbs of halves

__device__ Place number(u32* data, i64 j, i64 count, i32 limbs) {
  return RNS_INTERLEAVED ? Place{data + j, count} : Place{data + j * limbs, 1};
}

template <i32 kLimbs>
__device__ __forceinline__ void load(u32* to, Place from) {
#pragma unroll
  for (i32 i = 0; i < kLimbs; ++i) to[i] = from.at(i);
}

template <i32 kLimbs>
__device__ __forceinline__ void store(Place to, const u32* from) {
#pragma unroll
  for (i32 i = 0; i < kLimbs; ++i) to.set(i, from[i]);
}

// x = x + y or x - y, y with zeros above; what is carried or borrowed.
template <i32 kLimbs, i32 kOther>
__device__ __forceinline__ u32 add(u32* x, const u32* y, bool subtract) {
  const u32 flip = subtract ? ~0u : 0;
  u64 sum = flip & 1;
#pragma unroll
  for (i32 i = 0; i < kLimbs; ++i) {
    sum += static_cast<u64>(x[i]) + ((i < kOther ? y[i] : 0) ^ flip);
    x[i] = static_cast<u32>(sum);
    sum >>= 32;
  }
  return static_cast<u32>(sum) ^ (flip & 1);
}

template <i32 kX, i32 kY>
__device__ __forceinline__ void multiply(const u32* x, const u32* y, u32* out) {
  ColumnSum sum = {0, 0, 0};
#pragma unroll
  for (i32 c = 0; c < kX + kY; ++c) {
#pragma unroll
    for (i32 i = 0; i < kX; ++i) {
      if (c - i >= 0 && c - i < kY) sum.add_product(x[i], y[c - i]);
    }
    out[c] = sum.low;
    sum.shift();
  }
}

// |low half - high half|, and whether it is negative.
__device__ __forceinline__ bool difference(const u32* x, u32* out) {
#pragma unroll
  for (i32 i = 0; i < kLow; ++i) out[i] = x[i];
  const bool is_negative = add<kLow, kHigh>(out, x + kLow, true) != 0;
  const u32 flip = is_negative ? ~0u : 0;
  u64 sum = flip & 1;
#pragma unroll
  for (i32 i = 0; i < kLow; ++i) {
    sum += out[i] ^ flip;
    out[i] = static_cast<u32>(sum);
    sum >>= 32;
  }
  return is_negative;
}

// (x0 + x1 B)(y0 + y1 B) by x0 y0, x1 y1 and (x0 - x1)(y0 - y1).
__device__ __forceinline__ void multiply_karatsuba(const u32* x, const u32* y, u32* out) {
  u32 a[kLow], b[kLow], middle[2 * kLow], sum[2 * kLow + 1];
  multiply<kLow, kLow>(x, y, out);
  multiply<kHigh, kHigh>(x + kLow, y + kLow, out + 2 * kLow);
  const bool is_sum = difference(x, a) != difference(y, b);
  multiply<kLow, kLow>(a, b, middle);
#pragma unroll
  for (i32 i = 0; i < 2 * kLow; ++i) sum[i] = out[i];
  sum[2 * kLow] = add<2 * kLow, 2 * kHigh>(sum, out + 2 * kLow, false);
  add<2 * kLow + 1, 2 * kLow>(sum, middle, !is_sum);
  constexpr i32 kRest = 2 * RNS_LIMBS - kLow;
  add<kRest, (kRest < 2 * kLow + 1 ? kRest : 2 * kLow + 1)>(out + kLow, sum, false);
}

template <bool kIsKaratsuba>
__device__ void multiply_all(u32* x, u32* y, u32* out, i64 count) {
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    u32 a[RNS_LIMBS], b[RNS_LIMBS], product[2 * RNS_LIMBS];
    load<RNS_LIMBS>(a, number(x, j, count, RNS_LIMBS));
    load<RNS_LIMBS>(b, number(y, j, count, RNS_LIMBS));
    if (kIsKaratsuba) {
      multiply_karatsuba(a, b, product);
    } else {
      multiply<RNS_LIMBS, RNS_LIMBS>(a, b, product);
    }
    store<2 * RNS_LIMBS>(number(out, j, count, 2 * RNS_LIMBS), product);
  }
}

}  // namespace

extern "C" {

__global__ void add_modular_in_registers(u32* x, u32* y, u32* m, u32* out, i64 count) {
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    u32 a[RNS_LIMBS], b[RNS_LIMBS];
    load<RNS_LIMBS>(a, number(x, j, count, RNS_LIMBS));
    load<RNS_LIMBS>(b, number(y, j, count, RNS_LIMBS));
    const u32 carry = add<RNS_LIMBS, RNS_LIMBS>(a, b, false);
#pragma unroll
    for (i32 i = 0; i < RNS_LIMBS; ++i) b[i] = a[i];
    if (add<RNS_LIMBS, RNS_LIMBS>(b, m, true) > carry) {
      store<RNS_LIMBS>(number(out, j, count, RNS_LIMBS), a);
    } else {
      store<RNS_LIMBS>(number(out, j, count, RNS_LIMBS), b);
    }
  }
}

// Every step reads its operands from global memory and writes its result there.
__global__ void add_modular_in_memory(u32* x, u32* y, u32* m, u32* out, i64 count) {
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    const Place a = number(x, j, count, RNS_LIMBS), b = number(y, j, count, RNS_LIMBS);
    const Place to = number(out, j, count, RNS_LIMBS);
    volatile u32* z = to.data;
    u64 sum = 0;
    for (i32 i = 0; i < RNS_LIMBS; ++i) {
      sum += static_cast<u64>(a.at(i)) + b.at(i);
      z[i * to.stride] = static_cast<u32>(sum);
      sum >>= 32;
    }
    bool is_below = false;
    for (i32 i = RNS_LIMBS - 1; i >= 0 && sum == 0; --i) {
      const u32 limb = z[i * to.stride];
      if (limb != m[i]) {
        is_below = limb < m[i];
        break;
      }
    }
    if (is_below) continue;
    i64 rest = 0;
    for (i32 i = 0; i < RNS_LIMBS; ++i) {
      rest += static_cast<i64>(z[i * to.stride]) - m[i];
      z[i * to.stride] = static_cast<u32>(rest);
      rest >>= 32;
    }
  }
}

__global__ void multiply_in_registers(u32* x, u32* y, u32* out, i64 count) {
  multiply_all<false>(x, y, out, count);
}

__global__ void multiply_karatsuba_in_registers(u32* x, u32* y, u32* out, i64 count) {
  multiply_all<true>(x, y, out, count);
}

// Row by row, with the sum in global memory.
__global__ void multiply_in_memory(u32* x, u32* y, u32* out, i64 count) {
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    const Place a = number(x, j, count, RNS_LIMBS), b = number(y, j, count, RNS_LIMBS);
    const Place to = number(out, j, count, 2 * RNS_LIMBS);
    volatile u32* z = to.data;
    for (i32 i = 0; i < 2 * RNS_LIMBS; ++i) z[i * to.stride] = 0;
    for (i32 i = 0; i < RNS_LIMBS; ++i) {
      u64 sum = 0;
      for (i32 k = 0; k < RNS_LIMBS; ++k) {
        sum += static_cast<u64>(a.at(i)) * b.at(k) + z[(i + k) * to.stride];
        z[(i + k) * to.stride] = static_cast<u32>(sum);
        sum >>= 32;
      }
      z[(i + RNS_LIMBS) * to.stride] = static_cast<u32>(sum);
    }
  }
}

}  // extern "C"
