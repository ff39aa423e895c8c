// Determinants of small matrices modulo primes, and numerators of Cramer's rule, for kLanes matrices in step:
// a vector has one element of each.
//
// Of few rows, step k makes row i the difference (u_k x_i - x_ik u) / R of Montgomery's products, where u is
// the pivot's row. So the rows below are scaled by u_k / R, and of the pivots as they are found
//   det = u_0 ... u_(N-1) / (v_0 ... v_(N-2)),  v_k = (u_0 / R) ... (u_k / R),
// which takes one inverse for each matrix instead of one for each pivot, and another for all 1 / u_k. Of
// more, each element is reduced once (P. Crout): x_ij less the sum of l_im u_mj for m < min(i, j).
#include <algorithm>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "lanes.hpp"

namespace rns {

namespace {

using MutableMatrices = Written<u32, nb::ndim<4>, nb::c_contig>;

// Determinants of so many rows are expanded.
constexpr i64 kTiny = 4;

// Matrices of so many rows and columns together take less time step by step, as measured.
constexpr i64 kFewRowsAndColumns = 43;

// rows[i][j] = |(pivot rows[i][j] - factor_i row[j]) / R| for `count` rows, `stride` vectors apart, whose
// factors stand before them, as the pivots do before `row`.
RNS_VECTORISED void eliminate_rows(const Vector* __restrict__ row, Vector* __restrict__ rows, i64 count,
                                   i64 stride, i64 length, const Primes& primes) {
  const Vector pivot = row[-1];
  for (i64 i = 0; i < count; ++i) {
    Vector* __restrict__ x = rows + i * stride;
    const Vector factor = x[-1];
    for (i64 j = 0; j < length; ++j) {
      for (i64 lane = 0; lane < kLanes; ++lane) {
        x[j].of[lane] = montgomery_mulsub(pivot.of[lane], x[j].of[lane], factor.of[lane], row[j].of[lane],
                                          primes.at(lane));
      }
    }
  }
}

// Determinants of 4 x 4 matrices by minors of two rows (P. Laplace), which takes no inverse and no pivots.
RNS_VECTORISED void expand(const Vector* __restrict__ x, const Primes& primes, Vector& out) {
  Vector found;
  for (i64 lane = 0; lane < kLanes; ++lane) {
    const Montgomery prime = primes.at(lane);
    // Of rows i and i + 1: that of columns j and k, over R.
    const auto minor = [&](i64 i, i64 j, i64 k) {
      return montgomery_mulsub(x[4 * i + j].of[lane], x[4 * i + 4 + k].of[lane], x[4 * i + k].of[lane],
                               x[4 * i + 4 + j].of[lane], prime);
    };
    const u32 a = montgomery_mulsub(minor(0, 0, 1), minor(2, 2, 3), minor(0, 0, 2), minor(2, 1, 3), prime);
    const u32 b = montgomery_mulsub(minor(0, 1, 2), minor(2, 0, 3), minor(0, 1, 3), minor(2, 0, 2), prime);
    const u32 c = montgomery_mulsub(minor(0, 2, 3), minor(2, 0, 1), minor(0, 3, 0), minor(2, 1, 2), prime);
    const u32 sum = mod_add(mod_add(a, b, primes.last.of[lane]), c, primes.last.of[lane]);
    const u32 scale = montgomery_mul(primes.cube.of[lane], primes.square.of[lane], prime);
    found.of[lane] = montgomery_mul(sum, scale, prime);  // which is over R^3
  }
  out = found;
}

Vector ones() {
  Vector result;
  std::fill_n(result.of, kLanes, 1u);
  return result;
}

// Of matrices [A b] of `rows` rows and `columns` columns.
class Cramer {
 public:
  Cramer(i64 rows, i64 columns)
      : rows_(rows),
        columns_(columns),
        stride_(is_tiny() ? kTiny : columns),
        words_(std::max(rows, kTiny) * stride_),
        column_(rows + 1),
        inverses_(rows) {
    // A tiny matrix is the upper left one of a greater, with 1 on the rest of the diagonal.
    for (i64 i = rows; is_tiny() && i < kTiny; ++i) at(i, i) = ones();
  }

  void load(const Stack& x, i64 first, const std::vector<Montgomery>& moduli) {
    group_of(x, first, moduli, primes_).load(rows_, columns_, stride_, words_.data());
  }

  // Afterwards `numerators` are in the place of b; of matrices whose determinant is 0 they mean nothing.
  Vector find() {
    is_odd_ = {};
    is_regular_ = ones();
    Vector determinant;
    if (is_tiny()) {
      expand(words_.data(), primes_, determinant);
      return determinant;
    }
    determinant = rows_ + columns_ <= kFewRowsAndColumns ? eliminate_by_steps() : eliminate_by_sums();
    for (i64 lane = 0; lane < kLanes; ++lane) {
      u32& value = determinant.of[lane];
      if (is_regular_.of[lane] == 0) value = 0;
      if (is_odd_.of[lane] != 0 && value != 0) value = primes_.m.of[lane] - value;
    }
    if (columns_ > rows_) substitute(determinant);
    return determinant;
  }

  const Vector& numerator(i64 i, i64 j) const { return words_[i * stride_ + rows_ + j]; }

 private:
  bool is_tiny() const { return rows_ <= kTiny && columns_ == rows_; }
  Vector& at(i64 i, i64 j) { return words_[i * stride_ + j]; }

