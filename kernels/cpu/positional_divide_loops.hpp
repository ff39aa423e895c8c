// Division of positional numbers in tiles, for one level of instructions: included as positional_loops.hpp
// is, after it.
//
// Algorithm D of D. Knuth, "The Art of Computer Programming", vol. 2, 4.3.1, in all numbers of a tile at
// once, with two changes. A digit is estimated from the leading two digits of what is left, times a
// reciprocal of two digits. And what is left is kept negative, in digits that take the products of many rows
// before they are carried, so that no digit of a row waits for another one. So the leading digits are known
// but for carries: they tell a digit of the quotient unless it lies next to a whole number, and there, or
// where nothing leads, all digits are settled.

// All ones where a difference is negative.
RNS_LEVEL_INLINE void sign_mask(const Lanes& x, Lanes& mask) { mask = (Lanes)((SignedLanes)x >> 63); }

// By how much an estimate may be too great without this, and more, in parts of 1 / B: 33 for carries, which
// 28 products of digits of 29 bits make, 20 for the reciprocal, and 6 for digits that are left out.
constexpr u64 kDoubt = 64;

RNS_LEVEL_INLINE bool any_of(const Lanes& x) {
  u64 any = 0;
  for (i64 j = 0; j < kLanes; ++j) any |= x[j];
  return any != 0;
}

// B^4 / (d1 B + d0) as B^2 + v1 B + v0, but for at most 20, where B is the base and the highest bit of d1
// set.
RNS_LEVEL_INLINE void reciprocal_of(u64 d1, u64 d0, u64& v1, u64& v0) {
  using i128 = __int128;
  constexpr i128 base = i128{1} << kDigitBits;
  const double inverse = double(base) / (double(d1) + double(d0) / double(base));  // to 2^-52 of itself
  const u64 upper = static_cast<u64>(inverse * double(base));
  // B^3 - upper (d1 B + d0), a few times the divisor, modulo 2^128.
  const auto rest = static_cast<i128>((kDigitBits < 42 ? u128{1} << 3 * kDigitBits % 128 : 0) -
                                      (static_cast<u128>(d1) << kDigitBits | d0) * upper);
  const i64 lower = static_cast<i64>(double(static_cast<i64>(rest >> kDigitBits)) * inverse);
  const i128 found = std::clamp<i128>(base * upper + lower - base * base, 0, base * base - 1);
  v1 = static_cast<u64>(found >> kDigitBits);
  v0 = static_cast<u64>(found) & kDigitMask;
}

// Numbers as magnitudes, with all ones in `sign` of those that were negative.
RNS_LEVEL_INLINE void load_magnitudes(const LimbRows& x, bool is_signed, Lanes* digits, i64 count,
                                      Lanes& sign) {
  load_digits(x, digits, count);
  extended_limb(x, x.limbs, is_signed, sign);
  sign = -(sign & 1);
  if (!is_signed) return;
  // 2^(32 limbs) less the limbs.
  Lanes carry = sign & 1;
  for (i64 d = 0; d < count; ++d) {
    const i64 used = std::clamp<i64>(32 * x.limbs - kDigitBits * d, 0, kDigitBits);
    carry += (digits[d] ^ sign) & ((u64{1} << used) - 1);
    digits[d] = carry & kDigitMask;
    carry >>= kDigitBits;
  }
}

// Digits that hold so many limbs, at least two.
RNS_LEVEL_INLINE i64 division_digits(i64 limbs) {
  return std::max<i64>(2, (32 * limbs + kDigitBits - 1) / kDigitBits);
}

// x 2^(B whole + part) of each number in `count` digits, by the shifts of the divisors; digits of the
// opposite where `negative` is ones.
RNS_LEVEL_INLINE void scale(const DivisorTile& by, const Lanes* x, i64 x_count, Lanes* out, i64 count,
                            u64 negative) {
  const Lanes whole = *lanes_of(by.whole), part = *lanes_of(by.part);
  for (i64 i = 0; i < count; ++i) {
    out[i] = by.most_whole == 0 && i < x_count ? x[i] : Lanes{};
    for (i64 j = 0; by.most_whole != 0 && j < kLanes; ++j) {
      const i64 from = i - static_cast<i64>(whole[j]);
      if (from >= 0 && from < x_count) out[i][j] = x[from][j];
    }
  }
  for (i64 i = count - 1; i >= 0; --i) {
    const Lanes below = i > 0 ? out[i - 1] : Lanes{};
    out[i] = (((out[i] << part | below >> (kDigitBits - part)) & kDigitMask) ^ negative) - negative;
  }
}

