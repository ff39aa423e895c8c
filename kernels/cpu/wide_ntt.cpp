// Number-theoretic transforms modulo primes p < 2^64, run by run, by decimation in frequency with factors of
// V. Shoup or P. Montgomery (wide_ntt.cuh): in vectors where processors have AVX-512, below 2^50 in less time
// where they multiply words of 52 bits too.
#include "rns/wide_ntt.cuh"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "bindings.hpp"
#include "wide_vectors.hpp"

namespace rns {

namespace {

// Words of a run that stays in the second-level cache.
constexpr i64 kCached = i64{1} << 15;

// Words of a line of the cache, and of a vector where there are vectors.
constexpr int kLineBits = 3;
constexpr i64 kLine = i64{1} << kLineBits;

// The first address of a line from one of a word on.
u64* next_line(u64* x) {
  constexpr auto kBytes = kLine * sizeof(u64);
  return x + (kBytes - reinterpret_cast<std::uintptr_t>(x) % kBytes) % kBytes / sizeof(u64);
}

// A table of factors, of which each is in both arrays.
struct Factors {
  u64* values = nullptr;
  u64* quotients = nullptr;

  Factors from(i64 k) const { return {values + k, quotients + k}; }
};

// What a transform modulo a prime computes with: element k is multiplied by twist^k before it, or after an
// inverse one; results are multiplied by the scale.
struct Roots {
  u64 root;
  u64 twist;
  u64 scale;
};

// The order of the values: bits of their places may be reversed. They are the results, or of inverse
// transforms the operands.
struct Order {
  bool is_inverse;
  bool is_reversed;
};

// What is done with results: they are multiplied by twists or, where there are none, by a scale.
struct Ending {
  WideFactor scale;
  Factors twists;
  bool is_reversed;
};

i64 reversed(i64 x, int bits) {
  i64 result = 0;
  for (int b = 0; b < bits; ++b) result |= (x >> b & 1) << (bits - 1 - b);
  return result;
}

// The place of each step of a walk over 2^bits places, of which neighbours lie near each other in order and
// in reversed order alike: long runs are on more pages than the processor knows at a time.
i64 near_both(i64 step, int bits) {
  constexpr int kBits = 3;
  if (bits < 2 * kBits) return step;
  const i64 low = step % (i64{1} << kBits), high = step >> kBits & ((i64{1} << kBits) - 1);
  return high << (bits - kBits) | step >> 2 * kBits << kBits | low;
}

// The inverse of an odd p modulo 2^64.
u64 inverse_of(u64 p) {
  u64 inverse = p;
  for (int k = 0; k < 5; ++k) inverse *= 2 - p * inverse;  // Newton: 3 bits are right, then 6, 12, 24, 48, 96
  return inverse;
}

// Where the lines of a square begin, of which the last bits of places become the first.
struct Lines {
  i64 at[kLine];

  explicit Lines(int bits) {
    for (i64 k = 0; k < kLine; ++k) at[k] = reversed(k, kLineBits) << (bits - kLineBits);
  }
};

namespace portable {

// A word at a time, with arithmetic of wide_ntt.cuh.
template <class Arithmetic>
struct Field {
  using Type = u64;
  using Factor = WideFactor;
  static constexpr i64 kWidth = 1;
  u64 last, inverse;
  WideFactor two_to_64;

  explicit Field(WideModulus m)
      : last(m.last), inverse(inverse_of(m.last + 1u)), two_to_64(wide_factor(scale(m), m)) {}

