// Arithmetic of positional numbers in digits, for each level of instructions.
#include "positional_digits.hpp"

#include <algorithm>
#include <utility>

#ifdef RNS_X86_LEVELS
#include <immintrin.h>
#endif

// Vectors are passed by reference, or to what is always inlined, so that no call depends on the level.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace rns {

namespace {

using u128 = unsigned __int128;

constexpr u64 kLimbMask = 0xffffffff;

namespace portable {

#define RNS_LEVEL
#define RNS_LEVEL_INLINE RNS_INLINE

typedef u64 Lanes __attribute__((vector_size(16), may_alias));
typedef i64 SignedLanes __attribute__((vector_size(16), may_alias));
constexpr i64 kLanes = 2;
constexpr int kDigitBits = 52;
constexpr u64 kDigitMask = (u64{1} << kDigitBits) - 1;
constexpr i64 kRowsBeforeCarry = 512;  // of two summands below 2^52 each, in sums with a sign
constexpr i64 kLeastTiledDigits = i64{1} << 62, kLeastHalvedDigits = 64;

typedef u32 LimbLanes __attribute__((vector_size(sizeof(Lanes) / 2)));

RNS_LEVEL_INLINE void load_limbs(const u32* row, Lanes& x) {
  LimbLanes limbs;
  __builtin_memcpy(&limbs, row, sizeof limbs);
  x = __builtin_convertvector(limbs, Lanes);
}

RNS_LEVEL_INLINE void store_limbs(const Lanes& x, u32* row) {
  const LimbLanes limbs = __builtin_convertvector(x, LimbLanes);
  __builtin_memcpy(row, &limbs, sizeof limbs);
}

RNS_LEVEL_INLINE Lanes* lanes_of(LaneVector& x) { return x.as<Lanes>(); }
RNS_LEVEL_INLINE const Lanes* lanes_of(const LaneVector& x) { return x.as<Lanes>(); }

// Adds the lower digit of a product of two, and the upper one.
RNS_INLINE void add_product(Lanes& low, Lanes& high, const Lanes& a, const Lanes& b) {
  for (i64 j = 0; j < kLanes; ++j) {
    const u128 product = static_cast<u128>(a[j]) * b[j];
    low[j] += static_cast<u64>(product) & kDigitMask;
    high[j] += static_cast<u64>(product >> kDigitBits);
  }
}

// Adds b times n digits, from the highest down.
RNS_LEVEL_INLINE void add_multiple(Lanes* sum, const Lanes* a, i64 n, const Lanes& b) {
  const Lanes factor = b;
  Lanes high = sum[n];
#pragma GCC unroll 4
  for (i64 i = n - 1; i >= 0; --i) {
    Lanes low = sum[i];
    add_product(low, high, a[i], factor);
    sum[i + 1] = high;
    high = low;
  }
  sum[0] = high;
}

// The digits of one number of a tile.
RNS_INLINE void copy_lane(const Lanes* x, i64 lane, i64 count, u64* digits) {
  for (i64 i = 0; i < count; ++i) digits[i] = x[i][lane];
}

// Adds the products of digits of weight c in all, from digits `first` to `last` of x on. 2^24 of them fit.
RNS_INLINE void add_column(const u64* x, const u64* y, i64 first, i64 last, i64 c, u128& sum) {
  for (i64 i = first; i <= last; ++i) sum += static_cast<u128>(x[i]) * y[c - i];
}

// The lowest `count` digits of a product.
RNS_INLINE void multiply_digits(const Lanes* x, i64 x_count, const Lanes* y, i64 y_count, Lanes* z,
                                i64 count) {
  std::vector<u64> digits(x_count + y_count);
  u64 *a = digits.data(), *b = a + x_count;
  for (i64 lane = 0; lane < kLanes; ++lane) {
    copy_lane(x, lane, x_count, a);
    copy_lane(y, lane, y_count, b);
    u128 sum = 0;
    for (i64 c = 0; c < count; ++c) {
      add_column(a, b, std::max<i64>(0, c - y_count + 1), std::min(c, x_count - 1), c, sum);
      z[c][lane] = static_cast<u64>(sum) & kDigitMask;
      sum >>= kDigitBits;
    }
  }
}

// The same of a square: each pair of different digits counts twice.
RNS_INLINE void square_digits(const Lanes* x, i64 x_count, Lanes* z, i64 count) {
  std::vector<u64> digits(x_count);
  u64* a = digits.data();
  for (i64 lane = 0; lane < kLanes; ++lane) {
    copy_lane(x, lane, x_count, a);
    u128 sum = 0;
    for (i64 c = 0; c < count; ++c) {
      u128 half = 0;
      add_column(a, a, std::max<i64>(0, c - x_count + 1), (c + 1) / 2 - 1, c, half);
      sum += 2 * half;
      if (c % 2 == 0 && c / 2 < x_count) sum += static_cast<u128>(a[c / 2]) * a[c / 2];
      z[c][lane] = static_cast<u64>(sum) & kDigitMask;
      sum >>= kDigitBits;
    }
  }
}

#include "positional_karatsuba.hpp"

// x y / R modulo m, as below.
RNS_INLINE void montgomery_product(const MontgomeryTile& m, const Lanes* x, const Lanes* y, Lanes* z,
                                   Lanes*) {
  const i64 n = m.digits;
  std::vector<u64> digits(4 * n);
  u64 *a = digits.data(), *b = a + n, *modulus = b + n, *quotient = modulus + n;
  for (i64 lane = 0; lane < kLanes; ++lane) {
    copy_lane(x, lane, n, a);
    copy_lane(y, lane, n, b);
    copy_lane(lanes_of(m.modulus), lane, n, modulus);
    u128 sum = 0;
    for (i64 c = 0; c < n; ++c) {
      add_column(a, b, 0, c, c, sum);
      add_column(quotient, modulus, 0, c - 1, c, sum);
      quotient[c] = static_cast<u64>(sum) * (*lanes_of(m.inverse))[lane] & kDigitMask;
      sum += static_cast<u128>(quotient[c]) * modulus[0];
      sum >>= kDigitBits;
    }
    for (i64 c = n; c < 2 * n; ++c) {
      add_column(a, b, c - n + 1, n - 1, c, sum);
      add_column(quotient, modulus, c - n + 1, n - 1, c, sum);
      z[c - n][lane] = static_cast<u64>(sum) & kDigitMask;
      sum >>= kDigitBits;
    }
  }
}

#include "positional_loops.hpp"
// After these.
#include "positional_inverse_words.hpp"
// After all.
#include "positional_table.hpp"
#undef RNS_LEVEL
#undef RNS_LEVEL_INLINE

}  // namespace portable

#ifdef RNS_X86_LEVELS

namespace avx2 {

#define RNS_LEVEL __attribute__((target("arch=x86-64-v3")))
#define RNS_LEVEL_INLINE __attribute__((target("arch=x86-64-v3"), always_inline)) inline

typedef u64 Lanes __attribute__((vector_size(32), may_alias));
typedef i64 SignedLanes __attribute__((vector_size(32), may_alias));
constexpr i64 kLanes = 4;
constexpr int kDigitBits = 29;
constexpr u64 kDigitMask = (u64{1} << kDigitBits) - 1;
constexpr i64 kTilesBeforeCarry = 14;  // of 4 products below 2^58 each
constexpr i64 kRowsBeforeCarry = 28;   // of a product, in sums with a sign
constexpr i64 kLeastTiledDigits = 32, kLeastHalvedDigits = 64;

RNS_LEVEL_INLINE void load_limbs(const u32* row, Lanes& x) {
  x = (Lanes)_mm256_cvtepu32_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row)));
}