// The reverse, in place, of numbers that are multiples of what they were scaled by.
RNS_LEVEL_INLINE void scale_back(const DivisorTile& by, Lanes* x, i64 count) {
  const Lanes whole = *lanes_of(by.whole), part = *lanes_of(by.part);
  for (i64 i = 0; i < count; ++i) {
    const Lanes above = i + 1 < count ? x[i + 1] : Lanes{};
    x[i] = (x[i] >> part | above << (kDigitBits - part)) & kDigitMask;
  }
  for (i64 i = 0; by.most_whole != 0 && i < count; ++i) {
    for (i64 j = 0; j < kLanes; ++j) {
      const i64 from = i + static_cast<i64>(whole[j]);
      x[i][j] = from < count ? x[from][j] : 0;
    }
  }
}

RNS_LEVEL void load_divisor(const LimbRows& y, bool is_signed, DivisorTile& tile,
                            PositionalScratch& scratch) {
  const i64 n = division_digits(y.limbs);
  tile.digits = n;
  tile.limbs = y.limbs;
  tile.divisor.resize(n);
  scratch.x.resize(n);
  Lanes* x = lanes_of(scratch.x);
  for (LaneVector* each : {&tile.sign, &tile.whole, &tile.part}) each->resize(1);
  tile.reciprocal.resize(2);
  load_magnitudes(y, is_signed, x, n, *lanes_of(tile.sign));
  Lanes &whole = *lanes_of(tile.whole), &part = *lanes_of(tile.part);
  tile.most_whole = 0;
  for (i64 j = 0; j < kLanes; ++j) {
    i64 top = n - 1;
    while (top > 0 && x[top][j] == 0) --top;
    if (x[top][j] == 0) x[top][j] = 1;  // of columns that no number is in
    whole[j] = static_cast<u64>(n - 1 - top);
    part[j] = static_cast<u64>(__builtin_clzll(x[top][j]) - (64 - kDigitBits));
    tile.most_whole = std::max(tile.most_whole, n - 1 - top);
  }
  Lanes* d = lanes_of(tile.divisor);
  scale(tile, x, n, d, n, 0);
  Lanes* reciprocal = lanes_of(tile.reciprocal);
  for (i64 j = 0; j < kLanes; ++j) {
    u64 v1, v0;
    reciprocal_of(d[n - 1][j], d[n - 2][j], v1, v0);
    reciprocal[1][j] = v1;
    reciprocal[0][j] = v0;
  }
}

// Passes on what digits of any sign hold beyond themselves.
RNS_LEVEL_INLINE void carry_signed(Lanes* x, i64 count) {
  for (i64 i = 0; i < count; ++i) {
    x[i + 1] += (Lanes)((SignedLanes)x[i] >> kDigitBits);
    x[i] &= kDigitMask;
  }
}

// Whether the highest digits do not tell of all numbers that they are above 0 and below the divisors, if one
// more or less may make a difference.
RNS_LEVEL_INLINE bool are_unsure(const Lanes& highest, const Lanes& of_divisors) {
  Lanes is_small, is_below;
  sign_mask(highest - 1, is_small);
  sign_mask(highest - of_divisors + 1, is_below);
  return any_of(is_small | ~is_below);
}

// What is left, from its negative in digits of any sign: at least 0 and below the divisor, which the last
// digit of the quotient follows.
RNS_LEVEL void settle(Lanes* rest, const Lanes* d, i64 n, Lanes& q) {
  Lanes carried = {};
  for (i64 i = 0; i < n; ++i) {
    carried -= rest[i];
    rest[i] = i + 1 < n ? carried & kDigitMask : carried;
    carried = (Lanes)((SignedLanes)carried >> kDigitBits);
  }
  while (are_unsure(rest[n - 1], d[n - 1])) {
    Lanes difference = {}, is_below, is_less;
    for (i64 i = 0; i < n; ++i)
      difference = (Lanes)((SignedLanes)(rest[i] - d[i] + difference) >> kDigitBits);
    sign_mask(rest[n - 1], is_below);
    sign_mask(difference, is_less);
    if (!any_of(is_below | ~is_less)) return;
    for (i64 i = 0; i < n; ++i) rest[i] += (d[i] & is_below) - (d[i] & ~is_less);
    carry_signed(rest, n - 1);
    q += is_below - ~is_less;
  }
}

// A digit of the quotient from the leading two digits of what is left: it is right, or one too small where
// the quotient is near a whole number.
RNS_LEVEL_INLINE void estimate_digit(const DivisorTile& by, const Lanes& x1, const Lanes& x0, Lanes& digit) {
  const Lanes v1 = lanes_of(by.reciprocal)[1], v0 = lanes_of(by.reciprocal)[0];
  // (x1 B + x0) (B^2 + v1 B + v0) / B^3 without the products' lowest digits.
  Lanes low = x0 + (kDigitMask + 1 - kDoubt), high = x1 - 1, unused = {}, is_negative;
  add_product(low, high, x1, v1);
  add_product(unused, low, x0, v1);
  add_product(unused, low, x1, v0);
  digit = high + (low >> kDigitBits);
  sign_mask(digit | x1, is_negative);
  digit &= ~is_negative;
}

