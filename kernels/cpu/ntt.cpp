// Number-theoretic transforms of rows, X_j = sum of x_i w^(i j), and cyclic products by them: kLanes
// transforms of columns side by side in a tile that the second-level cache holds. A long transform is one of
// N1 x N2 (Bailey's four steps): columns of length N1, factors w^(j i), columns of length N2; so memory is
// gone through twice.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "ntt_tile.hpp"

namespace rns {

namespace {

// Shorter transforms take a tile of many transforms, longer ones one of many columns of each. So do few short
// ones, of kLanes columns: a tile of many would be nearly empty.
constexpr i64 kLong = kLanes * kLanes;

bool is_cut(i64 length, i64 count) { return length >= kLong || count <= length / (2 * kLanes) - 1; }

// Words or factors that begin with a line of the cache, with any values.
template <class T>
class Aligned {
 public:
  explicit Aligned(i64 size) : memory_(new T[size + kLine]) {
    const u64 address = reinterpret_cast<u64>(memory_.get());
    data_ = reinterpret_cast<T*>((address + 63) / 64 * 64);
  }
  T* data() { return data_; }
  T& operator[](i64 k) { return data_[k]; }

 private:
  static constexpr i64 kLine = 64 / sizeof(T);
  std::unique_ptr<T[]> memory_;
  T* data_;
};

// A root of unity modulo p, and the loops for p.
struct Root {
  Prime prime;
  Modulus modulus;
  u32 value;
  const TileLoops* loops;

  Root(Modulus m, u32 root, const std::string& method)
      : prime(m.last + 1u), modulus(m), value(root), loops(&tile_loops(method, prime.is_narrow())) {}

  u32 multiply(u32 x, u32 y) const { return mod_mul(x, y, modulus); }
  u32 power(u64 exponent) const { return mod_pow(value, exponent, modulus); }
  Root to_power(u64 exponent) const {
    Root result = *this;
    result.value = power(exponent);
    return result;
  }
};

// Transforms of columns of one length, by a root of that order.
class Columns {
 public:
  Columns(const Root& root, i64 length)
      : root_(root), length_(length), roots_(std::max<i64>(length, 2)), reversed_(length) {
    std::vector<u32> powers(std::max<i64>(length / 2, 1), 1);
    u32 power = root.value;
    for (i64 known = 1; known < length / 2; known *= 2) {  // products that do not wait for one another
      for (i64 k = 0; k < known; ++k) powers[known + k] = root.multiply(powers[k], power);
      power = root.multiply(power, power);
    }
    for (i64 k = 0; k < length / 2; ++k) roots_[length / 2 + k] = root.prime.factor(powers[k]);
    // Of half the order, the powers are every second one.
    for (i64 half = length / 4; half > 0; half /= 2) {
      for (i64 k = 0; k < half; ++k) roots_[half + k] = roots_[2 * half + 2 * k];
    }
    for (i64 k = 1; k < length; ++k) reversed_[k] = reversed_[k / 2] / 2 + k % 2 * (length / 2);
  }

  void forward(ConstRows from, u32* tile) {
    root_.loops->forward(from, tile, length_, roots_.data(), root_.prime);
  }
  void forward(u32* tile) { forward({tile, kLanes}, tile); }
  void inverse(u32* tile, Rows to) { root_.loops->inverse(tile, to, length_, roots_.data(), root_.prime); }
  void inverse(u32* tile) { inverse(tile, {tile, kLanes}); }

  // The index of row r of a transformed tile, and the row of the index r.
  const std::vector<i64>& places() const { return reversed_; }
  i64 length() const { return length_; }
  const Root& root() const { return root_; }

 private:
  Root root_;
  i64 length_;
  Aligned<Factor> roots_;
  std::vector<i64> reversed_;
};

// What a transform does besides: element k is multiplied by the power k of a twist before it, or after an
// inverse one, and results by a scale. Bits of the places of values may be reversed: of results, or of
// operands of inverse transforms.
struct Convention {
  const Root* twist;  // or none
  u32 scale;
  bool is_inverse;
  bool is_reversed;

  bool twists_operands() const { return twist != nullptr && !is_inverse; }
  bool twists_results() const { return twist != nullptr && is_inverse; }
  bool reverses_operands() const { return is_reversed && is_inverse; }
};

// ---- tables of factors ------------------------------------------------------------------------------------

// A table of factors.
class FactorTable {
 public:
  explicit FactorTable(i64 size) : values_(size), quotients_(size) {}
  Factors factors() { return {values_.data(), quotients_.data()}; }
  void set(i64 k, Factor factor) {
    values_[k] = factor.value;
    quotients_[k] = factor.quotient;
  }