RNS_LEVEL_INLINE void store_limbs(const Lanes& x, u32* row) {
  const __m256i even = _mm256_permutevar8x32_epi32((__m256i)x, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(row), _mm256_castsi256_si128(even));
}

RNS_LEVEL_INLINE Lanes* lanes_of(LaneVector& x) { return x.as<Lanes>(); }
RNS_LEVEL_INLINE const Lanes* lanes_of(const LaneVector& x) { return x.as<Lanes>(); }

// The product of digits, and of the lower 32 bits of others.
RNS_LEVEL_INLINE Lanes multiplied(const Lanes& a, const Lanes& b) {
  return (Lanes)_mm256_mul_epu32((__m256i)a, (__m256i)b);
}

RNS_LEVEL_INLINE void add_product(Lanes& low, Lanes& high, const Lanes& a, const Lanes& b) {
  const Lanes product = multiplied(a, b);
  low += product & kDigitMask;
  high += product >> kDigitBits;
}

// Of the lower 32 bits, with their signs.
RNS_LEVEL_INLINE Lanes signed_product(const Lanes& a, const Lanes& b) {
  return (Lanes)_mm256_mul_epi32((__m256i)a, (__m256i)b);
}

// Adds b times n digits, from the highest down.
RNS_LEVEL_INLINE void add_multiple(Lanes* sum, const Lanes* a, i64 n, const Lanes& b) {
  const Lanes factor = b;
#pragma GCC unroll 4
  for (i64 i = n - 1; i >= 0; --i) sum[i] += multiplied(a[i], factor);
}

