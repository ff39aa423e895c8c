// The loops of positional_digits.hpp, for one level of instructions: included in a namespace that has
// what positional_sum_loops.hpp has and takes, kDigitBits, kDigitMask, kRowsBeforeCarry, kLeastTiledDigits,
// kLeastHalvedDigits, add_product, add_multiple, what positional_tiles.hpp has, and montgomery_product.
// No guard: it is included once for each level.

// How many digits hold so many bits: whole tiles of them.
RNS_LEVEL_INLINE i64 digits_for(i64 bits) {
  const i64 digits = (bits + kDigitBits - 1) / kDigitBits;
  return (digits + kDigitTile - 1) / kDigitTile * kDigitTile;
}

template <int kBits = kDigitBits>
RNS_LEVEL_INLINE void load_digits(const LimbRows& x, Lanes* digits, i64 count) {
  constexpr i64 kMostLimbs = kBits > 33 ? 3 : 2;  // that a digit has bits of
  for (i64 d = 0; d < count; ++d) {
    const i64 i = kBits * d / 32;
    const int shift = static_cast<int>(kBits * d % 32);
    Lanes limbs[3] = {};
    for (i64 j = 0; j < kMostLimbs; ++j) {
      if (__builtin_expect(i + kMostLimbs <= x.limbs, 1)) {
        load_limbs(x.row(i + j), limbs[j]);
      } else {
        limb_or_zero(x, i + j, limbs[j]);
      }
    }
    digits[d] =
        ((limbs[0] | limbs[1] << 32) >> shift | limbs[2] << 32 << (32 - shift)) & ((u64{1} << kBits) - 1);
  }
}

// The limbs of numbers in digits, one after another.
template <int kBits = kDigitBits>
struct Limbs {
  const Lanes* digits;
  i64 count;
  i64 next = 0;
  int shift = 0;

  RNS_LEVEL_INLINE void take(Lanes& limb) {
    if (__builtin_expect(next + 2 < count, 1)) {
      limb = digits[next] >> shift | digits[next + 1] << (kBits - shift);
      if (kBits < 32) limb |= digits[next + 2] << (2 * kBits - shift);
    } else {
      limb = Lanes{};
      if (next < count) limb = digits[next] >> shift;
      if (next + 1 < count) limb |= digits[next + 1] << (kBits - shift);
    }
    limb &= kLimbMask;
    shift += 32;
    for (; shift >= kBits; shift -= kBits) ++next;
  }
};

// A row of a result that becomes canonical: the top one has bits that are not the number's.
RNS_LEVEL_INLINE void wrap_top(const LimbResult& out, Lanes& top) {
  const int unused = static_cast<int>(32 * out.limbs - out.bits);
  if (out.is_signed) {
    top = top << (32 + unused);
    top = (Lanes)((SignedLanes)top >> (32 + unused)) & kLimbMask;
  } else {
    top &= kLimbMask >> unused;
  }
}

// The upper half of the product of numbers in two's complement from that of their limbs, which are x + s
// 2^(32 limbs of x), where s is 1 of negative numbers, and likewise: limb i.
RNS_LEVEL_INLINE void subtract_signs(const LimbRows& x, const LimbRows& y, i64 i, Lanes& sum) {
  Lanes x_sign, y_sign, limb;
  extended_limb(x, x.limbs, true, x_sign);
  extended_limb(y, y.limbs, true, y_sign);
  if (i >= x.limbs) {
    extended_limb(y, i - x.limbs, false, limb);
    sum -= limb & x_sign;
  }
  if (i >= y.limbs) {
    extended_limb(x, i - y.limbs, false, limb);
    sum -= limb & y_sign;
  }
  if (i == x.limbs + y.limbs) sum += x_sign & y_sign & 1;
}

