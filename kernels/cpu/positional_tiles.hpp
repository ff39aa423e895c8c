// Products of digits four by four, with the sums in registers, and by halves, for one level: included as
// positional_loops.hpp is, before it, where the level has add_row, add_tile, montgomery_rows and
// kTilesBeforeCarry.

constexpr i64 kSums = 2 * kDigitTile + 1;  // that a tile of products adds to

// Sums become digits; what is above the last one is added to the next sum.
RNS_LEVEL_INLINE void carry(Lanes* sums, i64 count) {
  for (i64 d = 0; d < count; ++d) {
    sums[d + 1] += sums[d] >> kDigitBits;
    sums[d] &= kDigitMask;
  }
}

// Adds the products of weight c in all: of tiles of x from `first` to `last` with those of y.
RNS_LEVEL_INLINE void add_tiles(const Lanes* x, const Lanes* y, i64 first, i64 last, i64 c, Lanes* sum) {
  i64 until_carry = kTilesBeforeCarry;
  for (i64 i = first; i <= last; i += kDigitTile) {
    add_tile(sum, x + i, y + (c - i));
    if (--until_carry == 0) {
      carry(sum, kSums - 1);
      until_carry = kTilesBeforeCarry;
    }
  }
}

// Takes the digits of the lowest weights.
RNS_LEVEL_INLINE void take_digits(Lanes* sum, Lanes* z) {
  carry(sum, kDigitTile);
  for (i64 t = 0; t < kDigitTile; ++t) z[t] = sum[t];
}

RNS_LEVEL_INLINE void go_on(Lanes* sum) {
  for (i64 t = 0; t < kSums; ++t) sum[t] = t + kDigitTile < kSums ? sum[t + kDigitTile] : Lanes{};
}

// The lowest `count` digits of a product, whole tiles of them: those of the same weight together.
RNS_LEVEL void multiply_digits(const Lanes* x, i64 x_count, const Lanes* y, i64 y_count, Lanes* z,
                               i64 count) {
  Lanes sum[kSums] = {};
  for (i64 c = 0; c < count; c += kDigitTile) {
    add_tiles(x, y, std::max<i64>(0, c - y_count + kDigitTile), std::min(c, x_count - kDigitTile), c, sum);
    take_digits(sum, z + c);
    go_on(sum);
  }
}

// The same of a square: each pair of different tiles counts twice.
RNS_LEVEL void square_digits(const Lanes* x, i64 x_count, Lanes* z, i64 count) {
  Lanes sum[kSums] = {};
  for (i64 c = 0; c < count; c += kDigitTile) {
    Lanes half[kSums] = {};
    const i64 middle = c / 2 / kDigitTile * kDigitTile, is_tile = c % (2 * kDigitTile) == 0;
    add_tiles(x, x, std::max<i64>(0, c - x_count + kDigitTile), is_tile ? middle - kDigitTile : middle, c,
              half);
    carry(half, kSums - 1);
    for (i64 t = 0; t < kSums; ++t) sum[t] += 2 * half[t];
    if (is_tile && middle < x_count) add_tile(sum, x + middle, x + middle);
    take_digits(sum, z + c);
    go_on(sum);
  }
}

// ---- A. Karatsuba's method, for long numbers

// The fewest digits, at least `digits`, that are halved to whole tiles until there are less than `least`.
RNS_LEVEL_INLINE i64 halved_digits(i64 digits, i64 least) {
  i64 tile = kDigitTile;
  while ((digits + tile - 1) / tile * kDigitTile >= least) tile *= 2;
  return (digits + tile - 1) / tile * tile;
}

// |x - y|, and ones where it is y - x.
RNS_LEVEL_INLINE void distance(const Lanes* x, const Lanes* y, i64 n, Lanes* out, Lanes& sign) {
  Lanes borrow = {};
  for (i64 i = 0; i < n; ++i) {
    const Lanes t = x[i] - y[i] + borrow;
    borrow = (Lanes)((SignedLanes)t >> kDigitBits);
    out[i] = t & kDigitMask;
  }
  sign = borrow;
  Lanes carry = sign & 1;
  for (i64 i = 0; i < n; ++i) {
    carry += (out[i] ^ sign) & kDigitMask;
    out[i] = carry & kDigitMask;
    carry >>= kDigitBits;
  }
}