  static RNS_INLINE u64 load(const u64* x) { return *x; }
  static RNS_INLINE Factor load(Factors factors, i64 k) { return {factors.values[k], factors.quotients[k]}; }
  static RNS_INLINE void load_square(const u64* x, const i64* lines, u64* y) {
    std::copy_n(x + *lines, kLine, y);
  }
  static RNS_INLINE void store_square(u64* x, const i64* lines, const u64* y) {
    std::copy_n(y, kLine, x + *lines);
  }
  static RNS_INLINE void store(u64* x, u64 a) { *x = a; }
  static RNS_INLINE void store(Factors factors, i64 k, Factor w) {
    factors.values[k] = w.value;
    factors.quotients[k] = w.quotient;
  }
  RNS_INLINE Factor broadcast(WideFactor w) const {
    if constexpr (!Arithmetic::kIsMontgomery) return w;
    return factor(w.value, mod_mul(w.value, two_to_64, last));
  }
  static RNS_INLINE Factor broadcast(Factors factors, i64 k) { return load(factors, k); }

  RNS_INLINE void butterfly(u64& a, u64& b) const { Arithmetic::butterfly(a, b, last); }
  RNS_INLINE void butterfly(u64& a, u64& b, Factor w) const { Arithmetic::butterfly(a, b, w, last); }
  RNS_INLINE u64 multiply(u64 x, Factor w) const { return Arithmetic::multiply(x, w, last); }
  RNS_INLINE u64 multiply_loosely(u64 x, Factor w) const { return Arithmetic::multiply_between(x, w, last); }
  RNS_INLINE u64 residue(u64 x) const { return Arithmetic::residue(x, last); }

  // The factor of w, for y = |2^64 w|: its quotient is (2^64 w - y) / p.
  static u64 scale(WideModulus m) { return (0u - (m.last + 1u)) % (m.last + 1u); }
  RNS_INLINE Factor factor(u64 w, u64 y) const {
    if constexpr (Arithmetic::kIsMontgomery) return {y, y * inverse};
    return {w, (0u - y) * inverse};
  }
};

#define RNS_LEVEL
#define RNS_LEVEL_INLINE RNS_INLINE
#include "wide_ntt_loops.hpp"
#undef RNS_LEVEL
#undef RNS_LEVEL_INLINE

// Runs too short for squares of lines.
template <class F>
void transform_short_runs(const u64* x, i64 count, int bits, Roots roots, WideModulus m, Order order,
                          u64* run, u64* out) {
  const F field(m);
  const i64 length = i64{1} << bits;
  const Factors factors{run + length, run + 2 * length}, twists{run + 3 * length, run + 4 * length};
  const WideFactor scale = field.broadcast(wide_factor(roots.scale, m));
  const bool is_twisted = roots.twist != 1;
  fill_factors(roots.root, length, m, field, factors);
  if (is_twisted) fill_powers(order.is_inverse ? roots.scale : 1, roots.twist, length, m, field, twists);
  for (i64 first = 0; first < count; first += length) {
    for (i64 k = 0; k < length; ++k) {
      const u64 word = x[first + (order.is_inverse && order.is_reversed ? reversed(k, bits) : k)];
      run[k] = is_twisted && !order.is_inverse ? field.multiply(word, F::load(twists, k)) : word;
    }
    for (i64 half = length / 2; half > 0; half /= 2) {
      for (i64 start = 0; start < length; start += 2 * half) {
        level(run + start, run + start, half, factors, field);
      }
    }
    for (i64 k = 0; k < length; ++k) {
      const i64 natural = reversed(k, bits), place = order.is_reversed && !order.is_inverse ? k : natural;
      const WideFactor last = is_twisted && order.is_inverse ? F::load(twists, natural) : scale;
      out[first + place] = field.multiply(run[k], last);
    }
  }
}

template <class F>
void transform(const u64* x, i64 count, int bits, Roots roots, WideModulus m, Order order, u64* run,
               u64* out) {
  const auto runs = bits < 2 * kLineBits ? transform_short_runs<F> : transform_runs<F>;
  runs(x, count, bits, roots, m, order, run, out);
}

}  // namespace portable

#ifdef RNS_X86_LEVELS

// What fields over vectors of eight words share.
struct Vectors {
  using Type = Words;
  static constexpr i64 kWidth = kWords;

  struct Factor {
    Type value, quotient;
  };

