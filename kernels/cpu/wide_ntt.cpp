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

// Two levels at once, of halves of two and of one quarter: words are read and written once.
template <class Field>
void two_levels(u64* x, i64 quarter, const WideFactor* factors, u64 last) {
  u64 *x0 = x, *x1 = x + quarter, *x2 = x1 + quarter, *x3 = x2 + quarter;
  const WideFactor *first = factors + 2 * quarter, *second = factors + quarter;
  for (i64 k = 0; k < quarter; ++k) {
    u64 a = x0[k], b = x1[k], c = x2[k], d = x3[k];
    Field::butterfly(a, c, first[k], last);
    Field::butterfly(b, d, first[quarter + k], last);
    Field::butterfly(a, b, second[k], last);
    Field::butterfly(c, d, second[k], last);
    x0[k] = a, x1[k] = b, x2[k] = c, x3[k] = d;
  }
}

// Results are in reversed order of bits, and any words of the same residues.
template <class Field>
void transform(u64* x, i64 length, const WideFactor* factors, u64 last) {
  if (length > kCached) {
    const i64 quarter = length / 4;
    two_levels<Field>(x, quarter, factors, last);
    for (i64 start = 0; start < length; start += quarter) transform<Field>(x + start, quarter, factors, last);
    return;
  }
  i64 run = length;
  for (; run >= 4; run /= 4) {
    for (i64 start = 0; start < length; start += run) two_levels<Field>(x + start, run / 4, factors, last);
  }
  if (run == 2) {
    for (i64 start = 0; start < length; start += 2) level<Field>(x + start, 1, factors, last);
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

// Brings a run to natural order, each word by `finish`.
template <class Finish>
void order(const u64* x, i32 bits, Finish finish, u64* out) {
  if (bits < 2 * kBlockBits) {
    for (i64 k = 0; k < i64{1} << bits; ++k) out[reversed(k, bits)] = finish(x[k]);
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
      for (i64 k = 0; k < kBlock; ++k) block[places[k] * kBlock + places[row]] = finish(from[k]);
    }
    for (i64 row = 0; row < kBlock; ++row) {
      std::copy_n(block + row * kBlock, kBlock, out + (row << (bits - kBlockBits)) + other);
    }
  }
}

// Transforms runs of a row, times a scale.
template <class Field>
void transform_runs(const u64* x, i64 count, i32 bits, u64 root, u64 scale, WideModulus m, u64* out) {
  const i64 length = i64{1} << bits;
  const u64 last = m.last;
  const std::vector<WideFactor> factors = powers_of(root, length, m);
  const WideFactor factor = wide_factor(scale, m);
  std::vector<u64> run(length);
  for (i64 first = 0; first < count; first += length) {
    std::copy_n(x + first, length, run.data());
    transform<Field>(run.data(), length, factors.data(), last);
    if (scale == 1) {
      order(run.data(), bits, [=](u64 word) { return Field::residue(word, last); }, out + first);
    } else {
      order(run.data(), bits, [=](u64 word) { return mod_mul(word, factor, last); }, out + first);
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
    i32 bits = 0;
    while (i64{1} << bits < length) ++bits;
    for (i64 i = 0; i < n; ++i) {
      const WideModulus m = moduli[i];
      const auto run = m.last >> 62 == 0   ? transform_runs<LazyWideField>
                       : m.last >> 63 == 0 ? transform_runs<ShortWideField>
                                           : transform_runs<WideField>;
      run(x.data() + i * x.stride(0), count, bits, roots.data()[i], scales.data()[i], m,
          out.data() + i * count);
    }
  });
}

}  // namespace rns
