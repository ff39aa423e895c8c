// Sums of products of limbs, by columns of one weight, and places of numbers in memory.
#pragma once

#include <rns/base.cuh>

namespace rns {

// Limb i of a number is data[i * stride].
struct Place {
  u32* data;
  i64 stride;

  __device__ u32& operator[](i64 i) const { return data[i * stride]; }
  __device__ Place operator+(i64 i) const { return {data + i * stride, stride}; }
  __device__ u32 at(i64 i) const { return data[i * stride]; }
  __device__ void set(i64 i, u32 limb) const { data[i * stride] = limb; }
};

// Limb i of number j is data[i * stride + j * step]; step is 0 for one number, else 1.
struct LimbOperand {
  const u32* data;
  i64 stride;
  i64 step;
  i64 limbs;

  __device__ u32 at(i64 i, i64 j) const { return __ldg(data + i * stride + j * step); }
  __device__ u32 at_or_zero(i64 i, i64 j) const { return i < limbs ? at(i, j) : 0; }
  __device__ u32 sign(i64 j) const { return at(limbs - 1, j) >> 31 != 0 ? ~0u : 0; }
  __device__ Place place(i64 j) const { return {const_cast<u32*>(data + j * step), stride}; }
};

// A sum of products of 96 bits, so of up to 2^32. One product takes an IMAD.WIDE and the addition of its
// carry.
struct ColumnSum {
  u32 low, high, top;

  __device__ __forceinline__ void add_product(u32 a, u32 b) {
    asm("mad.lo.cc.u32 %0, %3, %4, %0;\n\t"
        "madc.hi.cc.u32 %1, %3, %4, %1;\n\t"
        "addc.u32 %2, %2, 0;"
        : "+&r"(low), "+&r"(high), "+&r"(top)
        : "r"(a), "r"(b));
  }
  __device__ __forceinline__ void add(u32 x_low, u32 x_high, u32 x_top) {
    asm("add.cc.u32 %0, %0, %3;\n\t"
        "addc.cc.u32 %1, %1, %4;\n\t"
        "addc.u32 %2, %2, %5;"
        : "+&r"(low), "+&r"(high), "+&r"(top)
        : "r"(x_low), "r"(x_high), "r"(x_top));
  }
  // What is carried to the next column stays.
  __device__ __forceinline__ void shift() {
    low = high;
    high = top;
    top = 0;
  }
};

// x += y + carry, which becomes the carry out of that; y may be complements of what is subtracted.
// "&" says that a register is written before all are read: without it one that begins as 0 would be read,
// after it was written, for all that are 0.
__device__ __forceinline__ void add_to_limb(u32* x, const u32* y, u32& carry) {
  asm("add.cc.u32 %1, %1, 0xffffffff;\n\t"
      "addc.cc.u32 %0, %0, %2;\n\t"
      "addc.u32 %1, 0, 0;"
      : "+&r"(x[0]), "+&r"(carry)
      : "r"(y[0]));
}
__device__ __forceinline__ void add_to_eight_limbs(u32* x, const u32* y, u32& carry) {
  asm("add.cc.u32 %8, %8, 0xffffffff;\n\t"
      "addc.cc.u32 %0, %0, %9;\n\t"
      "addc.cc.u32 %1, %1, %10;\n\t"
      "addc.cc.u32 %2, %2, %11;\n\t"
      "addc.cc.u32 %3, %3, %12;\n\t"
      "addc.cc.u32 %4, %4, %13;\n\t"
      "addc.cc.u32 %5, %5, %14;\n\t"
      "addc.cc.u32 %6, %6, %15;\n\t"
      "addc.cc.u32 %7, %7, %16;\n\t"
      "addc.u32 %8, 0, 0;"
      : "+&r"(x[0]), "+&r"(x[1]), "+&r"(x[2]), "+&r"(x[3]), "+&r"(x[4]), "+&r"(x[5]), "+&r"(x[6]),
        "+&r"(x[7]), "+&r"(carry)
      : "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]), "r"(y[4]), "r"(y[5]), "r"(y[6]), "r"(y[7]));
}
template <i32 kLimbs>
__device__ __forceinline__ u32 add_to_limbs(u32* x, const u32* y, u32 carry) {
#pragma unroll
  for (i32 i = 0; i + 8 <= kLimbs; i += 8) add_to_eight_limbs(x + i, y + i, carry);
#pragma unroll
  for (i32 i = kLimbs / 8 * 8; i < kLimbs; ++i) add_to_limb(x + i, y + i, carry);
  return carry;
}
// x += y, where y is one limb.
template <i32 kLimbs>
__device__ __forceinline__ u32 add_one_limb(u32* x, u32 y) {
  u32 limbs[kLimbs];
#pragma unroll
  for (i32 i = 0; i < kLimbs; ++i) limbs[i] = i == 0 ? y : 0;
  return add_to_limbs<kLimbs>(x, limbs, 0);
}

}  // namespace rns