  static RNS_AVX512_INLINE Type load(const u64* x) { return load_words(x); }
  static RNS_AVX512_INLINE Factor load(Factors factors, i64 k) {
    return {load_words(factors.values + k), load_words(factors.quotients + k)};
  }
  static RNS_AVX512_INLINE void store(u64* x, Type a) { store_words(x, a); }
  static RNS_AVX512_INLINE void store(Factors factors, i64 k, Factor w) {
    store_words(factors.values + k, w.value);
    store_words(factors.quotients + k, w.quotient);
  }
  static RNS_AVX512_INLINE Factor broadcast(Factors factors, i64 k) {
    return {spread_word(factors.values[k]), spread_word(factors.quotients[k])};
  }

  // For a, b < 2 p: a becomes a + b, less 2 p if it can be; a - b + 2 p < 4 p.
  static RNS_AVX512_INLINE Type lazy_sums(Type& a, Type b, Type two_p) {
    const Type difference = _mm512_add_epi64(_mm512_sub_epi64(a, b), two_p);
    a = less_of(_mm512_add_epi64(a, b), two_p);
    return difference;
  }

  static RNS_AVX512_INLINE void load_square(const u64* x, const i64* lines, Type* y) {
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) y[k] = load(x + lines[k]);
    transpose(y);
  }
  static RNS_AVX512_INLINE void store_square(u64* x, const i64* lines, Type* y) {
    transpose(y);
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) store(x + lines[k], y[k]);
  }

  static RNS_AVX512_INLINE void transpose(Type* y) {
    Type z[8];
#pragma GCC unroll 4
    for (int k = 0; k < 8; k += 2) {
      z[k] = _mm512_unpacklo_epi64(y[k], y[k + 1]);
      z[k + 1] = _mm512_unpackhi_epi64(y[k], y[k + 1]);
    }
    // Quarters of 128 bits: of lines 2 apart, then 4 apart.
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      const Type first = _mm512_shuffle_i64x2(z[h], z[h + 2], 0x88);
      const Type second = _mm512_shuffle_i64x2(z[h], z[h + 2], 0xDD);
      const Type third = _mm512_shuffle_i64x2(z[h + 4], z[h + 6], 0x88);
      const Type fourth = _mm512_shuffle_i64x2(z[h + 4], z[h + 6], 0xDD);
      y[h] = _mm512_shuffle_i64x2(first, third, 0x88);
      y[h + 4] = _mm512_shuffle_i64x2(first, third, 0xDD);
      y[h + 2] = _mm512_shuffle_i64x2(second, fourth, 0x88);
      y[h + 6] = _mm512_shuffle_i64x2(second, fourth, 0xDD);
    }
  }
};

namespace avx512 {

// Modulo p < 2^62: values stay below 2 p, as those of LazyWideField.
struct Field : Vectors {
  Type p, two_p, inverse;

  RNS_AVX512_INLINE explicit Field(WideModulus m)
      : p(spread_word(m.last + 1u)),
        two_p(spread_word(2u * (m.last + 1u))),
        inverse(spread_word(inverse_of(m.last + 1u))) {}

  static RNS_AVX512_INLINE Factor broadcast(WideFactor w) {
    return {spread_word(w.value), spread_word(w.quotient)};
  }
  using Vectors::broadcast;

  // Below 2 p, for any x: less the multiple of p by the estimate, it is below 4 p.
  RNS_AVX512_INLINE Type multiply_loosely(Type x, Factor w) const {
    const Type q = about_high_product(x, w.quotient);
    return less_of(_mm512_sub_epi64(_mm512_mullo_epi64(x, w.value), _mm512_mullo_epi64(q, p)), two_p);
  }
  RNS_AVX512_INLINE Type multiply(Type x, Factor w) const { return residue(multiply_loosely(x, w)); }
  RNS_AVX512_INLINE Type residue(Type x) const { return less_of(x, p); }