 private:
  Aligned<u32> values_, quotients_;
};

// Factors of rows of tiles, of one tile after another: in row r those of column i of all tiles are
// starts[r] bases[r]^i.
class Progressions {
 public:
  Progressions(const Root& root, const std::vector<u32>& bases, std::vector<u32> starts)
      : root_(root),
        starts_(std::move(starts)),
        columns_(whole_vectors() * kLanes),
        steps_(whole_vectors()),
        factors_(whole_vectors()),
        numbers_(whole_vectors()) {
    FactorTable table(whole_vectors());
    for (i64 r = 0; r < rows(); ++r) {
      table.set(r, root.prime.factor(bases[r]));
      steps_.set(r, root.prime.factor(mod_pow(bases[r], kLanes, root.modulus)));
    }
    root.loops->powers(table.factors(), rows(), columns_.factors(), root.prime);
  }

  // Begins with the first tile, and with a factor besides.
  void begin(u32 scale) {
    for (i64 r = 0; r < rows(); ++r) {
      numbers_[r] = root_.multiply(starts_[r], scale);
      factors_.set(r, root_.prime.factor(numbers_[r]));
    }
  }

  void multiply(ConstRows from, Rows to) {
    root_.loops->multiply(from, to, rows(), columns_.factors(), factors_.factors(), root_.prime);
    root_.loops->multiply_factors(numbers_.data(), steps_.factors(), rows(), factors_.factors(), root_.prime);
  }
  void multiply(u32* tile) { multiply({tile, kLanes}, {tile, kLanes}); }

 private:
  i64 rows() const { return static_cast<i64>(starts_.size()); }
  // The loops take vectors of rows, which may be more than there are.
  i64 whole_vectors() const { return std::max(rows(), kLanes); }

  Root root_;
  std::vector<u32> starts_;
  FactorTable columns_, steps_, factors_;
  Aligned<u32> numbers_;
};

// The powers of a root, that of exponent k at places[k], or in their order.
std::vector<u32> powers_at(const Root& root, i64 count, const i64* places = nullptr) {
  std::vector<u32> powers(count);
  u32 power = 1;
  for (i64 k = 0; k < count; ++k, power = root.multiply(power, root.value)) {
    powers[places != nullptr ? places[k] : k] = power;
  }
  return powers;
}

// w^(i j) for each row of index j of a transformed tile and column i.
Progressions twiddles(const Root& root, const std::vector<i64>& places) {
  const i64 rows = static_cast<i64>(places.size());
  return {root, powers_at(root, rows, places.data()), std::vector<u32>(rows, 1)};
}

// psi^(C r + i) for each row of index r of a tile and column i, of a matrix of C columns. The rows of a
// transformed tile have other places.
Progressions twists(const Root& psi, i64 rows, i64 columns, const i64* places) {
  return {psi, std::vector<u32>(rows, psi.value), powers_at(psi.to_power(columns), rows, places)};
}

// ---- short transforms: kLanes of them in a tile -----------------------------------------------------------

// Lines of a tile, the first `width` of which are runs of `length` words; the first one stands for others.
template <class T>
struct Lines {
  T* data[kLanes];

