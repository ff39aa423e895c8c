// Arithmetic modulo r^k + 1 on tiles of numbers: one digit of all of them after another, so that numbers are
// what vector registers hold.
#include <type_traits>
#include <utility>

#include "fermat.hpp"

namespace rns {

namespace {

// A carry for each number of a tile.
template <class Count, i64 kLanes>
struct Carries {
  Count c[kLanes] = {};

  RNS_INLINE bool any() const {
    Count all = 0;
    for (i64 l = 0; l < kLanes; ++l) all |= c[l];
    return all != 0;
  }
};

// Each number less its c, -1, 0 or 1 (fermat_settle).
template <class Digit, i64 kLanes = kFermatLanes<Digit>>
RNS_INLINE void settle(const FermatField& f, Carries<i32, kLanes>& carries, FermatResult<Digit> x) {
  const Digit r = static_cast<Digit>(f.radix.radix);
  for (i64 i = 0; i < f.digits; ++i) {
    if (!carries.any()) return;
    Digit* __restrict__ row = x.row(i);
    for (i64 l = 0; l < kLanes; ++l) {
      const i32 c = carries.c[l];
      const Digit from = c == 1 ? 0 : r - 1;
      const bool goes_on = (c != 0) & (row[l] == from);
      row[l] = goes_on ? r - 1 - from : row[l] - static_cast<Digit>(c);
      carries.c[l] = goes_on ? c : 0;
    }
  }
  for (i64 l = 0; l < kLanes; ++l) {  // what is carried out of all digits makes -1
    if (carries.c[l] == 0) continue;
    for (i64 i = 0; i < f.digits; ++i) x.row(i)[l] = i == f.digits - 1 ? r : 0;
  }
}

// Compilers make vectors of carries with signs, which these sums do not need.
template <class Digit, i64 kLanes = kFermatLanes<Digit>>
RNS_INLINE void add_tile(const FermatField& f, FermatRows<Digit> x, FermatRows<Digit> y,
                         FermatResult<Digit> out) {
  const Digit r = static_cast<Digit>(f.radix.radix);
  Carries<i32, kLanes> carries;
  for (i64 i = 0; i < f.digits; ++i) {
    const Digit *a = x.row(i), *b = y.row(i);
    Digit* __restrict__ z = out.row(i);
    for (i64 l = 0; l < kLanes; ++l) z[l] = fermat_add_signed(a[l], b[l], carries.c[l], r);
  }
  settle(f, carries, out);
}

template <class Digit, i64 kLanes = kFermatLanes<Digit>>
RNS_INLINE void subtract_tile(const FermatField& f, FermatRows<Digit> x, FermatRows<Digit> y,
                              FermatResult<Digit> out) {
  const Digit r = static_cast<Digit>(f.radix.radix);
  Carries<i32, kLanes> carries;
  for (i64 i = 0; i < f.digits; ++i) {
    const Digit *a = x.row(i), *b = y.row(i);
    Digit* __restrict__ z = out.row(i);
    for (i64 l = 0; l < kLanes; ++l) z[l] = fermat_subtract_signed(a[l], b[l], carries.c[l], r);
  }
  settle(f, carries, out);
}

template <class Digit, i64 kLanes = kFermatLanes<Digit>>
RNS_INLINE void shift_tile(const FermatField& f, FermatRows<Digit> x, i32 by, FermatResult<Digit> out) {
  const Digit r = static_cast<Digit>(f.radix.radix);
  const FermatShift shift = {f.digits, by};
  Carries<i32, kLanes> carries;
  for (i32 i = 0; i < f.digits; ++i) {
    const Digit* a = x.row(shift.from(i));
    Digit* __restrict__ z = out.row(i);
    i32* c = carries.c;
    if (shift.is_negative(i)) {
      for (i64 l = 0; l < kLanes; ++l) {
        Digit borrow = c[l] < 0 ? 1 : 0;
        z[l] = fermat_subtract(static_cast<Digit>(c[l] > 0 ? 1 : 0), a[l], borrow, r);
        c[l] = -static_cast<i32>(borrow);
      }
    } else {
      for (i64 l = 0; l < kLanes; ++l) z[l] = fermat_carry(a[l], c[l], r);
    }
  }
  settle(f, carries, out);
}

// `Signed` holds three digits and a sign, where the radix is at most a quarter of a word.
template <class Signed, class Digit, i64 kLanes = kFermatLanes<Digit>>
RNS_INLINE void narrow_butterfly_tile(const FermatField& f, FermatRows<Digit> x, FermatRows<Digit> y, i32 by,
                                      FermatResult<Digit> sum, FermatResult<Digit> difference) {
  const Signed r = static_cast<Signed>(f.radix.radix);
  const FermatShift shift = {f.digits, by};
  Carries<i32, kLanes> up, down;
  for (i32 i = 0; i < f.digits; ++i) {
    const Digit *a = x.row(i), *b = y.row(shift.from(i));
    Digit* __restrict__ s = sum.row(i), * __restrict__ d = difference.row(i);
    const Signed sign = shift.is_negative(i) ? -1 : 0;
    for (i64 l = 0; l < kLanes; ++l) {
      const Signed digit = (static_cast<Signed>(b[l]) ^ sign) - sign;
      s[l] = fermat_reduce<Digit>(static_cast<Signed>(a[l]) + digit + up.c[l], up.c[l], r);
      d[l] = fermat_reduce<Digit>(static_cast<Signed>(a[l]) - digit + down.c[l], down.c[l], r);
    }
  }
  settle(f, up, sum);
  settle(f, down, difference);
}

template <class Digit, i64 kLanes = kFermatLanes<Digit>>
RNS_INLINE void butterfly_tile(const FermatField& f, FermatRows<Digit> x, FermatRows<Digit> y, i32 by,
                               FermatResult<Digit> sum, FermatResult<Digit> difference) {
  const Digit r = static_cast<Digit>(f.radix.radix);
  const FermatShift shift = {f.digits, by};
  Carries<i32, kLanes> carries[2];
  for (i32 i = 0; i < f.digits; ++i) {
    // Of a digit that has come round, the sum is a difference.
    const bool is_negative = shift.is_negative(i);
    const Digit *a = x.row(i), *b = y.row(shift.from(i));
    Digit* __restrict__ s = (is_negative ? difference : sum).row(i);
    Digit* __restrict__ d = (is_negative ? sum : difference).row(i);
    i32 *up = carries[is_negative].c, *down = carries[!is_negative].c;
    for (i64 l = 0; l < kLanes; ++l) s[l] = fermat_add_signed(a[l], b[l], up[l], r);
    for (i64 l = 0; l < kLanes; ++l) d[l] = fermat_subtract_signed(a[l], b[l], down[l], r);
  }
  settle(f, carries[0], sum);
  settle(f, carries[1], difference);
}

// Sums of products of a group of numbers, their words side by side.
template <class Digit, bool kWide, i64 kGroup>
struct Sums {
  using Sum = FermatSum<Digit, kWide>;
  alignas(64) decltype(Sum::low) low[kGroup] = {};
  alignas(64) decltype(Sum::high) high[kGroup] = {};

