// Determinants of small matrices modulo primes, and numerators of Cramer's rule, for kLanes matrices in step:
// a vector has one element of each.
//
// Step k makes row i the difference (u_k x_i - x_ik u) / R of Montgomery's products, where u is the pivot's
// row. So the rows below are scaled by u_k / R, and of the pivots as they are found
//   det = u_0 ... u_(N-1) / (v_0 ... v_(N-2)),  v_k = (u_0 / R) ... (u_k / R),
// which takes one inverse for each matrix instead of one for each pivot, and another for all 1 / u_k.
#include <algorithm>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "lanes.hpp"
#include "matmul.hpp"
#include "rns/matrix.cuh"

namespace rns {

namespace {

using Matrices = nb::ndarray<const u32, nb::ndim<4>, nb::device::cpu>;
using MutableMatrices = Written<u32, nb::ndim<4>, nb::c_contig>;

// kLanes numbers, each of a matrix of its own, and what products modulo kLanes primes take.
struct alignas(64) Vector {
  u32 of[kLanes];
};

struct Primes {
  Vector m, inverse, cube, last;

  RNS_INLINE Montgomery at(i64 lane) const { return {m.of[lane], inverse.of[lane], 0, cube.of[lane]}; }
};

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

// |a b / R|.
RNS_VECTORISED void multiply(const Vector& a, const Vector& b, const Primes& primes, Vector& out) {
  for (i64 lane = 0; lane < kLanes; ++lane) {
    out.of[lane] = montgomery_mul(a.of[lane], b.of[lane], primes.at(lane));
  }
}

// sum = |sum - products of x[j] and y[j stride] / R|, of `count`.
RNS_VECTORISED void subtract_products(const Vector* __restrict__ x, const Vector* __restrict__ y, i64 count,
                                      i64 stride, const Primes& primes, Vector& sum) {
  for (i64 j = 0; j < count; ++j) {
    for (i64 lane = 0; lane < kLanes; ++lane) {
      const u32 product = montgomery_mul(x[j].of[lane], y[j * stride].of[lane], primes.at(lane));
      sum.of[lane] = mod_sub(sum.of[lane], product, primes.last.of[lane]);
    }
  }
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
      : rows_(rows), columns_(columns), words_(rows * columns), products_(rows + 1) {}

  void load(i64 lane, View matrix, Montgomery m) {
    for (i64 i = 0; i < rows_; ++i) {
      for (i64 j = 0; j < columns_; ++j) at(i, j).of[lane] = *matrix.at(i, j);
    }
    primes_.m.of[lane] = m.m;
    primes_.inverse.of[lane] = m.inverse;
    primes_.cube.of[lane] = m.cube;
    primes_.last.of[lane] = m.m - 1u;
  }

  // Afterwards `numerators` are in the place of b; of matrices whose determinant is 0 they mean nothing.
  Vector find() {
    Vector is_odd{}, is_regular = ones(), scales = ones();
    products_[0] = ones();
    for (i64 k = 0; k < rows_; ++k) {
      for (i64 lane = 0; lane < kLanes; ++lane) {
        if (at(k, k).of[lane] == 0) exchange(k, lane, is_odd.of[lane], is_regular.of[lane]);
      }
      multiply(products_[k], at(k, k), primes_, products_[k + 1]);
      if (k + 1 == rows_) break;
      multiply(scales, products_[k + 1], primes_, scales);
      eliminate_rows(&at(k, k + 1), &at(k + 1, k + 1), rows_ - k - 1, columns_, columns_ - k - 1, primes_);
    }
    // The product has a factor 1 / R for each pivot, and the scales one less: the rest is R^3 / R^2.
    Vector determinant;
    invert_together(scales.of, primes_.last.of);
    multiply(products_[rows_], scales, primes_, determinant);
    multiply(determinant, primes_.cube, primes_, determinant);
    for (i64 lane = 0; lane < kLanes; ++lane) {
      u32& value = determinant.of[lane];
      if (is_regular.of[lane] == 0) value = 0;
      if (is_odd.of[lane] != 0 && value != 0) value = primes_.m.of[lane] - value;
    }
    if (columns_ > rows_) substitute(determinant);
    return determinant;
  }

  const Vector& numerator(i64 i, i64 j) const { return words_[i * columns_ + rows_ + j]; }

 private:
  Vector& at(i64 i, i64 j) { return words_[i * columns_ + j]; }

  // Brings a row to place k of one matrix whose element there is 0; 1 becomes the pivot if there is none.
  void exchange(i64 k, i64 lane, u32& is_odd, u32& is_regular) {
    i64 i = k + 1;
    while (i < rows_ && at(i, k).of[lane] == 0) ++i;
    if (i == rows_) {
      is_regular = 0;
      at(k, k).of[lane] = 1;
      return;
    }
    for (i64 j = k; j < columns_; ++j) std::swap(at(i, j).of[lane], at(k, j).of[lane]);
    is_odd ^= 1u;
  }

  // Numerators y from the last row up: u_k y_k = det b_k - the sum of u_kj y_j for j > k.
  void substitute(const Vector& determinant) {
    Vector inverse = products_[rows_];  // of v_k, of which v_(k-1) / R is that of u_k
    invert_together(inverse.of, primes_.last.of);
    for (i64 k = rows_ - 1; k >= 0; --k) {
      Vector factor;  // R^2 / u_k, for sums have a factor 1 / R
      multiply(products_[k], inverse, primes_, factor);
      multiply(factor, primes_.cube, primes_, factor);
      multiply(inverse, at(k, k), primes_, inverse);
      for (i64 j = rows_; j < columns_; ++j) {
        Vector sum;
        multiply(determinant, at(k, j), primes_, sum);
        if (k + 1 < rows_) {
          subtract_products(&at(k, k + 1), &at(k + 1, j), rows_ - k - 1, columns_, primes_, sum);
        }
        multiply(sum, factor, primes_, at(k, j));
      }
    }
  }

  i64 rows_, columns_;
  std::vector<Vector> words_, products_;  // the latter are the v_k, after 1
  Primes primes_{};
};

}  // namespace

void bind_cramer(nb::module_& module) {
  module.def("small_cramer", [](const Matrices& x, const Table32& table, MutableMatrices numerators,
                                MutableMatrix32 determinants) {
    const i64 n = static_cast<i64>(x.shape(0)), count = static_cast<i64>(x.shape(1)), total = n * count;
    const i64 rows = static_cast<i64>(x.shape(2)), columns = static_cast<i64>(x.shape(3));
    require(0 < rows && rows <= columns, "matrices [A b] have as many columns as rows, or more");
    require(static_cast<i64>(table.shape(0)) == n && table.shape(1) == 4,
            "one modulus for each row is needed");
    const i64 size = rows * (columns - rows);
    require(
        static_cast<i64>(numerators.size()) == total * size && static_cast<i64>(determinants.size()) == total,
        "the results do not have the shapes of the matrices");
    std::vector<Montgomery> moduli;
    for (i64 i = 0; i < n; ++i) {
      const Modulus m = reinterpret_cast<const Modulus*>(table.data())[i];
      require(m.last % 2 == 0, "the moduli must be odd");
      moduli.push_back(montgomery_of(m));
    }
    nb::gil_scoped_release release;
    Cramer cramer(rows, columns);
    for (i64 t = 0; t < total; t += kLanes) {
      const i64 here = std::min(kLanes, total - t);
      for (i64 lane = 0; lane < kLanes; ++lane) {  // the last one again, where there are fewer
        const i64 place = t + std::min(lane, here - 1), i = place / count, b = place % count;
        const View matrix{x.data() + i * x.stride(0) + b * x.stride(1), x.stride(2), x.stride(3)};
        cramer.load(lane, matrix, moduli[i]);
      }
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
