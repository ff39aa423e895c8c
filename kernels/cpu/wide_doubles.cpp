// Matrix products modulo m < 2^64 by products of matrices in double precision, for processors with fused
// multiply-adds of four numbers.
//
// A word is brought to the range around 0 and cut into three signed digits: a = a0 + a1 X + a2 X^2, X = 2^s.
// A product of such polynomials in X has degree 4, so five of its values give it (Toom and Cook): those at
// 0, 1, -1, 2 and infinity. Sums of products of values are integers below 2^51 for so many terms that
// doubles hold them without rounding; they go on as integers of 64 bits.
#include <algorithm>
#include <cstring>

#include "wide_matmul.hpp"

#ifdef RNS_X86_LEVELS
#include <immintrin.h>
#endif

namespace rns {

namespace {

// Rows or columns, and terms, of a tile: its values at one point stay in the second-level cache.
constexpr i64 kSide = 96;
constexpr i64 kDepth = 128;
// Rows, lines of columns and points are not a multiple of a page apart, which caches would hold few of.
constexpr i64 kStride = kDepth + 8;
constexpr i64 kValues = kSide * kStride + 8;  // at a point
constexpr i64 kSums = kSide * kSide;

// Rows and columns whose sums are in registers.
constexpr i64 kFewRows = 6;
constexpr i64 kLanes = 8;
static_assert(kSide % kFewRows == 0 && kSide % kLanes == 0, "a tile consists of those in registers");

constexpr i64 kPoints = 5;

// Rows, terms and columns from which on it is worth while to bring words to values and back.
constexpr i64 kFewest = 16;

// Terms whose sums of products of values stay below 2^63, with room for what interpolation adds.
constexpr i64 kTerms = i64{1} << 13;

// 2^52, whose bits with a number below 2^52 in place of the last ones are the sum of both.
constexpr double kIntegers = 0x1p52;

// How words modulo m are cut into digits, and how many products of their values can be added up.
struct Digits {
  u64 last;     // m - 1
  u64 most;     // greatest word that stays as it is; m is taken from others
  i32 shift;    // X = 2^shift
  u64 bias;     // what makes all three digits positive
  double low;   // 2^52 and the bias of the first two digits
  double high;  // 2^52 and the bias of the last
  i64 terms;

  explicit Digits(WideModulus m) : Digits(m.last, 21) {
    const Digits other(m.last, 22);
    if (other.terms > terms) *this = other;
  }