  RNS_AVX512_INLINE void butterfly(Type& a, Type& b) const { b = less_of(lazy_sums(a, b, two_p), two_p); }
  RNS_AVX512_INLINE void butterfly(Type& a, Type& b, Factor w) const {
    b = multiply_loosely(lazy_sums(a, b, two_p), w);
  }

  static u64 scale(WideModulus m) { return portable::Field<LazyWideField>::scale(m); }
  RNS_AVX512_INLINE Factor factor(Type w, Type y) const {
    return {w, _mm512_mullo_epi64(_mm512_sub_epi64(_mm512_setzero_si512(), y), inverse)};
  }
};

// Modulo any odd p < 2^64, as WideMontgomeryField.
struct LongField : Vectors {
  Type p, inverse;
  portable::Field<WideMontgomeryField> scalar;

  RNS_AVX512_INLINE explicit LongField(WideModulus m)
      : p(spread_word(m.last + 1u)), inverse(spread_word(inverse_of(m.last + 1u))), scalar(m) {}

  RNS_AVX512_INLINE Factor broadcast(WideFactor w) const {
    const WideFactor own = scalar.broadcast(w);
    return {spread_word(own.value), spread_word(own.quotient)};
  }
  using Vectors::broadcast;

  RNS_AVX512_INLINE Type subtract(Type a, Type b) const {
    const Type r = _mm512_sub_epi64(a, b);
    return _mm512_mask_add_epi64(r, _mm512_cmplt_epu64_mask(a, b), r, p);
  }
  RNS_AVX512_INLINE Type multiply(Type x, Factor w) const {
    return subtract(high_product(x, w.value), high_product(_mm512_mullo_epi64(x, w.quotient), p));
  }
  RNS_AVX512_INLINE Type multiply_loosely(Type x, Factor w) const { return multiply(x, w); }
  RNS_AVX512_INLINE Type residue(Type x) const { return x; }

  // a + b = a - (p - b).
  RNS_AVX512_INLINE void butterfly(Type& a, Type& b) const {
    const Type difference = subtract(a, b);
    a = subtract(a, _mm512_sub_epi64(p, b));
    b = difference;
  }
  RNS_AVX512_INLINE void butterfly(Type& a, Type& b, Factor w) const {
    butterfly(a, b);
    b = multiply(b, w);
  }

  static u64 scale(WideModulus m) { return portable::Field<WideMontgomeryField>::scale(m); }
  RNS_AVX512_INLINE Factor factor(Type, Type y) const { return {y, _mm512_mullo_epi64(y, inverse)}; }
};

#define RNS_LEVEL RNS_AVX512
#define RNS_LEVEL_INLINE RNS_AVX512_INLINE
#include "wide_ntt_loops.hpp"
#undef RNS_LEVEL
#undef RNS_LEVEL_INLINE

}  // namespace avx512

namespace ifma {

// Modulo p < 2^50, with quotients of 52 bits: values stay below 2 p.
struct Field : Vectors {
  static constexpr int kBits = 52;
  Type p, two_p, minus_p, mask, inverse;

  RNS_IFMA_INLINE explicit Field(WideModulus m)
      : p(spread_word(m.last + 1u)),
        two_p(spread_word(2u * (m.last + 1u))),
        minus_p(spread_word((u64{1} << kBits) - (m.last + 1u))),
        mask(spread_word((u64{1} << kBits) - 1u)),
        inverse(spread_word(inverse_of(m.last + 1u))) {}

  static RNS_IFMA_INLINE Factor broadcast(WideFactor w) {
    return {spread_word(w.value), spread_word(w.quotient >> (64 - kBits))};
  }
  using Vectors::broadcast;

  // Below 2 p, for x < 2^52.
  RNS_IFMA_INLINE Type multiply_loosely(Type x, Factor w) const {
    const Type zero = _mm512_setzero_si512(), q = _mm512_madd52hi_epu64(zero, x, w.quotient);
    const Type r = _mm512_madd52lo_epu64(_mm512_madd52lo_epu64(zero, x, w.value), q, minus_p);
    return _mm512_and_si512(r, mask);
  }
  RNS_IFMA_INLINE Type multiply(Type x, Factor w) const { return residue(multiply_loosely(x, w)); }
  RNS_IFMA_INLINE Type residue(Type x) const { return less_of(x, p); }

