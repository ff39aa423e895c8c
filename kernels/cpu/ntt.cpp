// Number-theoretic transforms of rows, X_j = sum of x_i w^(i j): kLanes transforms of columns side by side in
// a tile that the second-level cache holds. A long transform is one of N1 x N2 (Bailey's four steps): columns
// of length N1, factors w^(j i), columns of length N2; so memory is gone through twice.
#include "rns/ntt.cuh"

#include <algorithm>
#include <vector>

#include "bindings.hpp"

namespace rns {

namespace {

// Columns of a tile: 128 bytes of a row.
constexpr i64 kLanes = 32;

// Shorter transforms take a tile of many transforms, longer ones one of many columns of each.
constexpr i64 kLong = kLanes * kLanes;

// What is transposed is read or written in runs of so many words, a line of the cache.
constexpr i64 kRun = 16;

// Words or factors that begin with a line of the cache, all 0.
template <class T>
class Aligned {
 public:
  explicit Aligned(i64 size) : memory_(size + kLine) {
    const u64 address = reinterpret_cast<u64>(memory_.data());
    data_ = reinterpret_cast<T*>((address + 63) / 64 * 64);
  }
  Aligned(const Aligned&) = delete;
  T* data() { return data_; }
  T& operator[](i64 k) { return data_[k]; }

 private:
  static constexpr i64 kLine = 64 / sizeof(T);
  std::vector<T> memory_;
  T* data_;
};

Factor factor_of(u32 value, u32 last) {
  const u64 p = static_cast<u64>(last) + 1;
  return {value, static_cast<u32>((static_cast<u64>(value) << 32) / p)};
}

i64 bit_reversed(i64 k, i64 length) {
  i64 result = 0;
  for (i64 bit = 1; bit < length; bit *= 2) {
    result = 2 * result + (k & 1);
    k /= 2;
  }
  return result;
}

// ---- columns of a tile ------------------------------------------------------------------------------------

template <class F>
RNS_INLINE void butterfly_rows(u32* x, u32* y, Factor w, u32 last) {
  for (i64 k = 0; k < kLanes; ++k) F::butterfly(x[k], y[k], w, last);
}

// Two levels of butterflies between rows that are `step` rows apart, in one pass over four of them.
template <class F>
RNS_INLINE void two_levels(u32* x, i64 step, Factor w0, Factor w1, Factor v, u32 last) {
  u32 *x1 = x + step * kLanes, *x2 = x1 + step * kLanes, *x3 = x2 + step * kLanes;
  for (i64 k = 0; k < kLanes; ++k) {
    u32 a = x[k], b = x1[k], c = x2[k], d = x3[k];
    F::butterfly(a, c, w0, last);
    F::butterfly(b, d, w1, last);
    F::butterfly(a, b, v, last);
    F::butterfly(c, d, v, last);
    x[k] = a;
    x1[k] = b;
    x2[k] = c;
    x3[k] = d;
  }
}

// Transforms of all columns of a tile of `length` rows; row r of the result is X_j with j the reverse of r in
// bits. roots[half + k] is the factor of the power k of a root of unity of order 2 half.
template <class F>
RNS_INLINE void transform_columns(u32* tile, i64 length, const Factor* roots, u32 last) {
  i64 half = length / 2;
  bool is_odd = false;
  for (i64 k = length; k > 1; k /= 2) is_odd = !is_odd;
  if (is_odd) {
    for (i64 k = 0; k < half; ++k) {
      butterfly_rows<F>(tile + k * kLanes, tile + (half + k) * kLanes, roots[half + k], last);
    }
    half /= 2;
  }
  for (; half > 0; half /= 4) {
    const i64 step = half / 2;
    for (i64 start = 0; start < length; start += 2 * half) {
      for (i64 k = 0; k < step; ++k) {
        two_levels<F>(tile + (start + k) * kLanes, step, roots[half + k], roots[half + step + k],
                      roots[step + k], last);
      }
    }
  }
}

// Each row times the powers of its own root, and times one number.
template <class F>
RNS_INLINE void multiply_rows(u32* tile, i64 length, const u32* values, const u32* quotients,
                              const Factor* numbers, u32 last) {
  for (i64 r = 0; r < length; ++r) {
    u32* row = tile + r * kLanes;
    const u32 *v = values + r * kLanes, *q = quotients + r * kLanes;
    for (i64 k = 0; k < kLanes; ++k) {
      row[k] = F::multiply(F::multiply(row[k], {v[k], q[k]}, last), numbers[r], last);
    }
  }
}

RNS_VECTORISED void transform_narrow(u32* tile, i64 length, const Factor* roots, u32 last) {
  transform_columns<NarrowField>(tile, length, roots, last);
}
RNS_VECTORISED void transform_wide(u32* tile, i64 length, const Factor* roots, u32 last) {
  transform_columns<WideField>(tile, length, roots, last);
}
RNS_VECTORISED void multiply_narrow(u32* tile, i64 length, const u32* values, const u32* quotients,
                                    const Factor* numbers, u32 last) {
  multiply_rows<NarrowField>(tile, length, values, quotients, numbers, last);
}
RNS_VECTORISED void multiply_wide(u32* tile, i64 length, const u32* values, const u32* quotients,
                                  const Factor* numbers, u32 last) {
  multiply_rows<WideField>(tile, length, values, quotients, numbers, last);
}

RNS_VECTORISED void scale(u32* x, i64 count, Factor factor, u32 last) {
  for (i64 k = 0; k < count; ++k) x[k] = mod_mul(x[k], factor, last);
}

// A root of unity modulo p.
struct Root {
  Modulus modulus;
  u32 value;