 private:
  Digits(u64 m_last, i32 s) : last(m_last), shift(s) {
    const u64 half = u64{1} << (s - 1), halves = half + (half << s);
    bias = halves + (u64{1} << 63);
    most = std::min(last / 2, ~bias);
    low = kIntegers + static_cast<double>(half);
    high = kIntegers + static_cast<double>(u64{1} << (63 - 2 * s));
    // The greatest value is that at 2.
    const u128 size = std::max(most, last - most);
    const u128 value = 3 * half + 4 * static_cast<u64>((size + halves) >> (2 * s));
    for (terms = kDepth; terms > 1 && value * value * static_cast<u64>(terms) > u128{1} << 51; terms /= 2) {
    }
  }
};

RNS_INLINE double as_double(u64 bits) {
  double result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

// Values of kLanes words at the points, kValues apart.
RNS_INLINE void evaluate(const u64* __restrict__ x, const Digits& d, double* __restrict__ out) {
  const u64 mask = (u64{1} << d.shift) - 1, one = 0x4330000000000000u;  // bits of 2^52
  for (i64 l = 0; l < kLanes; ++l) {
    const u64 word = (x[l] > d.most ? x[l] - d.last - 1u : x[l]) + d.bias;
    const double a0 = as_double((word & mask) | one) - d.low;
    const double a1 = as_double((word >> d.shift & mask) | one) - d.low;
    const double a2 = as_double((word >> 2 * d.shift) | one) - d.high;
    const double even = a0 + a2;
    out[l] = a0;
    out[kValues + l] = even + a1;
    out[2 * kValues + l] = even - a1;
    out[3 * kValues + l] = a0 + 2 * a1 + 4 * a2;
    out[4 * kValues + l] = a2;
  }
}

// Values of `count` words, a multiple of kLanes, at places `step` apart for each kLanes.
RNS_VECTORISED void evaluate_line(const u64* x, i64 count, const Digits& digits, double* out, i64 step) {
  const Digits d = digits;
  for (i64 k = 0; k < count; k += kLanes) evaluate(x + k, d, out + k / kLanes * step);
}

// `count` words that lie `step` apart, with zeros up to `length`; in `space` unless they are so already.
const u64* line(const u64* from, i64 step, i64 count, i64 length, u64* space) {
  if (step == 1 && count == length) return from;
  for (i64 k = 0; k < count; ++k) space[k] = from[k * step];
  std::fill_n(space + count, length - count, u64{0});
  return space;
}

// Adds the products of kFewRows rows of values, kStride apart, and of kLanes columns to the sums, kSide
// apart, `together` of them at a time.
#ifdef RNS_X86_LEVELS
__attribute__((target("arch=x86-64-v3"))) void add_values(const double* a, const double* b, i64 depth,
                                                          i64 together, i64* sums) {
  const __m256d middle = _mm256_set1_pd(1.5 * kIntegers);
  const __m256i base = _mm256_castpd_si256(middle);
  for (i64 start = 0; start < depth; start += together) {
    __m256d sum[kFewRows][2];
    for (auto& row : sum) row[0] = row[1] = _mm256_setzero_pd();
    const i64 stop = std::min(start + together, depth);
    for (i64 k = start; k < stop; ++k) {
      const __m256d b0 = _mm256_loadu_pd(b + k * kLanes), b1 = _mm256_loadu_pd(b + k * kLanes + 4);
#pragma GCC unroll 6
      for (i64 r = 0; r < kFewRows; ++r) {
        const __m256d x = _mm256_broadcast_sd(a + r * kStride + k);
        sum[r][0] = _mm256_fmadd_pd(x, b0, sum[r][0]);
        sum[r][1] = _mm256_fmadd_pd(x, b1, sum[r][1]);
      }
    }
#pragma GCC unroll 6
    for (i64 r = 0; r < kFewRows; ++r) {
#pragma GCC unroll 2
      for (i64 h = 0; h < 2; ++h) {
        __m256i* to = reinterpret_cast<__m256i*>(sums + r * kSide + 4 * h);
        const __m256i found = _mm256_castpd_si256(_mm256_add_pd(sum[r][h], middle));
        _mm256_storeu_si256(to, _mm256_add_epi64(_mm256_loadu_si256(to), _mm256_sub_epi64(found, base)));
      }
    }
  }
}
#else
void add_values(const double*, const double*, i64, i64, i64*) {}
#endif

// What brings a polynomial in X with the coefficients c_i + kPositive to a word: |X^i| and the same of what
// makes the coefficients positive, times 2^shift of the modulus.
constexpr u64 kPositive = u64{1} << 58;

struct Weights {
  u64 powers[kPoints];
  u64 start = 0;

  Weights(i32 shift, WideModulus m) {
    u64 power = 1;
    for (u64& weight : powers) {
      start = mod_add(start, mod_mul(power, kPositive % (m.last + 1u), m), m.last);
      weight = power << m.shift;
      power = mod_mul(power, u64{1} << shift, m);
    }
    start = mod_sub(u64{0}, start, m.last) << m.shift;
  }
};

// Adds sums of products modulo m, from the sums of those of their values, to `count` words.
RNS_VECTORISED void interpolate(const i64* sums, i64 count, const Weights& weights, WideModulus m, u64* out) {
  const Weights w = weights;
  const WideModulus scaled{m.last, m.divisor, m.reciprocal, 0};
  for (i64 k = 0; k < count; ++k) {
    const i64* y = sums + k;
    const i64 c0 = y[0], c4 = y[4 * kSums], one = y[kSums], minus_one = y[2 * kSums];
    const i64 odd = (one - minus_one) >> 1, c2 = ((one + minus_one) >> 1) - c0 - c4;
    // (c1 + 4 c3) - (c1 + c3), times the inverse of 3 modulo 2^64.
    const i64 thrice = ((y[3 * kSums] - c0 - 4 * c2 - 16 * c4) >> 1) - odd;
    const i64 c3 = static_cast<i64>(static_cast<u64>(thrice) * 0xaaaaaaaaaaaaaaabu), c1 = odd - c3;
    u128 sum = w.start;
    const i64 coefficients[kPoints] = {c0, c1, c2, c3, c4};
    for (i64 i = 0; i < kPoints; ++i) {
      sum += static_cast<u128>(static_cast<u64>(coefficients[i]) + kPositive) * w.powers[i];
    }
    out[k] = mod_add(out[k], mod_reduce(sum, scaled) >> m.shift, m.last);
  }
}

i64 up_to(i64 count, i64 step) { return (count + step - 1) / step * step; }

}  // namespace

bool is_for_doubles([[maybe_unused]] Shape shape) {
#ifdef RNS_X86_LEVELS
  static const bool has_vectors = __builtin_cpu_supports("x86-64-v3");
  return has_vectors && shape.rows >= kFewest && shape.columns >= kFewest && shape.terms >= kFewest;
#else
  return false;
#endif
}

static_assert(kDoublesSpace == kPoints * (2 * kValues + kSums) + kDepth);

void add_product_by_doubles(WideView a, WideView b, Shape shape, WideModulus m, u64* space, u64* out) {
  const Digits digits(m);
  const Weights weights(digits.shift, m);
  double* left = reinterpret_cast<double*>(space);
  double* right = left + kPoints * kValues;
  i64* sums = reinterpret_cast<i64*>(right + kPoints * kValues);
  u64* buffer = reinterpret_cast<u64*>(sums + kPoints * kSums);
  for (i64 j = 0; j < shape.columns; j += kSide) {
    const i64 width = std::min(kSide, shape.columns - j), whole = up_to(width, kLanes);
    for (i64 i = 0; i < shape.rows; i += kSide) {
      const i64 height = std::min(kSide, shape.rows - i);
      for (i64 k = 0; k < shape.terms; k += kDepth) {
        if (k % kTerms == 0) std::fill_n(sums, kPoints * kSums, i64{0});
        const i64 depth = std::min(kDepth, shape.terms - k);
        for (i64 r = 0; r < height; ++r) {
          const u64* row = line(a.at(i + r, k), a.column_step, depth, up_to(depth, kLanes), buffer);
          evaluate_line(row, up_to(depth, kLanes), digits, left + r * kStride, kLanes);
        }
        for (i64 t = 0; t < depth; ++t) {
          const u64* row = line(b.at(k + t, j), b.column_step, width, whole, buffer);
          evaluate_line(row, whole, digits, right + t * kLanes, kStride * kLanes);
        }
        for (i64 p = 0; p < kPoints; ++p) {
          for (i64 r = 0; r < height; r += kFewRows) {
            for (i64 c = 0; c < whole; c += kLanes) {
              add_values(left + p * kValues + r * kStride, right + p * kValues + c * kStride, depth,
                         digits.terms, sums + p * kSums + r * kSide + c);
            }
          }
        }
        if (k + kDepth < shape.terms && (k + kDepth) % kTerms != 0) continue;
        for (i64 r = 0; r < height; ++r) {
          interpolate(sums + r * kSide, width, weights, m, out + (i + r) * shape.columns + j);
        }
      }
    }
  }
}

}  // namespace rns
