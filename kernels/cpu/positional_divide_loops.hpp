// Division of positional numbers in tiles, for one level of instructions: included as positional_loops.hpp
// is, after it.
//
// Algorithm D of D. Knuth, "The Art of Computer Programming", vol. 2, 4.3.1, in all numbers of a tile at
// once. A digit is estimated from three digits by two: Algorithms 3 and 4 of N. Moller and T. Granlund,
// "Improved division by invariant integers", IEEE Trans. Computers 60(2), 2011. It is right or one too great.

// All ones where a difference is negative.
RNS_LEVEL_INLINE void sign_mask(const Lanes& x, Lanes& mask) { mask = (Lanes)((SignedLanes)x >> 63); }

// floor((2^(3 B) - 1) / (d1 2^B + d0)) - 2^B for digits of B bits, the highest bit of d1 set.
RNS_LEVEL_INLINE u64 reciprocal_of(u64 d1, u64 d0) {
  const auto most = (static_cast<unsigned __int128>(1) << 2 * kDigitBits) - 1;
  u64 v = static_cast<u64>(most / d1) & kDigitMask;
  u64 p = (d1 * v + d0) & kDigitMask;
  if (p < d0) {
    --v;
    if (p >= d1) {
      --v;
      p -= d1;
    }
    p = (p - d1) & kDigitMask;
  }
  const auto t = static_cast<unsigned __int128>(d0) * v;
  const u64 high = static_cast<u64>(t >> kDigitBits), low = static_cast<u64>(t) & kDigitMask;
  p = (p + high) & kDigitMask;
  if (p < high) {
    --v;
    if (p > d1 || (p == d1 && low >= d0)) --v;
  }
  return v;
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

// x 2^(B whole + part) of each number in `count` digits, by the shifts of the divisors.
RNS_LEVEL_INLINE void scale(const DivisorTile& by, const Lanes* x, i64 x_count, Lanes* out, i64 count) {
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
    out[i] = (out[i] << part | below >> (kDigitBits - part)) & kDigitMask;
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
  for (LaneVector* each : {&tile.sign, &tile.whole, &tile.part, &tile.reciprocal}) each->resize(1);
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
  scale(tile, x, n, d, n);
  for (i64 j = 0; j < kLanes; ++j) (*lanes_of(tile.reciprocal))[j] = reciprocal_of(d[n - 1][j], d[n - 2][j]);
}

// x -= q d over the digits of d; what is to be subtracted from the next digit, at most q + 1.
RNS_LEVEL_INLINE void subtract_multiple(Lanes* x, const Lanes* d, i64 n, const Lanes& q, Lanes& above) {
  Lanes high = {}, carry = {};
  for (i64 i = 0; i < n; ++i) {
    Lanes sum = kDigitMask - x[i];
    add_to_rows(sum, high, d[i], q);
    sum += carry;
    x[i] = ~sum & kDigitMask;
    carry = sum >> kDigitBits;
  }
  above = high + carry;
}

// Adds d where the mask is ones, without the last carry.
RNS_LEVEL_INLINE void add_back(Lanes* x, const Lanes* d, i64 n, const Lanes& mask) {
  Lanes carry = {};
  for (i64 i = 0; i < n; ++i) {
    carry += x[i] + (d[i] & mask);
    x[i] = carry & kDigitMask;
    carry >>= kDigitBits;
  }
}

// The floor of three digits by the leading two of the divisor, or the greatest digit if it is more.
RNS_LEVEL_INLINE void estimate_digit(const DivisorTile& by, const Lanes* x, Lanes& digit) {
  const Lanes d1 = lanes_of(by.divisor)[by.digits - 1], d0 = lanes_of(by.divisor)[by.digits - 2];
  const Lanes x2 = x[0], x1 = x[-1], x0 = x[-2];
  Lanes is_most, is_less, t;
  t = x1 - d0;
  sign_mask(t, is_less);
  t = x2 - d1 + is_less;
  sign_mask(t, is_most);
  is_most = ~is_most;
  Lanes low = x1, high = x2;  // the reciprocal times x2, and x2 and x1
  add_product(low, high, *lanes_of(by.reciprocal), x2);
  high += low >> kDigitBits;
  low &= kDigitMask;
  high &= kDigitMask;
  Lanes product = {}, unused = {}, second = {}, second_high = {};
  add_product(product, unused, high, d1);
  add_product(second, second_high, high, d0);
  // The rest by one more than the upper digit, modulo 2^(2 B).
  Lanes r0 = x0 - second - d0, r1 = x1 - product - second_high - d1;
  r1 += (Lanes)((SignedLanes)r0 >> kDigitBits);
  r0 &= kDigitMask;
  r1 &= kDigitMask;
  Lanes is_below;
  t = r1 - low;
  sign_mask(t, is_below);  // else the digit is one less
  r0 += d0 & ~is_below;
  r1 = (r1 + (d1 & ~is_below) + (r0 >> kDigitBits)) & kDigitMask;
  r0 &= kDigitMask;
  t = r0 - d0;
  sign_mask(t, is_less);
  t = r1 - d1 + is_less;
  sign_mask(t, is_less);  // else the digit is one more
  digit = (high + (is_below & 1) + (~is_less & 1)) & kDigitMask;
  digit = (digit & ~is_most) | (is_most & kDigitMask);
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

// Quotients, of the digits by which `count` is more than those of the divisor, and what is left, still
// scaled.
RNS_LEVEL_INLINE void divide_digits(const DivisorTile& by, const Lanes* x, i64 x_count, Lanes* rest,
                                    i64 count, Lanes* q) {
  const i64 n = by.digits;
  const Lanes* d = lanes_of(by.divisor);
  scale(by, x, x_count, rest, count);
  for (i64 i = count - n - 1; i >= 0; --i) {
    Lanes above, is_over;
    estimate_digit(by, rest + i + n, q[i]);
    subtract_multiple(rest + i, d, n, q[i], above);
    above = rest[i + n] - above;
    sign_mask(above, is_over);
    bool any = false;
    for (i64 j = 0; j < kLanes; ++j) any |= is_over[j] != 0;
    if (__builtin_expect(any, 0)) {
      add_back(rest + i, d, n, is_over);
      q[i] += is_over;
    }
    rest[i + n] = Lanes{};
  }
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