RNS_LEVEL_INLINE void add_row(Lanes* sum, const Lanes* a, const Lanes& b) {
  for (int t = 0; t < kDigitTile; ++t) sum[t] += multiplied(a[t], b);
}

RNS_LEVEL_INLINE void add_tile(Lanes* sum, const Lanes* a, const Lanes* b) {
  for (int t = 0; t < kDigitTile; ++t) add_row(sum + t, a, b[t]);
}

// x y / R modulo m, as montgomery_product gives it, in digits to be carried: each row adds two products to
// one.
RNS_LEVEL_INLINE void montgomery_rows(const MontgomeryTile& m, const Lanes* x, const Lanes* y, Lanes* sum) {
  const i64 n = m.digits;
  const Lanes *modulus = lanes_of(m.modulus), inverse = *lanes_of(m.inverse);
  for (i64 j = 0; j < n; ++j) sum[j] = Lanes{};
  for (i64 i = 0; i < n; ++i) {
    const Lanes factor = y[i];
    const Lanes low = sum[0] + multiplied(x[0], factor);
    const Lanes quotient = multiplied(low, inverse) & kDigitMask;
    const Lanes carried = (low + multiplied(modulus[0], quotient)) >> kDigitBits;
    for (i64 j = 1; j < n; ++j)
      sum[j - 1] = sum[j] + multiplied(x[j], factor) + multiplied(modulus[j], quotient);
    sum[n - 1] = Lanes{};
    sum[0] += carried;
  }
}

#include "positional_tiles.hpp"

// What all levels have.
#include "positional_loops.hpp"
// After these.
#include "positional_inverse_loops.hpp"
// After all.
#include "positional_table.hpp"
#undef RNS_LEVEL
#undef RNS_LEVEL_INLINE

}  // namespace avx2

namespace ifma {

#define RNS_LEVEL __attribute__((target("arch=x86-64-v4,avx512ifma")))
#define RNS_LEVEL_INLINE __attribute__((target("arch=x86-64-v4,avx512ifma"), always_inline)) inline

typedef u64 Lanes __attribute__((vector_size(64), may_alias));
typedef i64 SignedLanes __attribute__((vector_size(64), may_alias));
constexpr i64 kLanes = 8;
constexpr int kDigitBits = 52;
constexpr u64 kDigitMask = (u64{1} << kDigitBits) - 1;
constexpr i64 kTilesBeforeCarry = 256;  // of 8 summands below 2^52 each
constexpr i64 kRowsBeforeCarry = 512;   // of two, in sums with a sign
constexpr i64 kLeastTiledDigits = 16, kLeastHalvedDigits = 40;

RNS_LEVEL_INLINE void load_limbs(const u32* row, Lanes& x) {
  x = (Lanes)_mm512_cvtepu32_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row)));
}