// The lowest `count` digits of a product in scratch.z, by halves where both have `least` digits.
RNS_LEVEL_INLINE void multiply_in_scratch(const LimbRows& p, const LimbRows& q, i64 count, i64 least,
                                          PositionalScratch& scratch) {
  const LimbRows &x = p.limbs >= q.limbs ? p : q, &y = p.limbs >= q.limbs ? q : p;
  const bool is_square = are_same(x, y);
  const i64 longer = digits_for(32 * x.limbs), shorter = digits_for(32 * y.limbs);
  const bool is_halved = shorter >= least;
  // So many parts of the longer number, as long as the shorter one.
  const i64 parts = is_halved ? std::max<i64>(1, (longer + shorter / 2) / shorter) : 1;
  const i64 n = is_halved ? halved_digits(std::max(shorter, (longer + parts - 1) / parts), least) : shorter;
  const i64 x_count = is_halved ? parts * n : longer;
  scratch.x.resize(x_count);
  scratch.y.resize(n);
  scratch.z.resize(x_count + n);
  Lanes *a = lanes_of(scratch.x), *b = is_square ? a : lanes_of(scratch.y), *z = lanes_of(scratch.z);
  load_digits(x, a, x_count);
  if (!is_square) load_digits(y, b, n);
  if (!is_halved)
    return is_square ? square_digits(a, n, z, count) : multiply_digits(a, x_count, b, n, z, count);
  scratch.sum.resize(2 * n);
  scratch.table.resize(4 * n);
  Lanes *part = lanes_of(scratch.sum), *memory = lanes_of(scratch.table);
  if (count <= n) return multiply_low_halves(a, b, n, least, z, memory);
  multiply_halves(a, b, n, least, z, memory);
  for (i64 first = n; first < std::min(x_count, count); first += n) {
    multiply_halves(a + first, b, n, least, part, memory);
    Lanes carried = {};
    for (i64 i = 0; i < 2 * n; ++i) {
      carried += part[i];
      if (i < n) carried += z[first + i];
      z[first + i] = carried & kDigitMask;
      carried >>= kDigitBits;
    }
  }
}

RNS_LEVEL void multiply(const LimbRows& x, const LimbRows& y, const LimbRows& addend, const LimbResult& out,
                        i64 least, u8* flags, PositionalScratch& scratch) {
  const i64 whole = std::max({x.limbs + y.limbs, addend.limbs, out.limbs}) + 1;
  const i64 limbs = flags != nullptr ? whole : out.limbs;
  const i64 count = std::min(digits_for(32 * limbs), digits_for(32 * x.limbs) + digits_for(32 * y.limbs));
  multiply_in_scratch(x, y, count, least, scratch);
  const bool is_plain = addend.limbs == 0 && !out.is_signed;
  Limbs<> product = {lanes_of(scratch.z), count};
  Lanes carried = {}, lost = {}, above = {};
  for (i64 i = 0; i < limbs; ++i) {
    Lanes sum, limb;
    product.take(sum);
    if (!is_plain) {
      if (addend.limbs != 0) {
        extended_limb(addend, i, out.is_signed, limb);
        sum += limb;
      }
      if (out.is_signed) subtract_signs(x, y, i, sum);
      sum += carried;
      carried = (Lanes)((SignedLanes)sum >> 32);
      sum &= kLimbMask;
    }
    if (i >= out.limbs) {
      lost |= sum ^ above;
      continue;
    }
    limb = sum;
    if (i == out.limbs - 1) {
      wrap_top(out, limb);
      lost = sum ^ limb;
      if (out.is_signed) above = (limb >> 31) * kLimbMask;
    }
    store_limbs(limb, out.row(i));
  }
  if (flags != nullptr) {
    for (i64 j = 0; j < kLanes; ++j) flags[j] = lost[j] != 0;
  }
}

// Digits of R, whole tiles unless they are few.
RNS_LEVEL i64 montgomery_digits(i64 limbs) {
  const i64 digits = (32 * limbs + 2 + kDigitBits - 1) / kDigitBits;
  return digits < kLeastTiledDigits ? digits : digits_for(32 * limbs + 2);
}

// Memory of montgomery_product.
RNS_LEVEL_INLINE i64 montgomery_memory(i64 digits) { return 7 * digits; }

RNS_LEVEL void load_montgomery(const LimbRows& modulus, const LimbRows& square, MontgomeryTile& tile) {
  tile.digits = montgomery_digits(modulus.limbs);
  tile.modulus.resize(tile.digits);
  tile.square.resize(tile.digits);
  load_digits(modulus, lanes_of(tile.modulus), tile.digits);
  load_digits(square, lanes_of(tile.square), tile.digits);
  const Lanes m = lanes_of(tile.modulus)[0];
  Lanes inverse = m;  // right modulo 2^3; each step doubles the bits
  for (int bits = 3; bits < kDigitBits; bits *= 2) inverse *= 2 - m * inverse;
  tile.inverse.resize(1);
  *lanes_of(tile.inverse) = -inverse & kDigitMask;
}