  bool is_narrow() const { return modulus.last < 0x7fffffffu; }
  u32 power(u64 exponent) const { return mod_pow(value, exponent, modulus); }
  Factor factor(u32 x) const { return factor_of(x, modulus.last); }
};

// Transforms of columns of one length, by a root of that order.
class Columns {
 public:
  Columns(const Root& root, i64 length)
      : root_(root), length_(length), roots_(std::max<i64>(length, 2)), reversed_(length) {
    u32 power = 1;
    for (i64 k = 0; k < length / 2; ++k) {
      roots_[length / 2 + k] = root.factor(power);
      power = mod_mul(power, root.value, root.modulus);
    }
    // Of half the order, the powers are every second one.
    for (i64 half = length / 4; half > 0; half /= 2) {
      for (i64 k = 0; k < half; ++k) roots_[half + k] = roots_[2 * half + 2 * k];
    }
    for (i64 k = 0; k < length; ++k) reversed_[k] = bit_reversed(k, length);
  }

  void transform(u32* tile) {
    if (root_.is_narrow()) {
      transform_narrow(tile, length_, roots_.data(), root_.modulus.last);
    } else {
      transform_wide(tile, length_, roots_.data(), root_.modulus.last);
    }
  }

  // The columns of a transformed tile, one after another.
  void write_transposed(const u32* tile, i64 width, u32* out) const {
    const i64 count = std::min(kRun, length_);
    for (i64 start = 0; start < length_; start += count) {
      const u32* run[kRun];
      for (i64 r = 0; r < count; ++r) run[r] = tile + place(start + r) * kLanes;
      for (i64 k = 0; k < width; ++k) {
        for (i64 r = 0; r < count; ++r) out[k * length_ + start + r] = run[r][k];
      }
    }
  }

  // The index of row r of a transformed tile, and the row of the index r.
  i64 place(i64 r) const { return reversed_[r]; }
  i64 length() const { return length_; }
  const Root& root() const { return root_; }

 private:
  Root root_;
  i64 length_;
  Aligned<Factor> roots_;
  std::vector<i64> reversed_;
};

// ---- short transforms: kLanes of them in a tile -----------------------------------------------------------

class ShortTransforms {
 public:
  ShortTransforms(const Root& root, i64 length, u32 scale)
      : columns_(root, length), scale_(root.factor(scale)), tile_(length * kLanes) {}

  // `count` transforms, one after another.
  void apply(const u32* x, i64 count, u32* out) {
    for (i64 first = 0; first < count; first += kLanes) {
      apply_tile(x + first * columns_.length(), std::min(kLanes, count - first),
                 out + first * columns_.length());
    }
  }

 private:
  void apply_tile(const u32* x, i64 width, u32* out) {
    const i64 length = columns_.length();
    const i64 run = std::min(kRun, length);
    for (i64 start = 0; start < length; start += run) {
      for (i64 k = 0; k < width; ++k) {
        for (i64 r = start; r < start + run; ++r) tile_[r * kLanes + k] = x[k * length + r];
      }
    }
    columns_.transform(tile_.data());
    columns_.write_transposed(tile_.data(), width, out);
    if (scale_.value != 1) scale(out, width * length, scale_, columns_.root().modulus.last);
  }

