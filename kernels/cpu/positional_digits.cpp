// Arithmetic of positional numbers in digits, for each level of instructions that has vectors for it.
#include "positional_digits.hpp"

#include <algorithm>

#ifdef RNS_X86_LEVELS
#include <immintrin.h>
#endif

// Vectors are passed by reference, or to what is always inlined, so that no call depends on the level.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace rns {

namespace {

using u128 = unsigned __int128;

constexpr u64 kLimbMask = 0xffffffff;

// Of processors without these levels, where GMP takes what is a product.
namespace portable {

#define RNS_LEVEL
#define RNS_LEVEL_INLINE RNS_INLINE

typedef u64 Lanes __attribute__((vector_size(16), may_alias));
typedef i64 SignedLanes __attribute__((vector_size(16), may_alias));
constexpr i64 kLanes = 2;

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

#include "positional_sum_loops.hpp"
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
#include "positional_sum_loops.hpp"
// After these.
#include "positional_loops.hpp"
// After these.
#include "positional_inverse_loops.hpp"
// After all.
#include "positional_table.hpp"
#undef RNS_LEVEL
#undef RNS_LEVEL_INLINE

}  // namespace avx2

namespace ifma {

#define RNS_LEVEL RNS_IFMA
#define RNS_LEVEL_INLINE RNS_IFMA_INLINE

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
#include "positional_sum_loops.hpp"
// After these.
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

std::vector<std::string> positional_levels() {
  std::vector<std::string> levels;
#ifdef RNS_X86_LEVELS
  if (__builtin_cpu_supports("x86-64-v3")) levels.push_back("avx2");
  if (__builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512ifma")) levels.push_back("ifma");
#endif
  return levels;
}

const PositionalLoops& positional_loops([[maybe_unused]] const std::string& level) {
#ifdef RNS_X86_LEVELS
  if (level == "avx2") return avx2::kLoops;
  if (level == "ifma") return ifma::kLoops;
#endif
  throw nb::value_error("there are no loops of this level");
}

const ModularSums& modular_sums([[maybe_unused]] const std::string& level) {
#ifdef RNS_X86_LEVELS
  if (level == "avx2") return avx2::kModularSums;
  if (level == "ifma") return ifma::kModularSums;
#endif
  return portable::kModularSums;
}

}  // namespace rns
