// Arithmetic modulo p = r^k + 1 for a sparse radix r = 2^a + 2^b or 2^a - 2^b, on k digits, the least
// significant first. A number is canonical: its digits are below r, or it is -1, which is r^k: its last digit
// is r and the others are 0. As r^k = -1, what is carried out of the last digit is subtracted from the first.
#pragma once

#include "base.cuh"

namespace rns {

struct FermatRadix {
  u64 radix;
  i32 high;      // a
  i32 low;       // b
  i32 is_above;  // r = 2^a + 2^b, else 2^a - 2^b
  // Of division: how far a sum of products is shifted right before, 0 if it fits two words, and the number
  // of factors 1 +- 2^(-c 2^i), c = a - b, that stand for the reciprocal of 1 + 2^-c or 1 - 2^-c.
  i32 shift;
  i32 factors;
};

// A sum of products of two digits, and its type with a sign.
template <class Digit>
struct FermatWords;
template <>
struct FermatWords<u32> {
  using Sum = u64;
  using Signed = i64;
};
template <>
struct FermatWords<u64> {
  using Sum = unsigned __int128;
  using Signed = __int128;
};

// A sum u of signed products of digits: modulo 2^(2 w), where w is the width of a digit, and if it is wide,
// the sum of the products' upper halves, from which the whole follows.
template <class Digit, bool kWide>
struct FermatSum {
  using Sum = typename FermatWords<Digit>::Sum;
  using Signed = typename FermatWords<Digit>::Signed;
  static constexpr i32 kBits = 8 * sizeof(Digit);

  Sum low = 0;
  Signed high = 0;

  RNS_INLINE void add(Digit x, Digit y) {
    const Sum product = static_cast<Sum>(x) * y;
    low += product;
    if (kWide) high += static_cast<Signed>(product >> kBits);
  }
  RNS_INLINE void subtract(const FermatSum& other) {
    low -= other.low;
    if (kWide) high -= other.high;
  }
  RNS_INLINE void carry(Signed c) { low += static_cast<Sum>(c); }

  // The remainder of u by r; `quotient` is its floor.
  //
  // t = floor(u / 2^s) is multiplied by (1 - x)(1 + x^2)(1 + x^4)... or (1 + x)(1 + x^2)..., x = 2^-c, which
  // lacks a factor 1 - x^(2^n) of 1 / (1 +- x). u may have any value for which u / 2^s and its quotient by
  // 1 +- x have 2 w bits with the sign: constants/fermat.py chooses s and n for |u| <= k r (r + 2), so that
  // the missing factor changes the quotient by less than 1/8. Each of n <= 7 shifts rounds by less than 1,
  // and later factors at most double that: below 16 units of 2^(s - a), and a - s >= 8, is less than 1/8 too.
  // So the estimate's floor is the quotient, or one more or less.
  RNS_INLINE Digit divide(const FermatRadix& f, Signed& quotient) const {
    Signed t = static_cast<Signed>(low);
    if (kWide) {
      const Signed rest = static_cast<Signed>(low - (static_cast<Sum>(high) << kBits));
      t = static_cast<Signed>(static_cast<Sum>(high) << (kBits - f.shift)) + (rest >> f.shift);
    }
    const i32 c = f.high - f.low;
    t += f.is_above ? -(t >> c) : t >> c;
    for (i32 i = 1; i < f.factors; ++i) t += t >> (c << i);
    Signed q = t >> (f.high - (kWide ? f.shift : 0));
    const Sum upper = static_cast<Sum>(q) << f.high, lower = static_cast<Sum>(q) << f.low;
    Signed rest = static_cast<Signed>(low - upper - (f.is_above ? lower : 0 - lower));
    const Signed r = static_cast<Signed>(f.radix);
    const bool below = rest < 0, above = rest >= r;
    rest += below ? r : above ? -r : 0;
    quotient = q + (above ? 1 : 0) - (below ? 1 : 0);
    return static_cast<Digit>(rest);
  }
};

// x + y + carry by r; the carry is 0 or 1.
template <class Digit>
RNS_INLINE Digit fermat_add(Digit x, Digit y, Digit& carry, Digit r) {
  const Digit sum = y + carry, room = r - sum;
  const bool over = x >= room;
  carry = over ? 1 : 0;
  return over ? x - room : x + sum;
}

// x - y - borrow by r; the borrow is 0 or 1. It may be r, of -1 from which 0 is taken.
template <class Digit>
RNS_INLINE Digit fermat_subtract(Digit x, Digit y, Digit& borrow, Digit r) {
  const Digit less = y + borrow;
  const bool under = x < less;
  borrow = under ? 1 : 0;
  return x - less + (under ? r : 0);
}

// x + c by r for -r <= c <= r, and for x = r, c = 0 too; c becomes -1, 0 or 1.
template <class Digit>
RNS_INLINE Digit fermat_carry(Digit x, i32& c, Digit r) {
  const Digit minus = c < 0 ? static_cast<Digit>(-c) : 0, plus = c > 0 ? static_cast<Digit>(c) : 0;
  const bool under = x < minus, over = x >= r - plus;
  c = (over ? 1 : 0) - (under ? 1 : 0);
  return x + plus - minus + (under ? r : over ? 0 - r : 0);
}

// x + y + c and x - y + c by r; c is -1, 0 or 1, and 0 where a digit is r.
template <class Digit>
RNS_INLINE Digit fermat_add_signed(Digit x, Digit y, i32& c, Digit r) {
  const Digit minus = c < 0 ? 1 : 0, plus = c > 0 ? 1 : 0;
  const Digit more = y + plus, room = r - more;
  const bool over = x >= room;
  const Digit sum = over ? x - room : x + more;
  const bool under = sum < minus;
  c = (over ? 1 : 0) - (under ? 1 : 0);
  return sum - minus + (under ? r : 0);
}
template <class Digit>
RNS_INLINE Digit fermat_subtract_signed(Digit x, Digit y, i32& c, Digit r) {
  const Digit minus = c < 0 ? 1 : 0, plus = c > 0 ? 1 : 0;
  const Digit more = x + plus, less = y + minus;
  const bool under = more < less;
  const Digit difference = more - less + (under ? r : 0);
  const bool over = difference >= r;
  c = (over ? 1 : 0) - (under ? 1 : 0);
  return difference - (over ? r : 0);
}

// z by r for -r <= z <= 2 r, in a type that holds it; the carry is -1, 0 or 1.
template <class Digit, class Wide>
RNS_INLINE Digit fermat_reduce(Wide z, i32& carry, Wide r) {
  const bool under = z < 0, over = z >= r;
  carry = (over ? 1 : 0) - (under ? 1 : 0);
  return static_cast<Digit>(z + (under ? r : over ? -r : 0));
}

// The digit i of a result x r^shift is the digit `from` of x, negated where it has come round: for a shift
// from 0 to 2 k - 1, k a power of two.
struct FermatShift {
  i32 digits;
  i32 shift;

