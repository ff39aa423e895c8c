// Signed multiple-precision integers with stored intervals, a tile at a time: the headers give each number's
// selector and what is open about it, then rows of residues follow.
#include "rns/interval_rns.cuh"

#include <algorithm>

#include "bindings.hpp"

namespace rns {

namespace {

// Algorithms 1 and 2 of the paper, and the digits of all numbers after all headers.
enum Algorithm : int { kBySigns = 1, kByComplement = 2, kByDigits = 3 };

// Columns of n residues and a header each; or one column, which is spread over a tile.
class Columns {
 public:
  explicit Columns(const Matrix32& array) : x_(array) {}

  i64 rows() const { return x_.moduli - kHeaderRows; }
  i64 count() const { return x_.count; }
  const u32* part(i64 row, i64 first, i64 width, u32* spread) const {
    if (x_.count != 1) return x_.row(row) + first;
    std::fill_n(spread, width, *x_.row(row));
    return spread;
  }

 private:
  Residues x_;
};

// The headers of a tile.
struct HeaderTile {
  const u32* rows[kHeaderRows];
  alignas(64) u32 spread[kHeaderRows][kTile];

  void load(const Columns& x, i64 first, i64 width) {
    for (i32 k = 0; k < kHeaderRows; ++k) rows[k] = x.part(x.rows() + k, first, width, spread[k]);
  }
  RNS_INLINE Header operator[](i64 j) const {
    u32 words[kHeaderRows];
    for (i32 k = 0; k < kHeaderRows; ++k) words[k] = rows[k][j];
    return header_of(words);
  }
};

struct Result {
  u32* data;
  i64 rows;
  i64 count;

  u32* row(i64 i) const { return data + i * count; }
  RNS_INLINE void store(const Header& header, i64 j) const {
    u32 words[kHeaderRows];
    words_of(header, words);
    for (i32 k = 0; k < kHeaderRows; ++k) row(rows + k)[j] = words[k];
  }
};

RNS_VECTORISED void plan_sums(const HeaderTile& x, const HeaderTile& y, u32 flip, bool by_signs,
                              double accuracy, i64 first, i64 width, const Result& out, u32* selectors,
                              u8* flags) {
  for (i64 j = 0; j < width; ++j) {
    const Header a = x[j], b = flipped(y[j], flip);
    const SumPlan plan = by_signs ? plan_by_signs(a, b, accuracy) : plan_by_complement(a, b, accuracy);
    out.store(plan.header, first + j);
    selectors[j] = plan.selector;
    flags[first + j] = static_cast<u8>(plan.flags);
  }
}

RNS_VECTORISED void plan_products(const HeaderTile& x, const HeaderTile& y, ExtendedInterval product,
                                  double accuracy, i64 first, i64 width, const Result& out, u8* flags) {
  for (i64 j = 0; j < width; ++j) {
    const SumPlan plan = plan_product(x[j], y[j], product, accuracy);
    out.store(plan.header, first + j);
    flags[first + j] = static_cast<u8>(plan.flags);
  }
}

RNS_VECTORISED void compare_headers(const HeaderTile& x, const HeaderTile& y, i64 width, i8* order) {
  for (i64 j = 0; j < width; ++j) order[j] = static_cast<i8>(order_of(x[j], y[j]));
}

// Algorithm 1 takes one of three ways for each number.
void add_residues_by_branches(const u32* x, const u32* y, const u32* selectors, u32 last, i64 width,
                              u32* __restrict__ z) {
  for (i64 j = 0; j < width; ++j) {
    if ((selectors[j] & kSubtract) == 0) {
      z[j] = mod_add(x[j], y[j], last);
    } else if ((selectors[j] & kComplement) == 0) {
      z[j] = mod_sub(x[j], y[j], last);
    } else {
      z[j] = mod_sub(y[j], x[j], last);
    }
  }
}

RNS_VECTORISED void add_residues(const u32* x, const u32* y, const u32* selectors, u32 last, i64 width,
                                 u32* __restrict__ z) {
  for (i64 j = 0; j < width; ++j) z[j] = residue_of_sum(x[j], y[j], selectors[j], last);
}

struct Sum {
  const Columns& x;
  const Columns& y;
  const Modulus* moduli;
  u32 flip;
  Algorithm algorithm;
  double accuracy;
  Result out;

