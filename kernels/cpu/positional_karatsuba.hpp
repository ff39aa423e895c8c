// Products of digits by A. Karatsuba's method, for one level of instructions: included as
// positional_loops.hpp is, by it.

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