  RNS_INLINE i32 from(i32 i) const { return (i - shift) & (digits - 1); }
  RNS_INLINE bool is_negative(i32 i) const {
    const i32 by = shift & (digits - 1);
    return (shift >= digits) != (i < by);
  }
};

// One pass of a transform of N = R J S numbers, R a power of two up to 2 k: of x_i,j,s = x[(i J + j) S + s]
// it makes the transforms along i, times the power j i of a root of order R J, at the place (j R + i) S + s.
// After passes of all of N they are in order (T. Stockham, 1966), the roots' squares one after another.
struct FermatPass {
  i32 log_radix;    // R
  i32 log_columns;  // J S
  i32 log_done;     // S
  i32 is_inverse;

  // Of the column `column` of all transforms: where its first number is, and the result i of it.
  RNS_INLINE i64 source(i64 column) const {
    const i64 within = column & ((static_cast<i64>(1) << log_columns) - 1);
    return ((column - within) << log_radix) + within;
  }
  RNS_INLINE i64 target(i64 column, i64 i) const {
    const i64 within = column & ((static_cast<i64>(1) << log_columns) - 1);
    const i64 s = column & ((static_cast<i64>(1) << log_done) - 1);
    return ((column - within) << log_radix) + ((((within >> log_done) << log_radix) + i) << log_done) + s;
  }
  // Which factor the result has: they are (J, R).
  RNS_INLINE i64 factor(i64 column, i64 i) const {
    const i64 within = column & ((static_cast<i64>(1) << log_columns) - 1);
    return ((within >> log_done) << log_radix) + i;
  }
  // The butterfly between rows `half` apart, the one at `i` of them: by r^shift.
  RNS_INLINE i32 shift(i32 i, i32 log_half, i32 digits) const {
    const i32 shift = (i * digits) >> log_half;
    return is_inverse && shift != 0 ? 2 * digits - shift : shift;
  }
  RNS_INLINE i32 reversed(i32 row) const {
    i32 result = 0;
    for (i32 bit = 0; bit < log_radix; ++bit) result |= (row >> bit & 1) << (log_radix - 1 - bit);
    return result;
  }
};

}  // namespace rns
