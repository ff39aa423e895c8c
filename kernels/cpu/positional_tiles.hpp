// Products of digits four by four, with the sums in registers, for one level of instructions: included as
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

#include "positional_karatsuba.hpp"

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
