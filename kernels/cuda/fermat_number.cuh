// A number modulo r^k + 1 in one thread's registers. Each field has a compilation of its own, which says what
// it is (backend/cuda/fermat.py), so that loops over digits are unrolled and shifts are constants.
#pragma once

#include <rns/fermat.cuh>

#ifndef RNS_FERMAT_DIGITS  // as scripts/check_kernels.py compiles it
#define RNS_FERMAT_BITS 32
#define RNS_FERMAT_DIGITS 16
#define RNS_FERMAT_SIDE 4  // numbers that a thread of element-wise kernels takes side by side
#define RNS_FERMAT_RADIX 272629760, 28, 22, 1, 0, 3
#endif

namespace rns {

#if RNS_FERMAT_BITS == 32
typedef u32 Digit;
#else
typedef u64 Digit;
#endif
typedef FermatWords<Digit>::Signed Signed;

constexpr i32 kDigits = RNS_FERMAT_DIGITS;
constexpr FermatRadix kField = {RNS_FERMAT_RADIX};
constexpr Digit kRadix = static_cast<Digit>(kField.radix);

// What holds three digits and a sign.
template <i32 kWords>
struct Wide {
  using Type = __int128;
};
template <>
struct Wide<1> {
  using Type = i32;
};
template <>
struct Wide<2> {
  using Type = i64;
};
using Step = Wide < kField.radix<1ull << 30 ? 1 : kField.radix < 1ull << 62 ? 2 : 4>::Type;

// x - c, for c = -1, 0 or 1; what leaves the last digit makes it -1. It is rare that more than a digit
// changes.
__device__ __forceinline__ void settle(Digit* x, i32 c) {
  const Digit from = c == 1 ? 0 : kRadix - 1, to = kRadix - 1 - from;
  bool goes_on = c != 0 && x[0] == from;
  x[0] = goes_on ? to : x[0] - static_cast<Digit>(c);
  if (!goes_on) return;
#pragma unroll
  for (i32 i = 1; i < kDigits; ++i) {
    const bool is_from = x[i] == from;
    if (goes_on) x[i] = is_from ? to : x[i] - static_cast<Digit>(c);
    goes_on = goes_on && is_from;
  }
#pragma unroll
  for (i32 i = 0; i < kDigits; ++i) {
    if (goes_on) x[i] = i == kDigits - 1 ? kRadix : 0;
  }
}

__device__ __forceinline__ void add(const Digit* x, const Digit* y, Digit* out) {
  Digit carry = 0;
#pragma unroll
  for (i32 i = 0; i < kDigits; ++i) out[i] = fermat_add(x[i], y[i], carry, kRadix);
  settle(out, static_cast<i32>(carry));
}

__device__ __forceinline__ void subtract(const Digit* x, const Digit* y, Digit* out) {
  Digit borrow = 0;
#pragma unroll
  for (i32 i = 0; i < kDigits; ++i) out[i] = fermat_subtract(x[i], y[i], borrow, kRadix);
  settle(out, -static_cast<i32>(borrow));
}

// x r^shift from the digits of x that come to each place: a chain of borrows, as none that is negated is less
// than 0. Only -1 has a digit r, its last; where that is not negated it is left, and the result is a power of
// r.
__device__ __forceinline__ void settle_shift(FermatShift shift, bool is_minus_one, Digit* x) {
  Digit borrow = 0;
#pragma unroll
  for (i32 i = 0; i < kDigits; ++i) {
    const bool is_negative = shift.is_negative(i);
    x[i] = fermat_subtract(is_negative ? 0 : x[i], is_negative ? x[i] : 0, borrow, kRadix);
  }
  settle(x, -static_cast<i32>(borrow));
  if (is_minus_one && shift.shift > kDigits) {
#pragma unroll
    for (i32 i = 0; i < kDigits; ++i) x[i] = i == shift.shift - kDigits ? 1 : 0;
  }
}

// x r^shift, where read(i) is the digit i of x.
template <class Read>
__device__ __forceinline__ void shifted(FermatShift shift, Read read, Digit* out) {
#pragma unroll
  for (i32 i = 0; i < kDigits; ++i) out[i] = read(shift.from(i));
  settle_shift(shift, read(kDigits - 1) == kRadix, out);
}

// The product of two numbers: the sums of products that make a digit, and carries, in one pass; then what
// leaves it is subtracted.
__device__ __forceinline__ void multiply(const Digit* x, const Digit* y, Digit* out) {
  constexpr FermatRadix field = kField;  // functions take its address, which nvcc gives no kField on a device
  Signed carry = 0;
  constexpr i32 kUnrolled = kDigits * sizeof(Digit) <= 128 ? kDigits : 1;
#pragma unroll kUnrolled
  for (i32 i = 0; i < kDigits; ++i) {
    FermatSum<Digit, (kField.shift > 0)> sum, less;
#pragma unroll kUnrolled
    for (i32 j = 0; j < kDigits; ++j) {
      if (j <= i) {
        sum.add(x[j], y[i - j]);
      } else {
        less.add(x[j], y[kDigits + i - j]);
      }
    }
    sum.subtract(less);
    sum.carry(carry);
    out[i] = sum.divide(field, carry);
  }
  // That is up to k r; divided by r once more, up to k.
  FermatSum<Digit, false> sum;
  sum.carry(static_cast<Signed>(out[0]) - carry);
  out[0] = sum.divide(field, carry);
  i32 c = static_cast<i32>(carry);
#pragma unroll
  for (i32 i = 1; i < kDigits; ++i) {
    if (c == 0) return;
    out[i] = fermat_carry(out[i], c, kRadix);
  }
  settle(out, c);
}

}  // namespace rns