// The leading two digits of what is left, from its negative in digits of any sign below `top`, less one of
// the lower one and what more carries would change.
RNS_LEVEL_INLINE void leading_digits(const Lanes* top, Lanes& x1, Lanes& x0) {
  const Lanes second = top[-1] + (Lanes)((SignedLanes)top[-2] >> kDigitBits);
  x1 = ~(top[0] + (Lanes)((SignedLanes)second >> kDigitBits));
  x0 = ~second & kDigitMask;
}

// Quotients, of the digits by which `count` is more than those of the divisor, and what is left, still
// scaled.
RNS_LEVEL_INLINE void divide_digits(const DivisorTile& by, const Lanes* x, i64 x_count, Lanes* rest,
                                    i64 count, Lanes* q) {
  const i64 n = by.digits;
  const Lanes* d = lanes_of(by.divisor);
  scale(by, x, x_count, rest, count, ~u64{0});
  i64 until_carry = kRowsBeforeCarry;
  for (i64 i = count - n - 1; i >= 0; --i) {
    Lanes* row = rest + i;
    if (--until_carry == 0) {
      carry_signed(row + 1, n - 1);
      until_carry = kRowsBeforeCarry;
    }
    Lanes x1, x0, digit;
    leading_digits(row + n, x1, x0);
    if (i < count - n - 1 && __builtin_expect(are_unsure(x1, d[n - 1]), 0)) {
      settle(row + 1, d, n, q[i + 1]);
      for (i64 j = 1; j <= n; ++j) row[j] = -row[j];
      leading_digits(row + n, x1, x0);
    }
    estimate_digit(by, x1, x0, digit);
    add_multiple(row, d, n, digit);
    row[n - 1] += row[n] << kDigitBits;
    q[i] = digit;
  }
  settle(rest, d, n, q[0]);
}

// Limbs of digits, or of the negative of these and `beyond` where a number is negative.
RNS_LEVEL_INLINE void store_signed(const Lanes* x, i64 count, const Lanes& negative, const Lanes& beyond,
                                   const LimbResult& out) {
  Lanes carry = negative & (1 - beyond);
  Limbs<> limbs = {x, count};
  for (i64 i = 0; i < out.limbs; ++i) {
    Lanes limb;
    limbs.take(limb);
    carry += (limb ^ negative) & kLimbMask;
    limb = carry & kLimbMask;
    store_limbs(limb, out.row(i));
    carry >>= 32;
  }
}

// Digits of x scaled as the divisor is, with one above.
RNS_LEVEL_INLINE i64 scaled_digits(const DivisorTile& by, i64 x_count) {
  return std::max(by.digits, x_count + by.most_whole) + 1;
}

RNS_LEVEL void divide(const DivisorTile& by, const LimbRows& x, bool is_signed, const LimbResult& quotient,
                      const LimbResult& remainder, PositionalScratch& scratch) {
  const i64 n = by.digits, x_count = division_digits(x.limbs);
  const i64 count = scaled_digits(by, x_count), q_count = count - n;
  scratch.x.resize(x_count);
  scratch.y.resize(count);
  scratch.z.resize(q_count);
  Lanes *rest = lanes_of(scratch.y), *q = lanes_of(scratch.z);
  const Lanes* d = lanes_of(by.divisor);
  Lanes sign;
  load_magnitudes(x, is_signed, lanes_of(scratch.x), x_count, sign);
  divide_digits(by, lanes_of(scratch.x), x_count, rest, count, q);
  // From the magnitudes' to those of numbers of different signs: one further from 0 unless nothing is left.
  const Lanes divisor_sign = *lanes_of(by.sign), differ = sign ^ divisor_sign;
  Lanes some = {};
  for (i64 i = 0; i < n; ++i) some |= rest[i];
  const Lanes is_away = differ & (Lanes)(some != 0);
  Lanes borrow = {};
  for (i64 i = 0; is_signed && i < n; ++i) {
    const Lanes t = d[i] - rest[i] + borrow;
    borrow = (Lanes)((SignedLanes)t >> kDigitBits);
    rest[i] = (t & kDigitMask & is_away) | (rest[i] & ~is_away);
  }
  scale_back(by, rest, n);
  store_signed(q, q_count, differ, is_away & 1, quotient);
  store_signed(rest, n, divisor_sign, Lanes{}, remainder);
}

RNS_LEVEL void mod_multiply(const DivisorTile& by, const LimbRows& x, const LimbRows& y,
                            const LimbResult& out, PositionalScratch& scratch) {
  const i64 bits = 32 * (x.limbs + y.limbs), x_count = (bits + kDigitBits - 1) / kDigitBits;
  multiply_in_scratch(x, y, digits_for(bits), kLeastHalvedDigits, scratch);
  const i64 count = scaled_digits(by, x_count);
  scratch.x.resize(count - by.digits);
  scratch.y.resize(count);
  Lanes* rest = lanes_of(scratch.y);
  divide_digits(by, lanes_of(scratch.z), x_count, rest, count, lanes_of(scratch.x));
  scale_back(by, rest, by.digits);
  store_digits(rest, by.digits, out);
}
