// Digits of elements of a Fermat field, Z/pZ for p = r^k + 1, from limbs of integers and back.
//
// Digits and limbs are words of one type, u32 for 2 <= r < 2^32 or u64 for 2 <= r < 2^64. An element's digits
// are 0 <= x_i < r, the least significant first, but for -1: it is x_{k-1} = r and 0 elsewhere.
#pragma once

#include "base.cuh"

namespace rns {

// The most digits of an element, and with room for their carries the most limbs of one.
constexpr i32 kMostDigits = 128;
constexpr i32 kMostFermatLimbs = kMostDigits + 1;

template <typename Word>
struct DoubleWord;
template <>
struct DoubleWord<u32> {
  typedef u64 type;
};
template <>
struct DoubleWord<u64> {
  typedef unsigned __int128 type;
};

// What division by r takes: r 2^shift, which has its highest bit set, and floor((W^2 - 1) / (r 2^shift)) - W,
// where W = 2^(bits of a word). N. Moeller and T. Granlund, "Improved division by invariant integers" (2011).
template <typename Word>
struct RadixReciprocal {
  Word radix;
  Word normalized;
  Word reciprocal;
  i32 shift;
  i32 digits;
};

// The quotient of high W + low by r, for high < r; `low` becomes the remainder (their algorithm 4).
template <typename Word>
RNS_INLINE Word divide_by_radix(Word high, Word& low, const RadixReciprocal<Word>& r) {
  typedef typename DoubleWord<Word>::type Wide;
  constexpr i32 kBits = 8 * sizeof(Word);
  const Wide shifted = ((static_cast<Wide>(high) << kBits) | low) << r.shift;
  const Word u1 = static_cast<Word>(shifted >> kBits), u0 = static_cast<Word>(shifted);
  const Wide q = static_cast<Wide>(r.reciprocal) * u1 + shifted;
  Word quotient = static_cast<Word>(q >> kBits) + 1u;
  Word rest = u0 - quotient * r.normalized;
  if (rest > static_cast<Word>(q)) {
    --quotient;
    rest += r.normalized;
  }
  if (rest >= r.normalized) {
    ++quotient;
    rest -= r.normalized;
  }
  low = rest >> r.shift;
  return quotient;
}

template <typename Word>
RNS_INLINE bool is_minus_one(const Word* x, const RadixReciprocal<Word>& r) {
  return x[r.digits - 1] == r.radix;
}

// x - c, or x + c, for any word c. What goes beyond r^k comes back with the other sign, for r^k = -1, and is
// less each time.
template <typename Word>
RNS_INLINE void add_word(Word* x, Word c, bool subtract, const RadixReciprocal<Word>& r) {
  if (c != 0 && is_minus_one(x, r)) {
    for (i32 i = 0; i < r.digits; ++i) x[i] = subtract ? r.radix - 1u : 0u;  // -2 or 0
    --c;
  }
  while (c != 0) {
    bool all_last = true;
    for (i32 i = 0; i < r.digits && (c != 0 || all_last); ++i) {
      const Word quotient = c / r.radix, rest = c - quotient * r.radix;
      const Word missing = r.radix - rest;
      const bool over = subtract ? x[i] < rest : x[i] >= missing;
      // x - rest, x - rest + r, x + rest and x + rest - r: each is below r.
      x[i] += subtract ? (over ? missing : static_cast<Word>(0u - rest)) : (over ? 0u - missing : rest);
      c = quotient + (over ? 1u : 0u);
      all_last = all_last && x[i] == r.radix - 1u;
    }
    if (subtract && c == 1u && all_last) {  // r^k - 1, of which r^k is borrowed
      for (i32 i = 0; i + 1 < r.digits; ++i) x[i] = 0;
      x[r.digits - 1] = r.radix;
      return;
    }
    subtract = !subtract;
  }
}

// x W + word, where W = 2^(bits of a word), for an x whose digits from `length` on are 0.
template <typename Word>
RNS_INLINE void append_limb(Word* x, i32& length, Word word, const RadixReciprocal<Word>& r) {
  if (is_minus_one(x, r)) {  // word - W = -1 - (W - 1 - word)
    add_word(x, static_cast<Word>(~word), true, r);
    return;
  }
  Word carry = word;
  for (i32 i = 0; i < length; ++i) {
    Word low = carry;
    carry = divide_by_radix(x[i], low, r);
    x[i] = low;
  }
  for (; carry != 0 && length < r.digits; carry /= r.radix) x[length++] = carry % r.radix;
  add_word(x, carry, true, r);
}

// Limb i of an integer of `count` limbs of 32 bits, extended by its sign if it has one.
RNS_INLINE u32 limb_at(const u32* limbs, i64 count, i64 i, bool is_signed) {
  if (i < count) return limbs[i];
  return is_signed && (limbs[count - 1] >> 31) != 0 ? ~0u : 0u;
}

// The digits x[0 .. k) of an integer of `count` limbs, in two's complement if it is signed.
template <typename Word>
RNS_INLINE void digits_of_limbs(const u32* limbs, i64 count, bool is_signed, Word* x,
                                const RadixReciprocal<Word>& r) {
  constexpr i64 kHalves = sizeof(Word) / sizeof(u32);
  for (i32 i = 0; i < r.digits; ++i) x[i] = 0;
  const bool negative = is_signed && (limbs[count - 1] >> 31) != 0;
  i32 length = negative ? r.digits : 0;
  if (negative) add_word(x, static_cast<Word>(1), true, r);
  for (i64 l = (count + kHalves - 1) / kHalves; l-- > 0;) {
    Word word = 0;
    for (i64 h = kHalves; h-- > 0;) {
      word =
          static_cast<Word>(static_cast<u64>(word) << 32 | limb_at(limbs, count, kHalves * l + h, is_signed));
    }
    append_limb(x, length, word, r);
  }
}

// The `count` limbs of an element from 0 to p - 1, whose digits are x[i * stride]. `work` holds
// kMostFermatLimbs.
template <typename Word>
RNS_INLINE void limbs_of_digits(const Word* x, i64 stride, u32* limbs, i64 count, Word* work,
                                const RadixReciprocal<Word>& r) {
  typedef typename DoubleWord<Word>::type Wide;
  constexpr i32 kBits = 8 * sizeof(Word);
  i32 length = 0;
  for (i32 i = r.digits; i-- > 0;) {  // Horner's rule
    Wide carry = x[i * stride];
    for (i32 l = 0; l < length; ++l) {
      carry += static_cast<Wide>(work[l]) * r.radix;
      work[l] = static_cast<Word>(carry);
      carry >>= kBits;
    }
    if (carry != 0) work[length++] = static_cast<Word>(carry);
  }
  constexpr i64 kHalves = sizeof(Word) / sizeof(u32);
  for (i64 l = 0; l < count; ++l) {
    const Word word = l / kHalves < length ? work[l / kHalves] : 0;
    limbs[l] = static_cast<u32>(static_cast<u64>(word) >> 32 * (l % kHalves));
  }
}

}  // namespace rns