  // Both leave the pivots' rows, and R^2 / u_k of each pivot if there is b.
  Vector eliminate_by_steps() {
    std::vector<Vector>& products = column_;  // the v_k, after 1
    Vector scales = ones();
    products[0] = ones();
    for (i64 k = 0; k < rows_; ++k) {
      bring_pivots(k, k);
      multiply(products[k], at(k, k), primes_, products[k + 1]);
      if (k + 1 == rows_) break;
      multiply(scales, products[k + 1], primes_, scales);
      eliminate_rows(&at(k, k + 1), &at(k + 1, k + 1), rows_ - k - 1, columns_, columns_ - k - 1, primes_);
    }
    // One inverse tells those of the scales and of v_(N-1).
    Vector determinant, both, inverse;
    multiply(scales, products[rows_], primes_, both);
    invert_together(both.of, primes_.last.of);
    // The product has a factor 1 / R for each pivot, and the scales one less: the rest is R^3 / R^2.
    multiply(products[rows_], both, primes_, inverse);  // of the scales
    multiply(products[rows_], inverse, primes_, determinant);
    multiply(determinant, primes_.cube, primes_, determinant);
    if (columns_ == rows_) return determinant;
    multiply(scales, both, primes_, inverse);  // of v_k, of which v_(k-1) / R is that of u_k
    for (i64 k = rows_ - 1; k >= 0; --k) {
      multiply(products[k], inverse, primes_, inverses_[k]);
      multiply(inverses_[k], primes_.cube, primes_, inverses_[k]);
      multiply(inverse, at(k, k), primes_, inverse);
    }
    return determinant;
  }

  // Below the diagonal are factors times R in the end.
  Vector eliminate_by_sums() {
    Vector determinant = ones(), scaled;
    for (i64 k = 0; k < rows_; ++k) {
      for (i64 m = 0; m < k; ++m) column_[m] = at(m, k);
      subtract_sums(column_.data(), {&at(k, 0), 1, columns_}, k, rows_ - k, primes_, &at(k, k), columns_);
      bring_pivots(k, 0);
      multiply(at(k, k), primes_.square, primes_, scaled);
      multiply(determinant, scaled, primes_, determinant);
      inverses_[k] = at(k, k);
      invert_together(inverses_[k].of, primes_.last.of);
      multiply(inverses_[k], primes_.cube, primes_, inverses_[k]);
      for (i64 i = k + 1; i < rows_; ++i) multiply(at(i, k), inverses_[k], primes_, at(i, k));
      subtract_sums(&at(k, 0), {words_.data() + k + 1, columns_, 1}, k, columns_ - k - 1, primes_,
                    &at(k, k) + 1, 1);
    }
    return determinant;
  }

  // Brings a row to place k of each matrix whose element there is 0, from column `begin` on; 1 becomes the
  // pivot if there is none.
  void bring_pivots(i64 k, i64 begin) {
    for (i64 lane = 0; lane < kLanes; ++lane) {
      if (at(k, k).of[lane] != 0) continue;
      i64 i = k + 1;
      while (i < rows_ && at(i, k).of[lane] == 0) ++i;
      if (i == rows_) {
        is_regular_.of[lane] = 0;
        at(k, k).of[lane] = 1;
        continue;
      }
      for (i64 j = begin; j < columns_; ++j) std::swap(at(i, j).of[lane], at(k, j).of[lane]);
      is_odd_.of[lane] ^= 1u;
    }
  }

  // Numerators y from the last row up: u_k y_k = det b_k - the sum of u_kj y_j for j > k.
  void substitute(const Vector& determinant) {
    const i64 count = columns_ - rows_;
    for (i64 k = rows_ - 1; k >= 0; --k) {
      Vector* row = &at(k, rows_);
      for (i64 j = 0; j < count; ++j) multiply(determinant, row[j], primes_, row[j]);
      // Here are factors 1 / R, of the products and of the sum.
      subtract_sums(row - rows_ + k + 1, {row + columns_, columns_, 1}, rows_ - k - 1, count, primes_, row,
                    1);
      for (i64 j = 0; j < count; ++j) multiply(row[j], inverses_[k], primes_, row[j]);
    }
  }

  i64 rows_, columns_, stride_;
  std::vector<Vector> words_, column_, inverses_;
  Vector is_odd_{}, is_regular_{};
  Primes primes_{};
};

}  // namespace

void bind_cramer(nb::module_& module) {
  module.def("small_cramer", [](const Stack& x, const Table32& table, MutableMatrices numerators,
                                MutableMatrix32 determinants) {
    const i64 n = static_cast<i64>(x.shape(0)), count = static_cast<i64>(x.shape(1)), total = n * count;
    const i64 rows = static_cast<i64>(x.shape(2)), columns = static_cast<i64>(x.shape(3));
    require(0 < rows && rows <= columns, "matrices [A b] have as many columns as rows, or more");
    const i64 size = rows * (columns - rows);
    require(
        static_cast<i64>(numerators.size()) == total * size && static_cast<i64>(determinants.size()) == total,
        "the results do not have the shapes of the matrices");
    const std::vector<Montgomery> moduli = odd_moduli(table, n);
    nb::gil_scoped_release release;
    Cramer cramer(rows, columns);
    for (i64 t = 0; t < total; t += kLanes) {
      const i64 here = std::min(kLanes, total - t);
      cramer.load(x, t, moduli);
      const Vector found = cramer.find();
      std::copy_n(found.of, here, determinants.data() + t);
      for (i64 lane = 0; lane < here; ++lane) {
        u32* out = numerators.data() + (t + lane) * size;
        for (i64 i = 0; i < rows; ++i) {
          for (i64 j = 0; j < columns - rows; ++j) *out++ = cramer.numerator(i, j).of[lane];
        }
      }
    }
  });
}

}  // namespace rns