  Columns columns_;
  Factor scale_;
  Aligned<u32> tile_;
};

// ---- long transforms: of a matrix N1 x N2, kLanes columns in a tile ---------------------------------------

class LongTransform {
 public:
  LongTransform(const Root& root, i64 rows, i64 columns, u32 scale)
      : root_(root),
        first_({root.modulus, root.power(columns)}, rows),
        second_({root.modulus, root.power(rows)}, columns),
        scale_(scale),
        tile_(std::max(rows, columns) * kLanes),
        between_(rows * columns),
        values_(rows * kLanes),
        quotients_(rows * kLanes),
        steps_(rows),
        numbers_(rows) {
    for (i64 r = 0; r < rows; ++r) {
      const u32 base = root.power(first_.place(r));
      u32 power = 1;
      for (i64 k = 0; k < kLanes; ++k) {
        const Factor factor = root.factor(power);
        values_[r * kLanes + k] = factor.value;
        quotients_[r * kLanes + k] = factor.quotient;
        power = mod_mul(power, base, root.modulus);
      }
      steps_[r] = power;
    }
  }

  void apply(const u32* x, u32* out) {
    const i64 rows = first_.length(), columns = second_.length();
    std::fill(numbers_.begin(), numbers_.end(), root_.factor(scale_));
    for (i64 start = 0; start < columns; start += kLanes) {
      for (i64 r = 0; r < rows; ++r) std::copy_n(x + r * columns + start, kLanes, &tile_[r * kLanes]);
      first_.transform(tile_.data());
      multiply_by_roots();
      first_.write_transposed(tile_.data(), kLanes, between_.data() + start * rows);
    }
    for (i64 start = 0; start < rows; start += kLanes) {
      for (i64 r = 0; r < columns; ++r) std::copy_n(&between_[r * rows + start], kLanes, &tile_[r * kLanes]);
      second_.transform(tile_.data());
      for (i64 r = 0; r < columns; ++r) {
        std::copy_n(&tile_[second_.place(r) * kLanes], kLanes, out + r * rows + start);
      }
    }
  }

 private:
  // Row r, of index j, times w^(i j) for each column i; numbers_ are those of the first column, and become
  // those of the next tile's.
  void multiply_by_roots() {
    const i64 rows = first_.length();
    const auto multiply = root_.is_narrow() ? multiply_narrow : multiply_wide;
    multiply(tile_.data(), rows, values_.data(), quotients_.data(), numbers_.data(), root_.modulus.last);
    for (i64 r = 0; r < rows; ++r) {
      numbers_[r] = root_.factor(mod_mul(numbers_[r].value, steps_[r], root_.modulus));
    }
  }

  Root root_;
  Columns first_, second_;
  u32 scale_;
  Aligned<u32> tile_, between_, values_, quotients_;
  std::vector<u32> steps_;
  std::vector<Factor> numbers_;
};

void transform(const u32* x, i64 count, i64 length, const Root& root, u32 scale, u32* out) {
  if (length < kLong) {
    ShortTransforms(root, length, scale).apply(x, count, out);
    return;
  }
  i64 rows = kLanes;
  while (rows * rows * 4 <= length) rows *= 2;
  LongTransform whole(root, rows, length / rows, scale);
  for (i64 b = 0; b < count; ++b) whole.apply(x + b * length, out + b * length);
}

}  // namespace

void bind_ntt(nb::module_& module) {
  module.def("ntt", [](const Matrix32& array, i64 length, const Table32& moduli, const Vector32& roots,
                       const Vector32& scales, MutableMatrix32 out) {
    const Residues x(array);
    require(static_cast<i64>(moduli.shape(0)) == x.moduli && moduli.shape(1) == 4,
            "one modulus for each row is needed");
    require(static_cast<i64>(roots.shape(0)) == x.moduli && static_cast<i64>(scales.shape(0)) == x.moduli,
            "one root and one scale for each modulus are needed");
    require(static_cast<i64>(out.shape(0)) == x.moduli && static_cast<i64>(out.shape(1)) == x.count,
            "the result must have the shape of the residues");
    require(length > 0 && (length & (length - 1)) == 0 && x.count % length == 0,
            "the length must be a power of two, and each row a number of them");
    const auto* table = reinterpret_cast<const Modulus*>(moduli.data());
    nb::gil_scoped_release release;
    for (i64 i = 0; i < x.moduli; ++i) {
      transform(x.row(i), x.count / length, length, {table[i], roots.data()[i]}, scales.data()[i],
                out.data() + i * x.count);
    }
  });
}

}  // namespace rns