// From below 2 m to below m.
RNS_LEVEL_INLINE void reduce_once(const MontgomeryTile& m, Lanes* x, Lanes* difference) {
  Lanes borrow = {};
  for (i64 j = 0; j < m.digits; ++j) {
    const Lanes d = x[j] - lanes_of(m.modulus)[j] + borrow;
    borrow = (Lanes)((SignedLanes)d >> 63);
    difference[j] = d & kDigitMask;
  }
  for (i64 j = 0; j < m.digits; ++j) x[j] = (x[j] & borrow) | (difference[j] & ~borrow);
}

RNS_LEVEL_INLINE void store_digits(const Lanes* x, i64 count, const LimbResult& out) {
  Limbs<> limbs = {x, count};
  for (i64 i = 0; i < out.limbs; ++i) {
    Lanes limb;
    limbs.take(limb);
    store_limbs(limb, out.row(i));
  }
}

RNS_LEVEL void montgomery_multiply(const MontgomeryTile& m, const LimbRows& x, const LimbRows& y,
                                   const LimbResult& out, PositionalScratch& scratch) {
  const i64 n = m.digits;
  for (LaneVector* digits : {&scratch.x, &scratch.y}) digits->resize(n);
  scratch.sum.resize(montgomery_memory(n));
  const bool is_square = are_same(x, y);
  Lanes *a = lanes_of(scratch.x), *b = is_square ? a : lanes_of(scratch.y), *sum = lanes_of(scratch.sum);
  load_digits(x, a, n);
  if (!is_square) load_digits(y, b, n);
  montgomery_product(m, a, b, a, sum);  // below R / 16 + m
  montgomery_product(m, a, lanes_of(m.square), a, sum);
  reduce_once(m, a, sum);
  store_digits(a, n, out);
}

// Bits from `first` on of the exponent of number j.
RNS_LEVEL_INLINE u32 window_at(const LimbRows& exponent, i64 j, i64 first, int window) {
  const i64 i = first / 32;
  const u64 low = exponent.row(i)[j];
  const u64 high = i + 1 < exponent.limbs ? exponent.row(i + 1)[j] : 0;
  return static_cast<u32>((high << 32 | low) >> first % 32) & ((1u << window) - 1);
}

// Copies the entry of each number.
RNS_LEVEL_INLINE void look_up(const Lanes* table, i64 n, const u32* entries, Lanes* out) {
  for (i64 d = 0; d < n; ++d) {
    for (i64 j = 0; j < kLanes; ++j) out[d][j] = table[entries[j] * n + d][j];
  }
}

RNS_LEVEL void montgomery_power(const MontgomeryTile& m, const LimbRows& x, const LimbRows& exponent,
                                i64 bits, int window, const LimbResult& out, PositionalScratch& scratch) {
  const i64 n = m.digits;
  for (LaneVector* digits : {&scratch.x, &scratch.y, &scratch.z}) digits->resize(n);
  scratch.sum.resize(montgomery_memory(n));
  scratch.table.resize(n << window);
  Lanes *power = lanes_of(scratch.x), *factor = lanes_of(scratch.y), *one = lanes_of(scratch.z),
        *sum = lanes_of(scratch.sum);
  Lanes* table = lanes_of(scratch.table);
  for (i64 d = 0; d < n; ++d) one[d] = Lanes{};
  one[0] += 1;
  montgomery_product(m, lanes_of(m.square), one, table, sum);
  load_digits(x, factor, n);
  montgomery_product(m, lanes_of(m.square), factor, table + n, sum);
  for (i64 e = 2; e < i64{1} << window; ++e)
    montgomery_product(m, table + (e - 1) * n, table + n, table + e * n, sum);
  std::copy_n(table, n, power);
  const i64 windows = (bits + window - 1) / window;
  for (i64 w = windows - 1; w >= 0; --w) {
    u32 entries[kLanes], all = 0;
    for (i64 j = 0; j < kLanes; ++j) all |= entries[j] = window_at(exponent, j, w * window, window);
    for (int s = 0; s < window && w + 1 < windows; ++s) montgomery_product(m, power, power, power, sum);
    if (all == 0) continue;
    look_up(table, n, entries, factor);
    montgomery_product(m, power, factor, power, sum);
  }
  montgomery_product(m, power, one, power, sum);
  reduce_once(m, power, sum);
  store_digits(power, n, out);
}

#include "positional_divide_loops.hpp"