  Lines(T* x, i64 width, i64 length) {
    for (i64 k = 0; k < kLanes; ++k) data[k] = x + (k < width ? k : 0) * length;
  }
};

// The factors psi^r of each row r of a tile, or of index r of a transformed one.
Progressions row_twists(const Root& psi, i64 length, const i64* places) {
  return {psi, std::vector<u32>(length, 1), powers_at(psi, length, places)};
}

// `count` transforms, one after another.
void transform_short(const u32* x, i64 count, Columns& columns, const Convention& how, u32* out) {
  const i64 length = columns.length();
  const Root& root = columns.root();
  const i64* places = columns.places().data();
  std::optional<Progressions> factors;
  if (how.twist != nullptr) {
    const bool in_order = !how.is_inverse || how.is_reversed;
    factors.emplace(row_twists(*how.twist, length, in_order ? nullptr : places));
    factors->begin(how.is_inverse ? how.scale : 1);
  }
  Aligned<u32> tile(length * kLanes);
  for (i64 first = 0; first < count; first += kLanes) {
    const i64 width = std::min(kLanes, count - first);
    root.loops->gather(Lines(x + first * length, width, length).data, length, tile.data());
    if (how.twists_operands()) factors->multiply(tile.data());
    if (how.reverses_operands())
      columns.inverse(tile.data());
    else
      columns.forward(tile.data());
    if (how.twists_results())
      factors->multiply(tile.data());
    else if (how.scale != 1)
      root.loops->scale(tile.data(), length * kLanes, root.prime.factor(how.scale), root.prime);
    root.loops->scatter(tile.data(), length, how.is_reversed ? nullptr : places, width,
                        Lines(out + first * length, width, length).data);
  }
}

// ---- long transforms: of a matrix N1 x N2, kLanes columns in a tile ---------------------------------------

// The first of the two dimensions of a length.
i64 rows_of(i64 length) {
  if (length < kLong) return length / kLanes;
  i64 rows = kLanes;
  while (rows * rows * 4 <= length) rows *= 2;
  return rows;
}

class LongTransform {
 public:
  LongTransform(const Root& root, i64 length)
      : rows_(rows_of(length)),
        columns_(length / rows_),
        loops_(*root.loops),
        first_(root.to_power(columns_), rows_),
        second_(root.to_power(rows_), columns_),
        twiddles_(twiddles(root, first_.places())),
        tile_(std::max(rows_, columns_) * kLanes),
        padded_(width() < kLanes ? length + kLanes : 0) {}

  // From now on elements are multiplied by powers of psi, and by a scale.
  void twist(const Root& psi, const Convention& how) {
    if (!how.is_inverse)
      operand_twists_.emplace(twists(psi, rows_, columns_, nullptr));
    else if (how.is_reversed)
      result_twists_.emplace(twists(psi, rows_, columns_, nullptr));
    else  // the matrix of results has the rows of tiles of rows
      result_twists_.emplace(twists(psi, columns_, rows_, second_.places().data()));
  }

  void apply(const u32* x, const Convention& how, u32* between, u32* out) {
    if (how.reverses_operands()) {
      for (i64 start = 0; start < rows_; start += kLanes) {
        gather_rows(x, start, tile_.data());
        invert_rows(tile_.data(), start, out);
      }
      invert_columns(out, how.scale);
    } else if (how.is_reversed) {
      transform_columns(x, how.scale, between);
      for (i64 start = 0; start < rows_; start += kLanes) {
        transform_rows(between, start, tile_.data());
        scatter_rows(tile_.data(), start, out);
      }
    } else {
      transform_columns(x, result_twists_ ? 1 : how.scale, between);
      order_rows(between, how.scale, out);
    }
  }

  // The transforms of the columns, after their twists if there are any, times w^(i j) and a scale.
  void transform_columns(const u32* x, u32 scale, u32* out) {
    twiddles_.begin(scale);
    if (operand_twists_) operand_twists_->begin(1);
    for (i64 start = 0; start < columns_; start += kLanes) {
      if (operand_twists_) {
        operand_twists_->multiply({x + start, columns_}, {tile_.data(), kLanes});
        first_.forward(tile_.data());
      } else {
        first_.forward({x + start, columns_}, tile_.data());
      }
      twiddles_.multiply({tile_.data(), kLanes}, {out + start, columns_});
    }
  }

  // The same of the inverse transform, in the other order and in place, before the twists of its results.
  void invert_columns(u32* x, u32 scale = 1) {
    twiddles_.begin(result_twists_ ? 1 : scale);
    if (result_twists_) result_twists_->begin(scale);
    for (i64 start = 0; start < columns_; start += kLanes) {
      twiddles_.multiply({x + start, columns_}, {tile_.data(), kLanes});
      if (result_twists_) {
        first_.inverse(tile_.data());
        result_twists_->multiply({tile_.data(), kLanes}, {x + start, columns_});
      } else {
        first_.inverse(tile_.data(), {x + start, columns_});
      }
    }
  }

  // kLanes rows from `start` on, or all if they are less, as the columns of a tile, transformed.
  void transform_rows(const u32* x, i64 start, u32* tile) {
    gather_rows(x, start, tile);
    second_.forward(tile);
  }
  void invert_rows(u32* tile, i64 start, u32* out) {
    second_.inverse(tile);
    scatter_rows(tile, start, out);
  }

  i64 rows() const { return rows_; }
  i64 columns() const { return columns_; }
  u32* tile() { return tile_.data(); }

 private:
  i64 width() const { return std::min(rows_, kLanes); }

