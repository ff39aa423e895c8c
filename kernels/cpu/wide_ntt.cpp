// Number-theoretic transforms modulo primes p < 2^64, run by run, by decimation in frequency with factors of
// V. Shoup (wide_modular.cuh). Runs longer than a cache are halved until they fit it.
#include "rns/wide_ntt.cuh"

#include <algorithm>
#include <vector>

#include "bindings.hpp"
#include "wide.hpp"

namespace rns {

namespace {

// Words of a run that stays in the second-level cache.
constexpr i64 kCached = i64{1} << 15;

// Powers of a root of order `length`, with their factors: that at half + k is of the power k of a root of
// order 2 half, for each power of two `half`.
std::vector<WideFactor> powers_of(u64 root, i64 length, WideModulus m) {
  std::vector<WideFactor> table(std::max<i64>(length, 2));
  u64 power = 1;
  for (i64 k = 0; k < length / 2; ++k) {
    table[length / 2 + k] = wide_factor(power, m);
    power = mod_mul(power, root, m);
  }
  for (i64 half = length / 4; half > 0; half /= 2) {
    for (i64 k = 0; k < half; ++k) table[half + k] = table[2 * half + 2 * k];
  }
  return table;
}

template <class Field>
void level(u64* x, i64 half, const WideFactor* factors, u64 last) {
  u64* y = x + half;
  for (i64 k = 0; k < half; ++k) Field::butterfly(x[k], y[k], factors[half + k], last);
}

// Results are in reversed order of bits.
template <class Field>
void transform(u64* x, i64 length, const WideFactor* factors, u64 last) {
  if (length > kCached) {
    level<Field>(x, length / 2, factors, last);
    transform<Field>(x, length / 2, factors, last);
    transform<Field>(x + length / 2, length / 2, factors, last);
    return;
  }
  for (i64 half = length / 2; half > 0; half /= 2) {
    for (i64 start = 0; start < length; start += 2 * half) level<Field>(x + start, half, factors, last);
  }
}

i64 reversed(i64 x, i32 bits) {
  i64 result = 0;
  for (i32 b = 0; b < bits; ++b) result |= (x >> b & 1) << (bits - 1 - b);
  return result;
}

// Bits of the rows and the columns of a block of words that are brought to their places together, so that
// reading and writing take whole lines of the cache.
constexpr i32 kBlockBits = 5;
constexpr i64 kBlock = i64{1} << kBlockBits;

// Brings a run to natural order, times the scale.
void order(const u64* x, i32 bits, WideFactor scale, u64 last, u64* out) {
  if (bits < 2 * kBlockBits) {
    for (i64 k = 0; k < i64{1} << bits; ++k) out[reversed(k, bits)] = mod_mul(x[k], scale, last);
    return;
  }
  u64 block[kBlock * kBlock];
  i64 places[kBlock];
  for (i64 k = 0; k < kBlock; ++k) places[k] = reversed(k, kBlockBits);
  const i32 middle_bits = bits - 2 * kBlockBits;
  for (i64 middle = 0; middle < i64{1} << middle_bits; ++middle) {
    const i64 other = reversed(middle, middle_bits) << kBlockBits;
    for (i64 row = 0; row < kBlock; ++row) {
      const u64* from = x + (row << (bits - kBlockBits)) + (middle << kBlockBits);
      for (i64 k = 0; k < kBlock; ++k) {
        block[places[k] * kBlock + places[row]] = mod_mul(from[k], scale, last);
      }
    }
    for (i64 row = 0; row < kBlock; ++row) {
      std::copy_n(block + row * kBlock, kBlock, out + (row << (bits - kBlockBits)) + other);
    }
  }
}

}  // namespace

void bind_wide_ntt(nb::module_& module) {
  module.def("wide_ntt", [](const Matrix64& x, i64 length, const Table64& table, const Vector64& roots,
                            const Vector64& scales, MutableMatrix64 out) {
    const i64 n = static_cast<i64>(out.shape(0)), count = static_cast<i64>(out.shape(1));
    const WideModulus* moduli = wide_moduli(table, n);
    require(length > 0 && (length & (length - 1)) == 0 && count % length == 0,
            "rows must consist of runs whose length is a power of two");
    require(x.shape(0) == out.shape(0) && x.shape(1) == out.shape(1) && (count <= 1 || x.stride(1) == 1),
            "operand and result must have the same shape");
    require(static_cast<i64>(roots.shape(0)) == n && static_cast<i64>(scales.shape(0)) == n,
            "a root and a scale for each row are needed");
    nb::gil_scoped_release release;
    std::vector<u64> run(length);
    i32 bits = 0;
    while (i64{1} << bits < length) ++bits;
    for (i64 i = 0; i < n; ++i) {
      const WideModulus m = moduli[i];
      const std::vector<WideFactor> factors = powers_of(roots.data()[i], length, m);
      const auto apply = m.last >> 63 == 0 ? transform<ShortWideField> : transform<WideField>;
      for (i64 first = 0; first < count; first += length) {
        std::copy_n(x.data() + i * x.stride(0) + first, length, run.data());
        apply(run.data(), length, factors.data(), m.last);
        order(run.data(), bits, wide_factor(scales.data()[i], m), m.last, out.data() + i * count + first);
      }
    }
  });
}

}  // namespace rns