RNS_LEVEL_INLINE void store_limbs(const Lanes& x, u32* row) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(row), _mm512_cvtepi64_epi32((__m512i)x));
}

RNS_LEVEL_INLINE Lanes* lanes_of(LaneVector& x) { return x.as<Lanes>(); }
RNS_LEVEL_INLINE const Lanes* lanes_of(const LaneVector& x) { return x.as<Lanes>(); }

// Adds the lower 52 bits of a product, and those above.
RNS_LEVEL_INLINE void add_product(Lanes& low, Lanes& high, const Lanes& a, const Lanes& b) {
  low = (Lanes)_mm512_madd52lo_epu64((__m512i)low, (__m512i)a, (__m512i)b);
  high = (Lanes)_mm512_madd52hi_epu64((__m512i)high, (__m512i)a, (__m512i)b);
}

// Of the lower 32 bits, with their signs.
RNS_LEVEL_INLINE Lanes signed_product(const Lanes& a, const Lanes& b) {
  return (Lanes)_mm512_mul_epi32((__m512i)a, (__m512i)b);
}

// Adds b times n digits, from the highest down.
RNS_LEVEL_INLINE void add_multiple(Lanes* sum, const Lanes* a, i64 n, const Lanes& b) {
  const Lanes factor = b;
  Lanes high = sum[n];
#pragma GCC unroll 4
  for (i64 i = n - 1; i >= 0; --i) {
    Lanes low = sum[i];
    add_product(low, high, a[i], factor);
    sum[i + 1] = high;
    high = low;
  }
  sum[0] = high;
}

RNS_LEVEL_INLINE void add_row(Lanes* sum, const Lanes* a, const Lanes& b) {
  for (int t = 0; t < kDigitTile; ++t) add_product(sum[t], sum[t + 1], a[t], b);
}

RNS_LEVEL_INLINE void add_tile(Lanes* sum, const Lanes* a, const Lanes* b) {
  for (int t = 0; t < kDigitTile; ++t) add_row(sum + t, a, b[t]);
}

// x y / R modulo m, as montgomery_product gives it, in digits to be carried.
RNS_LEVEL_INLINE void montgomery_rows(const MontgomeryTile& m, const Lanes* x, const Lanes* y, Lanes* sum) {
  const i64 n = m.digits;
  const Lanes *modulus = lanes_of(m.modulus), inverse = *lanes_of(m.inverse);
  for (i64 j = 0; j < n; ++j) sum[j] = Lanes{};
  for (i64 i = 0; i < n; ++i) {
    const Lanes factor = y[i];
    Lanes low = sum[0], high = {}, quotient = {}, unused = {};
    add_product(low, high, x[0], factor);
    add_product(quotient, unused, low & kDigitMask, inverse);
    add_product(low, high, modulus[0], quotient);
    high += low >> kDigitBits;
    for (i64 j = 1; j < n; ++j) {
      Lanes next = {};
      low = sum[j] + high;
      add_product(low, next, x[j], factor);
      add_product(low, next, modulus[j], quotient);
      sum[j - 1] = low;
      high = next;
    }
    sum[n - 1] = high;
  }
}

#include "positional_tiles.hpp"

// What all levels have.
#include "positional_loops.hpp"
// After these.
#include "positional_inverse_loops.hpp"
// After all.
#include "positional_table.hpp"
#undef RNS_LEVEL
#undef RNS_LEVEL_INLINE

}  // namespace ifma

#endif

}  // namespace

std::vector<std::string> positional_methods() {
  std::vector<std::string> methods = {"portable"};
#ifdef RNS_X86_LEVELS
  if (__builtin_cpu_supports("x86-64-v3")) methods.push_back("avx2");
  if (__builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512ifma")) methods.push_back("ifma");
#endif
  return methods;
}

const PositionalLoops& positional_loops([[maybe_unused]] const std::string& method) {
#ifdef RNS_X86_LEVELS
  if (method == "avx2") return avx2::kLoops;
  if (method == "ifma") return ifma::kLoops;
#endif
  return portable::kLoops;
}

}  // namespace rns