  void gather_rows(const u32* x, i64 start, u32* tile) {
    loops_.gather(Lines(x + start * columns_, width(), columns_).data, columns_, tile);
  }
  void scatter_rows(const u32* tile, i64 start, u32* out) {
    loops_.scatter(tile, columns_, nullptr, width(), Lines(out + start * columns_, width(), columns_).data);
  }

  // The rows' transforms, in natural order, and with a scale if there are twists of results.
  void order_rows(const u32* x, u32 scale, u32* out) {
    // Rows that are shorter than those of a tile are written one after the other, over what is beyond them.
    u32* const to = width() < kLanes ? padded_.data() : out;
    if (result_twists_) result_twists_->begin(scale);
    for (i64 start = 0; start < rows_; start += kLanes) {
      const u32* lines[kLanes];
      for (i64 k = 0; k < kLanes; ++k) {
        lines[k] = x + first_.places()[start + (k < width() ? k : 0)] * columns_;
      }
      loops_.gather(lines, columns_, tile_.data());
      second_.forward(tile_.data());
      if (result_twists_) result_twists_->multiply(tile_.data());
      loops_.copy_rows(tile_.data(), columns_, second_.places().data(), {to + start, rows_});
    }
    if (to != out) std::copy_n(to, rows_ * columns_, out);
  }

  i64 rows_, columns_;
  const TileLoops& loops_;
  Columns first_, second_;
  Progressions twiddles_;
  std::optional<Progressions> operand_twists_, result_twists_;
  Aligned<u32> tile_, padded_;
};

void transform(const u32* x, i64 count, i64 length, const Root& root, const Convention& how, u32* space,
               u32* out) {
  if (!is_cut(length, count)) {
    Columns columns(root, length);
    transform_short(x, count, columns, how, out);
    return;
  }
  LongTransform whole(root, length);
  if (how.twist != nullptr) whole.twist(*how.twist, how);
  for (i64 b = 0; b < count; ++b) whole.apply(x + b * length, how, space, out + b * length);
}

// ---- cyclic products: transforms in the order that they leave, so that nothing is put in order ------------

// Runs of N elements: `count` of them, or one that serves for all.
struct Runs {
  const u32* data;
  bool is_one;

