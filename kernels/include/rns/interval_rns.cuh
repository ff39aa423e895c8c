// Signed multiple-precision integers x = (-1)^s X with an interval of X/M: K. Isupov and V. Knyazkov,
// "Efficient GPU Implementation of Multiple-Precision Addition based on Residue Arithmetic" (2020).
//
// A number is a column of n + kHeaderRows words of 32 bits: the residues of X, and its header. This file and
// rnsdask/interval_rns/layout.py say what is where, and nothing else does.
#pragma once

#include "extended_interval.cuh"
#include "fixed_point.cuh"
#include "modular.cuh"

namespace rns {

// Rows of the header, after the n rows of residues. A double takes two, its lower word first.
constexpr i32 kSignRow = 0;
constexpr i32 kExponentRow = 1;
constexpr i32 kLowRow = 2;
constexpr i32 kUppRow = 4;
constexpr i32 kHeaderRows = 6;

struct Header {
  u32 sign;
  ExtendedInterval interval;
};

RNS_INLINE double double_of_words(u32 low, u32 high) {
  return double_of_bits(static_cast<i64>(static_cast<u64>(high) << 32 | low));
}

RNS_INLINE Header header_of(const u32 (&words)[kHeaderRows]) {
  return {words[kSignRow],
          {double_of_words(words[kLowRow], words[kLowRow + 1]),
           double_of_words(words[kUppRow], words[kUppRow + 1]), static_cast<i32>(words[kExponentRow])}};
}

RNS_INLINE void words_of(const Header& header, u32 (&words)[kHeaderRows]) {
  const u64 low = static_cast<u64>(double_bits(header.interval.low));
  const u64 upp = static_cast<u64>(double_bits(header.interval.upp));
  words[kSignRow] = header.sign;
  words[kExponentRow] = static_cast<u32>(header.interval.exponent);
  words[kLowRow] = static_cast<u32>(low);
  words[kLowRow + 1] = static_cast<u32>(low >> 32);
  words[kUppRow] = static_cast<u32>(upp);
  words[kUppRow + 1] = static_cast<u32>(upp >> 32);
}

// Whether a number other than 0 may have this header, as rnsdask/interval_rns/layout.py says; `width` is the
// greatest relative one.
RNS_INLINE bool follows_rules(const Header& header, i32 least_exponent, double width) {
  const ExtendedInterval& x = header.interval;
  // Comparisons with what is not a number are false.
  const bool is_interval = (x.upp - x.low <= width * x.low) & (x.low > 0) & (x.low <= x.upp);
  const bool is_in_range = (x.upp >= 0.5) & (x.upp < 1) & (x.exponent >= least_exponent) & (x.exponent <= 1);
  return is_interval & is_in_range & (header.sign <= 1);
}

// Whether 0 has this header.
RNS_INLINE bool is_of_zero(const Header& header) {
  const ExtendedInterval& x = header.interval;
  return x.low == 0 && x.upp == 0 && x.exponent == 0 && header.sign == 0;
}

// Keys of numbers in their order, by headers alone, and of the number's sign. That of a magnitude X is F(U)
// rounded down, with U the upper bound of X/M and F of the slope 2^20 / v from each power v of 2 to the next.
// X/M is less than U by at most the accuracy of stored intervals, so that F(X/M) is less than the key + 1,
// and at least the key - 3. No key but that of 0 is near 0, for exponents are at least -bits, those of M.
constexpr i32 kKeyBits = 20;  // of the bound, beside the exponent: those of its upper word

RNS_INLINE i64 order_key(u32 sign, u32 exponent, u32 upp_high, i32 bits) {
  const i64 above = static_cast<i64>(static_cast<i32>(exponent)) + bits + 2;
  const i64 key = above << kKeyBits | (upp_high & ((1u << kKeyBits) - 1));
  const i64 magnitude = upp_high != 0 ? key : 0;
  return sign != 0 ? -magnitude : magnitude;
}

// Length in bits of a magnitude by bounds of X/M and of M, or kOpenLength: X is below 2^exponent.
RNS_INLINE i32 length_of_magnitude(const Header& header, ExtendedInterval product) {
  const ExtendedInterval x = interval_product(header.interval, product);
  if (is_zero(x)) return 0;
  return x.low >= 0.5 ? x.exponent : kOpenLength;
}

// What the intervals leave open about a result. The residues of such a number are looked at once more.
constexpr u32 kOpenSign = 1;   // the interval holds 0: X may have the other sign, complemented
constexpr u32 kWide = 2;       // the interval is wider than it may be stored
constexpr u32 kOpenRange = 4;  // the interval reaches 1
constexpr u32 kOutside = 8;    // the interval is from 1 on: X is at least M

RNS_INLINE u32 flags_of(ExtendedInterval x, double accuracy) {
  u32 flags = 0;
  if (add_up(x.upp, -x.low) > mul_down(accuracy, x.low)) flags |= kWide;
  // The upper bound is in [1/2, 1) 2^exponent.
  if (x.exponent >= 1) flags |= kOpenRange;
  if (x.exponent >= 1 && x.low >= power_of_two(x.exponent < kFar ? -x.exponent : -kFar)) flags |= kOutside;
  return flags;
}

// How the residues of a sum follow from those of the magnitudes X and Y: x - y instead of x + y, then the
// radix complement.
constexpr u32 kSubtract = 1;
constexpr u32 kComplement = 2;

RNS_INLINE u32 residue_of_sum(u32 x, u32 y, u32 selector, u32 last) {
  const u32 sum = mod_add(x, y, last), difference = mod_sub(x, y, last);
  const u32 z = (selector & kSubtract) != 0 ? difference : sum;
  return (selector & kComplement) != 0 && z != 0 ? last - z + 1u : z;
}

// All about a sum but its residues.
struct SumPlan {
  Header header;
  u32 selector;
  u32 flags;
};

RNS_INLINE SumPlan plan_of(u32 sign, ExtendedInterval magnitude, u32 selector, double accuracy) {
  // [0, 0] is exact: the sum is 0, whose sign is 0.
  if (is_zero(magnitude)) return {{0, {0.0, 0.0, 0}}, selector, 0};
  return {{sign, magnitude}, selector, flags_of(magnitude, accuracy)};
}

RNS_INLINE SumPlan open_plan(u32 sign, ExtendedInterval difference) {
  return {{sign, difference}, kSubtract, kOpenSign};
}

// Algorithm 1 of the paper, by the operands' signs.
RNS_INLINE SumPlan plan_by_signs(const Header& x, const Header& y, double accuracy) {
  if (x.sign == y.sign) return plan_of(x.sign, interval_sum(x.interval, y.interval), 0, accuracy);
  const ExtendedInterval z = interval_difference(x.interval, y.interval);
  if (z.low >= 0.0) return plan_of(x.sign, z, kSubtract, accuracy);
  if (z.upp <= 0.0) return plan_of(y.sign, negated(z), kSubtract | kComplement, accuracy);
  return open_plan(x.sign, z);
}

// Algorithm 2 of the paper: the interval of the sum with its sign, from bounds with theirs. The residues are
// those of (-1)^s_x z, so that one complement, where the signs of x and z differ, stands for the paper's two.
RNS_INLINE SumPlan plan_by_complement(const Header& x, const Header& y, double accuracy) {
  const ExtendedInterval a = x.sign != 0 ? negated(x.interval) : x.interval;
  const ExtendedInterval b = y.sign != 0 ? negated(y.interval) : y.interval;
  const ExtendedInterval z = interval_sum(a, b);
  const u32 subtract = x.sign != y.sign ? kSubtract : 0;
  if (z.low < 0.0 && z.upp > 0.0) return open_plan(x.sign, x.sign != 0 ? negated(z) : z);
  const u32 sign = z.low < 0.0 ? 1 : 0;
  const u32 complement = sign != x.sign && !is_zero(z) ? kComplement : 0;
  return plan_of(sign, sign != 0 ? negated(z) : z, subtract | complement, accuracy);
}

// y as it is added: with its sign flipped for a difference.
RNS_INLINE Header flipped(Header y, u32 flip) {
  y.sign ^= flip;
  return y;
}

RNS_INLINE SumPlan plan_product(const Header& x, const Header& y, ExtendedInterval product, double accuracy) {
  const ExtendedInterval z = fraction_operation(kIntervalMultiply, x.interval, y.interval, product);
  return plan_of(x.sign ^ y.sign, z, 0, accuracy);
}

// -1, 0 or +1 as x is less than, equal to or greater than y, or kUnknownOrder.
constexpr i32 kUnknownOrder = 2;

RNS_INLINE i32 order_of(const Header& x, const Header& y) {
  const SumPlan plan = plan_by_complement(x, flipped(y, 1), 1.0);
  if (plan.flags & kOpenSign) return kUnknownOrder;
  // A difference that starts at 0 may be 0.
  if (plan.header.interval.low == 0.0) return plan.header.interval.upp == 0.0 ? 0 : kUnknownOrder;
  return plan.header.sign != 0 ? -1 : 1;
}

}  // namespace rns