  template <class Word>
  RNS_INLINE void add(const Word* a, const Word* b) {
    for (i64 l = 0; l < kGroup; ++l) {
      Sum sum = at(l);
      sum.add(static_cast<Digit>(a[l]), static_cast<Digit>(b[l]));
      set(l, sum);
    }
  }
  template <class Word>
  RNS_INLINE void subtract(const Word* a, const Word* b) {
    for (i64 l = 0; l < kGroup; ++l) {
      Sum sum = at(l), other;
      other.add(static_cast<Digit>(a[l]), static_cast<Digit>(b[l]));
      sum.subtract(other);
      set(l, sum);
    }
  }
  RNS_INLINE Sum at(i64 l) const { return {low[l], kWide ? high[l] : 0}; }
  RNS_INLINE void set(i64 l, const Sum& sum) {
    low[l] = sum.low;
    if (kWide) high[l] = sum.high;
  }
};

// The digits of a tile in words as wide as their products, which multiplications take as they load them.
template <class Word, class Digit, i64 kLanes = kFermatLanes<Digit>>
class Widened {
 public:
  RNS_INLINE Widened(FermatRows<Digit> x, i64 digits) {
    for (i64 i = 0; i < digits; ++i) {
      for (i64 l = 0; l < kLanes; ++l) words_[i * kLanes + l] = x.row(i)[l];
    }
  }
  RNS_INLINE const Word* row(i64 i) const { return words_ + i * kLanes; }