  RNS_IFMA_INLINE void butterfly(Type& a, Type& b) const { b = less_of(lazy_sums(a, b, two_p), two_p); }
  RNS_IFMA_INLINE void butterfly(Type& a, Type& b, Factor w) const {
    b = multiply_loosely(lazy_sums(a, b, two_p), w);
  }

  static u64 scale(WideModulus m) { return (u64{1} << kBits) % (m.last + 1u); }
  RNS_IFMA_INLINE Factor factor(Type w, Type y) const {
    const Type zero = _mm512_setzero_si512();
    return {w, _mm512_madd52lo_epu64(zero, _mm512_sub_epi64(zero, y), inverse)};
  }
};

#define RNS_LEVEL RNS_IFMA
#define RNS_LEVEL_INLINE RNS_IFMA_INLINE
#include "wide_ntt_loops.hpp"
#undef RNS_LEVEL
#undef RNS_LEVEL_INLINE

}  // namespace ifma

#endif

using Transform = void (*)(const u64* x, i64 count, int bits, Roots roots, WideModulus m, Order order,
                           u64* run, u64* out);

// What transforms modulo a prime by a method, or by a lower one where the prime is too long for it.
Transform transform_of([[maybe_unused]] const std::string& method, u64 last, [[maybe_unused]] int bits) {
#ifdef RNS_X86_LEVELS
  if (bits >= 2 * kLineBits && method != "portable") {
    if (method == "ifma" && last >> rns::ifma::kMostBits == 0) return ifma::transform_runs<ifma::Field>;
    return last >> 62 == 0 ? avx512::transform_runs<avx512::Field>
                           : avx512::transform_runs<avx512::LongField>;
  }
#endif
  if (last >> 62 == 0) return portable::transform<portable::Field<LazyWideField>>;
  if (last >> 63 == 0) return portable::transform<portable::Field<ShortWideField>>;
  return portable::transform<portable::Field<WideMontgomeryField>>;
}

}  // namespace

void bind_wide_ntt(nb::module_& module) {
  // Element k is multiplied by twists^k before the transform, or after an inverse one, of which the roots and
  // twists are the inverses; `is_reversed` is the order of the values.
  module.def("wide_ntt", [](const Matrix64& x, i64 length, const Table64& table, const Vector64& roots,
                            const Vector64& twists, const Vector64& scales, bool is_inverse, bool is_reversed,
                            MutableVector64 space, MutableMatrix64 out, const std::string& method) {
    const i64 n = static_cast<i64>(out.shape(0)), count = static_cast<i64>(out.shape(1));
    const WideModulus* moduli = wide_moduli(table, n);
    require(length > 0 && (length & (length - 1)) == 0 && count % length == 0,
            "rows must consist of runs whose length is a power of two");
    require(x.shape(0) == out.shape(0) && x.shape(1) == out.shape(1) && (count <= 1 || x.stride(1) == 1),
            "operand and result must have the same shape");
    for (const Vector64& each : {roots, twists, scales}) {
      require(static_cast<i64>(each.shape(0)) == n, "a root, a twist and a scale for each row are needed");
    }
    require(static_cast<i64>(space.shape(0)) == 5 * length + kLine,
            "space of a run, of its factors and twists, and of a line is needed");
    const std::string& name = checked_wide(method);
    nb::gil_scoped_release release;
    const int bits = bit_count(length);
    for (i64 i = 0; i < n; ++i) {
      const Transform transform = transform_of(name, moduli[i].last, bits);
      const Roots own{roots.data()[i], twists.data()[i], scales.data()[i]};
      transform(x.data() + i * x.stride(0), count, bits, own, moduli[i], {is_inverse, is_reversed},
                next_line(space.data()), out.data() + i * count);
    }
  });
}

}  // namespace rns