// The product of n digits by n, which halved_digits gives, or the square if x is y. `memory` has room for 4
// n.
RNS_LEVEL void multiply_halves(const Lanes* x, const Lanes* y, i64 n, i64 least, Lanes* z, Lanes* memory) {
  if (n < (x == y ? 2 * least : least) || n % (2 * kDigitTile) != 0) {
    if (x == y) return square_digits(x, n, z, 2 * n);
    return multiply_digits(x, n, y, n, z, 2 * n);
  }
  const i64 h = n / 2;
  Lanes *x_distance = memory, *y_distance = memory + h, *middle = memory + n, x_sign, y_sign;
  distance(x, x + h, h, x_distance, x_sign);
  if (x == y) {
    y_distance = x_distance;
    y_sign = x_sign;
  } else {
    distance(y, y + h, h, y_distance, y_sign);
  }
  multiply_halves(x_distance, y_distance, h, least, middle, memory + 2 * n);
  multiply_halves(x, y, h, least, z, memory + 2 * n);
  multiply_halves(x + h, y + h, h, least, z + n, memory + 2 * n);
  // x0 y1 + x1 y0 = x0 y0 + x1 y1 - (x0 - x1) (y0 - y1): the sign is that of the last.
  const Lanes minus = ~(x_sign ^ y_sign);
  for (i64 i = 0; i < h; ++i) {
    const Lanes low = z[h + i] + z[n + i];
    z[h + i] = low + z[i] + (middle[i] ^ minus) - minus;
    z[n + i] = low + z[n + h + i] + (middle[h + i] ^ minus) - minus;
  }
  Lanes carried = {};
  for (i64 i = h; i < 2 * n; ++i) {
    carried += z[i];
    z[i] = carried & kDigitMask;
    carried = (Lanes)((SignedLanes)carried >> kDigitBits);
  }
}

// The lowest n digits alone (T. Mulders, "On short multiplications and divisions", 2000, with halves).
RNS_LEVEL void multiply_low_halves(const Lanes* x, const Lanes* y, i64 n, i64 least, Lanes* z,
                                   Lanes* memory) {
  if (n < 4 * least || n % (2 * kDigitTile) != 0) {
    if (x == y) return square_digits(x, n, z, n);
    return multiply_digits(x, n, y, n, z, n);
  }
  const i64 h = n / 2;
  Lanes *first = memory, *second = memory + h;
  multiply_low_halves(x, y + h, h, least, first, memory + n);
  if (x != y) multiply_low_halves(x + h, y, h, least, second, memory + n);
  multiply_halves(x, y, h, least, z, memory + n);
  Lanes carried = {};
  for (i64 i = 0; i < h; ++i) {
    carried += z[h + i] + first[i] + (x == y ? first : second)[i];
    z[h + i] = carried & kDigitMask;
    carried >>= kDigitBits;
  }
}

// x / R modulo m, below 2 m, of x below R / 2 times m in twice the digits of m, whole tiles: `quotient` has
// room for these.
RNS_LEVEL void montgomery_reduce(const MontgomeryTile& m, const Lanes* x, Lanes* z, Lanes* quotient) {
  const i64 n = m.digits;
  const Lanes *modulus = lanes_of(m.modulus), inverse = *lanes_of(m.inverse);
  Lanes sum[kSums] = {};
  for (i64 c = 0; c < 2 * n; c += kDigitTile) {
    for (i64 t = 0; t < kDigitTile; ++t) sum[t] += x[c + t];
    add_tiles(quotient, modulus, std::max<i64>(0, c - n + kDigitTile), std::min(c, n) - kDigitTile, c, sum);
    if (c >= n) {
      take_digits(sum, z + (c - n));
    } else {
      for (i64 s = 0; s < kDigitTile; ++s) {
        Lanes q = {}, unused = {};
        add_product(q, unused, sum[s] & kDigitMask, inverse);
        quotient[c + s] = q & kDigitMask;
        add_row(sum + s, modulus, quotient[c + s]);
        sum[s + 1] += sum[s] >> kDigitBits;
      }
    }
    go_on(sum);
  }
}

// x y / R modulo m, below 2 m if one of x and y is and the other is below R / 4 (C. Walter, "Montgomery
// exponentiation needs no final subtractions", 1999). z may be x or y; one array for both is squared.
RNS_LEVEL void montgomery_product(const MontgomeryTile& m, const Lanes* x, const Lanes* y, Lanes* z,
                                  Lanes* memory) {
  const i64 n = m.digits;
  if (n < kLeastTiledDigits) {
    montgomery_rows(m, x, y, memory);
    Lanes carried = {};
    for (i64 j = 0; j < n; ++j) {
      carried += memory[j];
      z[j] = carried & kDigitMask;
      carried >>= kDigitBits;
    }
    return;
  }
  Lanes* product = memory + n;
  multiply_halves(x, y, n, kLeastHalvedDigits, product, product + 2 * n);
  montgomery_reduce(m, product, z, memory);
}
