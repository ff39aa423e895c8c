// Characteristic polynomials of small matrices modulo primes, for kLanes matrices in step: a vector has one
// element of each.
//
// A similarity brings a matrix to Hessenberg form H, of which the polynomials of the leading rows and columns
// follow one from another (H. Cohen, "A Course in Computational Algebraic Number Theory", Algorithm 2.2.9).
#include <algorithm>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "lanes.hpp"

namespace rns {

namespace {

using Vectors = Written<u32, nb::ndim<3>, nb::c_contig>;

// From each of `count` rows, `stride` vectors apart, its factor times `row` / R, of `length` vectors.
RNS_VECTORISED void subtract_multiples(const Vector* __restrict__ row, const Vector* __restrict__ factors,
                                       Vector* __restrict__ rows, i64 count, i64 stride, i64 length,
                                       const Primes& primes) {
  for (i64 i = 0; i < count; ++i) {
    const Vector factor = factors[i];
    Vector* __restrict__ x = rows + i * stride;
    for (i64 j = 0; j < length; ++j) {
      for (i64 lane = 0; lane < kLanes; ++lane) {
        const u32 product = montgomery_mul(row[j].of[lane], factor.of[lane], primes.at(lane));
        x[j].of[lane] = mod_sub(x[j].of[lane], product, primes.last.of[lane]);
      }
    }
  }
}

class SmallPolynomials {
 public:
  explicit SmallPolynomials(i64 length)
      : length_(length), words_(length * length), rows_((length + 1) * (length + 1)), factors_(length) {}

  void load(const Stack& x, i64 first, const std::vector<Montgomery>& moduli) {
    group_of(x, first, moduli, primes_).load(length_, length_, length_, words_.data());
  }

  // The coefficients, the constant one first.
  const Vector* find() {
    for (i64 k = 0; k + 2 < length_; ++k) reduce_column(k);
    expand();
    return polynomial(length_);
  }

 private:
  Vector& at(i64 i, i64 j) { return words_[i * length_ + j]; }
  Vector* polynomial(i64 k) { return &rows_[k * (length_ + 1)]; }

  // Leaves zeros below place k + 1 of column k.
  void reduce_column(i64 k) {
    for (i64 lane = 0; lane < kLanes; ++lane) {
      if (at(k + 1, k).of[lane] == 0) exchange(k, lane);
    }
    Vector inverse = at(k + 1, k);
    invert_together(inverse.of, primes_.last.of);  // 0 of a column that is clear already
    multiply(inverse, primes_.cube, primes_, inverse);
    const i64 count = length_ - k - 2;
    for (i64 i = 0; i < count; ++i) {
      multiply(at(k + 2 + i, k), inverse, primes_, factors_[i]);
      at(k + 2 + i, k) = {};
    }
    subtract_multiples(&at(k + 1, k + 1), factors_.data(), &at(k + 2, k + 1), count, length_, count + 1,
                       primes_);
    // Column k + 1 gains the multiples of the others: it loses those of the negative factors.
    for (i64 i = 0; i < count; ++i) {
      for (i64 lane = 0; lane < kLanes; ++lane) {
        u32& factor = factors_[i].of[lane];
        factor = factor == 0 ? 0 : primes_.m.of[lane] - factor;
      }
    }
    subtract_sums(factors_.data(), {&at(0, k + 2), 1, length_}, count, length_, primes_, &at(0, k + 1),
                  length_);
  }

  // Brings an element that is not 0 to place k + 1 of column k of one matrix, by a similarity.
  void exchange(i64 k, i64 lane) {
    i64 i = k + 2;
    while (i < length_ && at(i, k).of[lane] == 0) ++i;
    if (i == length_) return;
    for (i64 j = 0; j < length_; ++j) std::swap(at(i, j).of[lane], at(k + 1, j).of[lane]);
    for (i64 j = 0; j < length_; ++j) std::swap(at(j, i).of[lane], at(j, k + 1).of[lane]);
  }

  // The polynomial of the leading k rows and columns is P_k, with
  // P_(k+1) = (z - H_kk) P_k - sum over i < k of H_ik H_(i+1)i ... H_k(k-1) P_i.
  void expand() {
    std::fill(rows_.begin(), rows_.end(), Vector{});
    std::fill_n(polynomial(0)->of, kLanes, 1u);
    for (i64 k = 0; k < length_; ++k) {
      Vector* next = polynomial(k + 1);
      std::copy_n(polynomial(k), k + 1, next + 1);
      Vector below = primes_.square, scaled;  // R^2 times the product of what is below the diagonal
      for (i64 i = k; i >= 0; --i) {
        multiply(at(i, k), below, primes_, factors_[i]);
        if (i == 0) break;
        multiply(at(i, i - 1), primes_.square, primes_, scaled);
        multiply(below, scaled, primes_, below);
      }
      subtract_sums(factors_.data(), {polynomial(0), length_ + 1, 1}, k + 1, k + 1, primes_, next, 1);
    }
  }

  i64 length_;
  std::vector<Vector> words_, rows_, factors_;
  Primes primes_{};
};

}  // namespace

void bind_small_polynomials(nb::module_& module) {
  module.def("small_polynomials", [](const Stack& x, const Table32& table, Vectors out) {
    const i64 n = static_cast<i64>(x.shape(0)), count = static_cast<i64>(x.shape(1)), total = n * count;
    const i64 length = static_cast<i64>(x.shape(2));
    require(length > 0 && static_cast<i64>(x.shape(3)) == length, "the matrices must be square");
    require(static_cast<i64>(out.size()) == total * (length + 1),
            "the results do not have the shapes of the matrices");
    const std::vector<Montgomery> moduli = odd_moduli(table, n);
    nb::gil_scoped_release release;
    SmallPolynomials polynomials(length);
    for (i64 t = 0; t < total; t += kLanes) {
      const i64 here = std::min(kLanes, total - t);
      polynomials.load(x, t, moduli);
      const Vector* found = polynomials.find();
      for (i64 lane = 0; lane < here; ++lane) {
        for (i64 k = 0; k <= length; ++k) out.data()[(t + lane) * (length + 1) + k] = found[k].of[lane];
      }
    }
  });
}

}  // namespace rns