 private:
  alignas(64) Word words_[kMostDigits * kLanes];
};

// The same digits as they are.
template <class Digit>
struct Plain : FermatRows<Digit> {
  RNS_INLINE Plain(FermatRows<Digit> x, i64) : FermatRows<Digit>(x) {}
};

template <bool kWide, class Digit, i64 kLanes = kFermatLanes<Digit>>
RNS_INLINE void multiply_tile(const FermatField& f, FermatRows<Digit> x, FermatRows<Digit> y,
                              FermatResult<Digit> out) {
  using Signed = typename FermatWords<Digit>::Signed;
  // Of 64-bit digits a sum takes four words: one number at a time keeps it in registers.
  constexpr i64 kGroup = sizeof(Digit) == 8 ? 1 : kLanes;
  // Sums of two words leave registers for it; of longer ones the wider loads cost more than they save.
  using Operand = std::conditional_t<sizeof(Digit) == 4 && !kWide, Widened<u64, Digit>, Plain<Digit>>;
  const Operand a = Operand(x, f.digits), b = Operand(y, f.digits);
  const Digit r = static_cast<Digit>(f.radix.radix);
  Carries<i32, kLanes> carries;
  for (i64 start = 0; start < kLanes; start += kGroup) {
    Signed carry[kGroup] = {};
    for (i64 i = 0; i < f.digits; ++i) {
      Sums<Digit, kWide, kGroup> sums;
      for (i64 j = 0; j <= i; ++j) sums.add(a.row(j) + start, b.row(i - j) + start);
      for (i64 j = i + 1; j < f.digits; ++j) sums.subtract(a.row(j) + start, b.row(f.digits + i - j) + start);
      Digit* z = out.row(i) + start;
      for (i64 l = 0; l < kGroup; ++l) {
        FermatSum<Digit, kWide> sum = sums.at(l);
        sum.carry(carry[l]);
        z[l] = sum.divide(f.radix, carry[l]);
      }
    }
    Digit* z = out.row(0) + start;
    for (i64 l = 0; l < kGroup; ++l) {
      FermatSum<Digit, false> sum;
      sum.carry(static_cast<Signed>(z[l]) - carry[l]);
      z[l] = sum.divide(f.radix, carry[l]);
      carries.c[start + l] = static_cast<i32>(carry[l]);
    }
  }
  for (i64 i = 1; i < f.digits && carries.any(); ++i) {
    Digit* z = out.row(i);
    for (i64 l = 0; l < kLanes; ++l) z[l] = fermat_carry(z[l], carries.c[l], r);
  }
  settle(f, carries, out);
}

#define TILE_OPERATIONS(Digit, Narrow, name)                                                                 \
  RNS_VECTORISED void add_##name(const FermatField& f, FermatRows<Digit> x, FermatRows<Digit> y,             \
                                 FermatResult<Digit> out) {                                                  \
    add_tile<Digit>(f, x, y, out);                                                                           \
  }                                                                                                          \
  RNS_VECTORISED void subtract_##name(const FermatField& f, FermatRows<Digit> x, FermatRows<Digit> y,        \
                                      FermatResult<Digit> out) {                                             \
    subtract_tile<Digit>(f, x, y, out);                                                                      \
  }                                                                                                          \
  RNS_VECTORISED void shift_##name(const FermatField& f, FermatRows<Digit> x, i32 shift,                     \
                                   FermatResult<Digit> out) {                                                \
    shift_tile<Digit>(f, x, shift, out);                                                                     \
  }                                                                                                          \
  RNS_VECTORISED void butterfly_narrow_##name(const FermatField& f, FermatRows<Digit> x,                     \
                                              FermatRows<Digit> y, i32 shift, FermatResult<Digit> s,         \
                                              FermatResult<Digit> d) {                                       \
    narrow_butterfly_tile<Narrow>(f, x, y, shift, s, d);                                                     \
  }                                                                                                          \
  RNS_VECTORISED void butterfly_wide_##name(const FermatField& f, FermatRows<Digit> x, FermatRows<Digit> y,  \
                                            i32 shift, FermatResult<Digit> s, FermatResult<Digit> d) {       \
    butterfly_tile<Digit>(f, x, y, shift, s, d);                                                             \
  }                                                                                                          \
  RNS_VECTORISED void multiply_narrow_##name(const FermatField& f, FermatRows<Digit> x, FermatRows<Digit> y, \
                                             FermatResult<Digit> out) {                                      \
    multiply_tile<false, Digit>(f, x, y, out);                                                               \
  }                                                                                                          \
  RNS_VECTORISED void multiply_wide_##name(const FermatField& f, FermatRows<Digit> x, FermatRows<Digit> y,   \
                                           FermatResult<Digit> out) {                                        \
    multiply_tile<true, Digit>(f, x, y, out);                                                                \
  }                                                                                                          \
  }                                                                                                          \
  template <>                                                                                                \
  void FermatTiles<Digit>::add(const FermatField& f, Rows x, Rows y, Result out) {                           \
    add_##name(f, x, y, out);                                                                                \
  }                                                                                                          \
  template <>                                                                                                \
  void FermatTiles<Digit>::subtract(const FermatField& f, Rows x, Rows y, Result out) {                      \
    subtract_##name(f, x, y, out);                                                                           \
  }                                                                                                          \
  template <>                                                                                                \
  void FermatTiles<Digit>::shift(const FermatField& f, Rows x, i32 shift, Result out) {                      \
    shift_##name(f, x, shift, out);                                                                          \
  }                                                                                                          \
  template <>                                                                                                \
  void FermatTiles<Digit>::butterfly(const FermatField& f, Rows x, Rows y, i32 shift, Result sum,            \
                                     Result difference) {                                                    \
    const bool is_narrow = f.radix.radix >> (8 * sizeof(Digit) - 2) == 0;                                    \
    (is_narrow ? butterfly_narrow_##name : butterfly_wide_##name)(f, x, y, shift, sum, difference);          \
  }                                                                                                          \
  template <>                                                                                                \
  void FermatTiles<Digit>::multiply(const FermatField& f, Rows x, Rows y, Result out) {                      \
    (f.radix.shift > 0 ? multiply_wide_##name : multiply_narrow_##name)(f, x, y, out);                       \
  }                                                                                                          \
  namespace {

TILE_OPERATIONS(u32, i32, narrow_digits)
TILE_OPERATIONS(u64, i64, wide_digits)

}  // namespace
}  // namespace rns