  const u32* at(i64 index, i64 length) const { return data + (is_one ? 0 : index * length); }
};

void multiply_short(Runs x, Runs y, i64 count, i64 length, const Root& root, const Root& inverse,
                    Factor scale, u32* out) {
  const TileLoops& loops = *root.loops;
  Columns forward_columns(root, length), inverse_columns(inverse, length);
  Aligned<u32> tile(length * kLanes), other(length * kLanes);
  for (i64 first = 0; first < count; first += kLanes) {
    const i64 width = std::min(kLanes, count - first);
    loops.gather(Lines(x.at(first, length), width, length).data, length, tile.data());
    forward_columns.forward(tile.data());
    if (first == 0 || !y.is_one) {
      loops.gather(Lines(y.at(first, length), y.is_one ? 1 : width, length).data, length, other.data());
      forward_columns.forward(other.data());
    }
    loops.product(tile.data(), other.data(), length * kLanes, scale, root.prime);
    inverse_columns.inverse(tile.data());
    loops.scatter(tile.data(), length, nullptr, width, Lines(out + first * length, width, length).data);
  }
}

void multiply_long(Runs x, Runs y, i64 count, i64 length, const Root& root, const Root& inverse, Factor scale,
                   u32* spectrum, u32* out) {
  LongTransform transform(root, length), back(inverse, length);
  const i64 rows = transform.rows(), size = kLanes * transform.columns();
  u32* tile = transform.tile();
  for (i64 b = 0; b < count; ++b, out += length) {
    const u32 *a = x.at(b, length), *c = y.at(b, length);
    if (a != c && (b == 0 || !y.is_one)) {
      transform.transform_columns(c, 1, out);
      for (i64 start = 0; start < rows; start += kLanes) {
        transform.transform_rows(out, start, spectrum + start / kLanes * size);
      }
    }
    transform.transform_columns(a, 1, out);
    for (i64 start = 0; start < rows; start += kLanes) {
      transform.transform_rows(out, start, tile);
      root.loops->product(tile, a == c ? tile : spectrum + start / kLanes * size, size, scale, root.prime);
      back.invert_rows(tile, start, out);
    }
    back.invert_columns(out);
  }
}

void multiply(Runs x, Runs y, i64 count, i64 length, const Root& root, const Root& inverse, u32 scale,
              u32* space, u32* out) {
  if (length == 1) {
    for (i64 k = 0; k < count; ++k) out[k] = root.multiply(*x.at(k, 1), *y.at(k, 1));
    return;
  }
  // The loops divide products by 2^32.
  const u32 two_to_32 = static_cast<u32>((u64{1} << 32) % root.prime.value);
  const Factor factor = root.prime.factor(root.multiply(scale, two_to_32));
  if (x.is_one) std::swap(x, y);
  if (!is_cut(length, count)) {
    multiply_short(x, y, count, length, root, inverse, factor, out);
    return;
  }
  Aligned<u32> tile(length < kLong ? kLong : 0);  // a whole one, which has more words than the space
  multiply_long(x, y, count, length, root, inverse, factor, length < kLong ? tile.data() : space, out);
}

// ---- entry points -----------------------------------------------------------------------------------------

void require_constants(i64 rows, i64 count, i64 length, const Table32& moduli, const Vector32& roots,
                       const Vector32& scales, const MutableVector32& space) {
  const auto is_of_rows = [=](const auto& table) { return static_cast<i64>(table.shape(0)) == rows; };
  require(is_of_rows(moduli) && moduli.shape(1) == 4, "one modulus for each row is needed");
  require(is_of_rows(roots) && is_of_rows(scales), "one root and one scale for each modulus are needed");
  require(length > 0 && (length & (length - 1)) == 0 && count % length == 0,
          "the length must be a power of two, and each row a number of them");
  require(static_cast<i64>(space.shape(0)) == length, "space of one transform is needed");
}

const std::string& best_method() {
  static const std::string best = transform_methods().back();
  return best;
}

const std::string& checked(const std::string& method) {
  if (method == "best") return best_method();
  const std::vector<std::string> methods = transform_methods();
  require(std::find(methods.begin(), methods.end(), method) != methods.end(), "no such method");
  return method;
}

}  // namespace

void bind_ntt(nb::module_& module) {
  module.def("transform_methods", &transform_methods);
  // Twists are 1 where there are none; of inverse transforms roots and twists are the inverses.
  module.def("ntt", [](const Matrix32& array, i64 length, const Table32& moduli, const Vector32& roots,
                       const Vector32& twists, const Vector32& scales, bool is_inverse, bool is_reversed,
                       MutableVector32 space, MutableMatrix32 out, const std::string& method) {
    const Residues x(array);
    require_constants(x.moduli, x.count, length, moduli, roots, scales, space);
    require(twists.shape(0) == roots.shape(0), "one twist for each modulus is needed");
    require(static_cast<i64>(out.shape(0)) == x.moduli && static_cast<i64>(out.shape(1)) == x.count,
            "the result must have the shape of the residues");
    const auto* table = reinterpret_cast<const Modulus*>(moduli.data());
    const std::string& name = checked(method);
    nb::gil_scoped_release release;
    for (i64 i = 0; i < x.moduli; ++i) {
      const Root root(table[i], roots.data()[i], name), twist(table[i], twists.data()[i], name);
      const Convention how{twist.value == 1 ? nullptr : &twist, scales.data()[i], is_inverse, is_reversed};
      transform(x.row(i), x.count / length, length, root, how, space.data(), out.data() + i * x.count);
    }
  });
  module.def(
      "cyclic_products", [](const Matrix32& first, const Matrix32& second, i64 length, const Table32& moduli,
                            const Vector32& roots, const Vector32& inverse_roots, const Vector32& scales,
                            MutableVector32 space, MutableMatrix32 out, const std::string& method) {
        const Residues x(first), y(second);
        const i64 count = static_cast<i64>(out.shape(1));
        require_constants(x.moduli, count, length, moduli, roots, scales, space);
        require(inverse_roots.shape(0) == roots.shape(0), "one inverse root for each modulus is needed");
        require(y.moduli == x.moduli && static_cast<i64>(out.shape(0)) == x.moduli,
                "the operands and the result must have a row for each modulus");
        for (const Residues& operand : {x, y}) {
          require(operand.count == count || operand.count == length,
                  "an operand must have as many elements a row as the result, or one run of them");
        }
        const auto* table = reinterpret_cast<const Modulus*>(moduli.data());
        const std::string& name = checked(method);
        nb::gil_scoped_release release;
        for (i64 i = 0; i < x.moduli; ++i) {
          multiply({x.row(i), x.count == length}, {y.row(i), y.count == length}, count / length, length,
                   {table[i], roots.data()[i], name}, {table[i], inverse_roots.data()[i], name},
                   scales.data()[i], space.data(), out.data() + i * count);
        }
      });
}

}  // namespace rns