  void plan(i64 first, i64 width, u32* selectors, u8* flags) const {
    HeaderTile a, b;
    a.load(x, first, width);
    b.load(y, first, width);
    plan_sums(a, b, flip, algorithm == kBySigns, accuracy, first, width, out, selectors, flags);
  }
  void add_part(i64 i, i64 first, i64 width, const u32* selectors) const {
    alignas(64) u32 spread[2][kTile];
    const u32* a = x.part(i, first, width, spread[0]);
    const u32* b = y.part(i, first, width, spread[1]);
    const auto add = algorithm == kBySigns ? add_residues_by_branches : add_residues;
    add(a, b, selectors, moduli[i].last, width, out.row(i) + first);
  }
  // All rows of a tile, then the next tile.
  void run(u8* flags) const {
    alignas(64) u32 selectors[kTile];
    for (i64 first = 0; first < out.count; first += kTile) {
      const i64 width = std::min(kTile, out.count - first);
      plan(first, width, selectors, flags);
      for (i64 i = 0; i < out.rows; ++i) add_part(i, first, width, selectors);
    }
  }
  // All headers, then row after row.
  void run_digits(u32* selectors, u8* flags) const {
    for (i64 first = 0; first < out.count; first += kTile) {
      plan(first, std::min(kTile, out.count - first), selectors + first, flags);
    }
    for (i64 i = 0; i < out.rows; ++i) {
      for (i64 first = 0; first < out.count; first += kTile) {
        add_part(i, first, std::min(kTile, out.count - first), selectors + first);
      }
    }
  }
};

using MutableVector32 = Written<u32, nb::ndim<1>, nb::c_contig>;
using VectorDouble = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using VectorI32 = nb::ndarray<const i32, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MutableVectorDouble = Written<double, nb::ndim<1>, nb::c_contig>;
using MutableVectorI32 = Written<i32, nb::ndim<1>, nb::c_contig>;
using MutableVectorI8 = Written<i8, nb::ndim<1>, nb::c_contig>;

void check_pair(const Columns& x, const Columns& y, size_t rows, size_t count) {
  const i64 n = static_cast<i64>(rows), numbers = static_cast<i64>(count);
  require(n > 0 && x.rows() == n && y.rows() == n, "operands need a row for each modulus and a header");
  require((x.count() == numbers || x.count() == 1) && (y.count() == numbers || y.count() == 1),
          "an operand must have the result's columns, or one column");
}

// The result without its residues, whose rows are checked to be there.
Result result_of(const MutableMatrix32& out, const Vector8& flags) {
  require(out.shape(0) > kHeaderRows, "the result needs rows for residues and a header");
  require(flags.shape(0) == out.shape(1), "one flag for each number is needed");
  return {out.data(), static_cast<i64>(out.shape(0)) - kHeaderRows, static_cast<i64>(out.shape(1))};
}

void bind_sum(nb::module_& module) {
  module.def("interval_rns_add", [](const Matrix32& a, const Matrix32& b, const Table32& moduli,
                                    bool subtract, int algorithm, double accuracy, MutableMatrix32 out,
                                    MutableVector32 selectors, Vector8 flags) {
    const Columns x(a), y(b);
    const Result result = result_of(out, flags);
    check_pair(x, y, static_cast<size_t>(result.rows), out.shape(1));
    require(static_cast<i64>(moduli.shape(0)) == result.rows && moduli.shape(1) == 4,
            "one modulus for each row of residues is needed");
    const bool digits = algorithm == kByDigits;
    require(selectors.shape(0) == (digits ? out.shape(1) : 0), "digits need one selector for each number");
    nb::gil_scoped_release release;
    const Sum sum = {x,
                     y,
                     reinterpret_cast<const Modulus*>(moduli.data()),
                     subtract ? 1u : 0u,
                     static_cast<Algorithm>(algorithm),
                     accuracy,
                     result};
    if (digits) {
      sum.run_digits(selectors.data(), flags.data());
    } else {
      sum.run(flags.data());
    }
  });
}

// Whether a number with this header, and these residues at column j, is 0.
bool is_zero(const Header& header, const Columns& x, i64 j) {
  bool zero = is_of_zero(header);
  u32 spread[1];
  for (i64 i = 0; zero && i < x.rows(); ++i) zero = *x.part(i, j, 1, spread) == 0;
  return zero;
}

RNS_VECTORISED bool all_follow(const HeaderTile& tile, i64 count, i32 least_exponent, double width) {
  u32 wrong = 0;
  for (i64 j = 0; j < count; ++j) wrong |= static_cast<u32>(!follows_rules(tile[j], least_exponent, width));
  return wrong == 0;
}

// The first number whose header no number has, -1 if there is none.
i64 first_invalid(const Columns& x, i32 least_exponent, double width) {
  HeaderTile tile;
  for (i64 first = 0; first < x.count(); first += kTile) {
    const i64 count = std::min(kTile, x.count() - first);
    tile.load(x, first, count);
    if (all_follow(tile, count, least_exponent, width)) continue;
    for (i64 j = 0; j < count; ++j) {
      const Header header = tile[j];
      if (!follows_rules(header, least_exponent, width) && !is_zero(header, x, first + j)) return first + j;
    }
  }
  return -1;
}

void bind_validity(nb::module_& module) {
  module.def("interval_rns_first_invalid", [](const Matrix32& array, i32 least_exponent, double width) {
    const Columns x(array);
    require(x.rows() > 0, "a number needs residues and a header");
    nb::gil_scoped_release release;
    return first_invalid(x, least_exponent, width);
  });
}

RNS_VECTORISED void order_keys(const HeaderTile& tile, i64 count, i32 bits, i64* keys) {
  const u32 *sign = tile.rows[kSignRow], *exponent = tile.rows[kExponentRow];
  const u32* upp_high = tile.rows[kUppRow + 1];
  for (i64 j = 0; j < count; ++j) keys[j] = order_key(sign[j], exponent[j], upp_high[j], bits);
}

void bind_order(nb::module_& module) {
  module.def("interval_rns_order_keys", [](const Matrix32& array, i32 bits, MutableVectorI64 keys) {
    const Columns x(array);
    require(x.rows() > 0, "a number needs residues and a header");
    require(x.count() == static_cast<i64>(keys.shape(0)), "numbers and keys differ in count");
    nb::gil_scoped_release release;
    HeaderTile tile;
    for (i64 first = 0; first < x.count(); first += kTile) {
      const i64 width = std::min(kTile, x.count() - first);
      tile.load(x, first, width);
      order_keys(tile, width, bits, keys.data() + first);
    }
  });
}

void bind_lengths(nb::module_& module) {
  module.def("interval_rns_lengths", [](const Matrix32& array, double low, double upp, i32 exponent,
                                        MutableVectorI64 lengths, Vector8 decided) {
    const Columns x(array);
    require(x.rows() > 0, "a number needs residues and a header");
    require(
        x.count() == static_cast<i64>(lengths.shape(0)) && x.count() == static_cast<i64>(decided.shape(0)),
        "lengths and decided must have one item for each number");
    nb::gil_scoped_release release;
    HeaderTile tile;
    for (i64 first = 0; first < x.count(); first += kTile) {
      const i64 width = std::min(kTile, x.count() - first);
      tile.load(x, first, width);
      for (i64 j = 0; j < width; ++j) {
        const i32 length = length_of_magnitude(tile[j], {low, upp, exponent});
        lengths.data()[first + j] = length;
        decided.data()[first + j] = length != kOpenLength;
      }
    }
  });
}

void bind_headers(nb::module_& module) {
  module.def("interval_rns_multiply_headers", [](const Matrix32& a, const Matrix32& b, double low, double upp,
                                                 i32 exponent, double accuracy, MutableMatrix32 out,
                                                 Vector8 flags) {
    const Columns x(a), y(b);
    const Result result = result_of(out, flags);
    check_pair(x, y, static_cast<size_t>(result.rows), out.shape(1));
    nb::gil_scoped_release release;
    HeaderTile tiles[2];
    for (i64 first = 0; first < result.count; first += kTile) {
      const i64 width = std::min(kTile, result.count - first);
      tiles[0].load(x, first, width);
      tiles[1].load(y, first, width);
      plan_products(tiles[0], tiles[1], {low, upp, exponent}, accuracy, first, width, result, flags.data());
    }
  });
  module.def("interval_rns_compare",
             [](const Matrix32& a, const Matrix32& b, size_t moduli, MutableVectorI8 order) {
               const Columns x(a), y(b);
               check_pair(x, y, moduli, order.shape(0));
               nb::gil_scoped_release release;
               HeaderTile tiles[2];
               const i64 count = static_cast<i64>(order.shape(0));
               for (i64 first = 0; first < count; first += kTile) {
                 const i64 width = std::min(kTile, count - first);
                 tiles[0].load(x, first, width);
                 tiles[1].load(y, first, width);
                 compare_headers(tiles[0], tiles[1], width, order.data() + first);
               }
             });
}

}  // namespace

void bind_interval_rns(nb::module_& module) {
  bind_sum(module);
  bind_headers(module);
  bind_validity(module);
  bind_order(module);
  bind_lengths(module);
  module.def("interval_arithmetic", [](int operation, const VectorDouble& x_low, const VectorDouble& x_upp,
                                       const VectorI32& x_exponent, const VectorDouble& y_low,
                                       const VectorDouble& y_upp, const VectorI32& y_exponent, double low,
                                       double upp, i32 exponent, MutableVectorDouble z_low,
                                       MutableVectorDouble z_upp, MutableVectorI32 z_exponent) {
    const size_t count = z_low.shape(0);
    require(x_low.shape(0) == count && x_upp.shape(0) == count && x_exponent.shape(0) == count &&
                y_low.shape(0) == count && y_upp.shape(0) == count && y_exponent.shape(0) == count &&
                z_upp.shape(0) == count && z_exponent.shape(0) == count,
            "operands and results must have the same length");
    nb::gil_scoped_release release;
    for (size_t j = 0; j < count; ++j) {
      const ExtendedInterval x = normalised({x_low.data()[j], x_upp.data()[j], x_exponent.data()[j]});
      const ExtendedInterval y = normalised({y_low.data()[j], y_upp.data()[j], y_exponent.data()[j]});
      const ExtendedInterval z = fraction_operation(operation, x, y, {low, upp, exponent});
      z_low.data()[j] = z.low;
      z_upp.data()[j] = z.upp;
      z_exponent.data()[j] = z.exponent;
    }
  });
}

}  // namespace rns
