// Polynomials modulo primes p < 2^64: division, and Euclid's algorithm for resultants, greatest common
// divisors and half-gcds.
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "wide_matmul.hpp"

namespace rns {

namespace {

using Polynomials = nb::ndarray<const u64, nb::ndim<3>, nb::device::cpu>;
using MutablePolynomials = Written<u64, nb::ndim<3>, nb::c_contig>;
using Degrees = nb::ndarray<const i32, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A modulus for numbers that are scaled by 2^shift already.
WideModulus scaled(WideModulus m) { return {m.last, m.divisor, m.reciprocal, 0}; }

u64 negated(u64 x, u64 last) { return x == 0 ? 0 : last - x + 1u; }

// f[k] -= c g[k].
RNS_VECTORISED void subtract_multiple(u64* __restrict__ f, const u64* __restrict__ g, i64 count, u64 c,
                                      WideModulus m) {
  const u64 factor = negated(c, m.last) << m.shift;
  const WideModulus whole = scaled(m);
  for (i64 k = 0; k < count; ++k) {
    f[k] = mod_reduce(static_cast<u128>(factor) * g[k] + (f[k] << m.shift), whole) >> m.shift;
  }
}

// f[k] -= c g[k] + d g[k - 1] modulo an odd p < 2^63, by P. Montgomery's reduction: two products are below
// 2^64 p.
RNS_VECTORISED void subtract_two(u64* __restrict__ f, const u64* __restrict__ g, i64 count, u64 c, u64 d,
                                 WideModulus m) {
  const u64 p = m.last + 1u;
  u64 inverse = p;  // modulo 2^3, and twice as many bits in each step
  for (i64 bits = 3; bits < 64; bits *= 2) inverse *= 2u - p * inverse;
  const u64 factor = mod_reduce(static_cast<u128>(negated(c, m.last)) << 64, m);
  const u64 next = mod_reduce(static_cast<u128>(negated(d, m.last)) << 64, m);
  for (i64 k = 0; k < count; ++k) {
    const u128 sum = static_cast<u128>(factor) * g[k] + static_cast<u128>(next) * g[k - 1];
    const u64 multiple = static_cast<u64>(static_cast<u128>(static_cast<u64>(sum) * inverse) * p >> 64);
    const u64 difference = static_cast<u64>(sum >> 64) - multiple;
    const u64 result = f[k] + std::min(difference, difference + p);
    f[k] = std::min(result, result - p);
  }
}

bool takes_two(WideModulus m) { return m.last >> 63 == 0 && (m.last & 1u) == 0; }

// A polynomial with a 0 before its coefficients, and zeros beyond its degree, which is -1 for 0.
class Polynomial {
 public:
  i64 degree = -1;

  explicit Polynomial(i64 length = 0) : words_(length + 1) {}

  u64* data() { return words_.data() + 1; }
  u64 leading() { return data()[degree]; }

  // Takes coefficients up to a degree; the leading ones may be 0.
  void load(const u64* from, i64 step, i64 most) {
    for (i64 k = 0; k <= most; ++k) data()[k] = from[k * step];
    std::fill(data() + most + 1, words_.data() + words_.size(), u64{0});
    lower(most);
  }

  // The degree, which is at most `most`.
  void lower(i64 most) {
    degree = most;
    while (degree >= 0 && data()[degree] == 0) --degree;
  }

  // Takes q x from this, where this has room for it.
  void subtract_product(const std::vector<u64>& q, Polynomial& x, WideModulus m) {
    const i64 count = x.degree + 1, steps = static_cast<i64>(q.size());
    if (steps == 2 && takes_two(m)) {
      subtract_two(data(), x.data(), count, q[0], q[1], m);
      if (count > 0) subtract_multiple(data() + count, x.data() + count - 1, 1, q[1], m);
    } else {
      for (i64 k = 0; k < steps; ++k) subtract_multiple(data() + k, x.data(), count, q[k], m);
    }
    lower(std::max(degree, x.degree + steps - 1));
  }

 private:
  std::vector<u64> words_;
};

// Divides f by g != 0: f becomes the remainder. `reversed` is memory.
void divide(Polynomial& f, Polynomial& g, WideModulus m, std::vector<u64>& quotient,
            std::vector<u64>& reversed) {
  const i64 n = g.degree, steps = f.degree - n + 1;
  quotient.assign(std::max<i64>(steps, 0), 0);
  if (steps <= 0) return;
  const u64 inverse = prime_inverse(g.leading(), m.last);
  u64 *x = f.data(), *y = g.data();
  if (steps == 2 && takes_two(m)) {
    quotient[1] = mod_mul(x[n + 1], inverse, m);
    const u64 next = mod_mul(quotient[1], y[n - 1], m);  // 0 before the coefficients
    quotient[0] = mod_mul(mod_sub(x[n], next, m.last), inverse, m);
    subtract_two(x, y, n, quotient[0], quotient[1], m);
  } else {
    // Each coefficient takes one product of vectors, of a quotient's and a divisor's that is reversed.
    reversed.assign(y, y + n + 1);
    std::reverse(reversed.begin(), reversed.end());
    const u64 *q = quotient.data(), *z = reversed.data();
    for (i64 k = steps - 1; k >= 0; --k) {
      const u64 known = dot_product(q + k + 1, z + 1, std::min(n, steps - 1 - k), m);
      quotient[k] = mod_mul(mod_sub(x[n + k], known, m.last), inverse, m);
    }
    for (i64 i = 0; i < n; ++i) {
      x[i] = mod_sub(x[i], dot_product(q, z + n - i, std::min(i + 1, steps), m), m.last);
    }
  }
  std::fill_n(x + n, steps, u64{0});
  f.lower(n - 1);
}

// Two polynomials, of degrees at most `most`, on their way through Euclid's algorithm.
struct Remainders {
  Polynomial f, g;
  std::vector<u64> quotient, reversed;

  explicit Remainders(i64 most) : f(most + 1), g(most + 1) {}

  // Replaces f and g by g and the remainder.
  void step(WideModulus m) {
    divide(f, g, m, quotient, reversed);
    std::swap(f, g);
  }
};

// The resultant of polynomials of formal degrees m and n; `pair` ends with the greatest common divisor.
u64 resultant(Remainders& pair, i64 m, i64 n, WideModulus modulus) {
  if (m < 0 || n < 0) return 0;
  Polynomial &f = pair.f, &g = pair.g;
  if (m == 0 || n == 0) return m == 0 ? mod_pow(f.data()[0], n, modulus) : mod_pow(g.data()[0], m, modulus);
  if (f.degree < m && g.degree < n) return 0;
  u64 result = 1;
  bool is_negative = false;
  if (f.degree < m) {
    if (f.degree < 0) return 0;
    result = mod_pow(g.leading(), m - f.degree, modulus);
    is_negative = (m - f.degree) & n & 1;
  } else {
    if (g.degree < 0) return 0;
    result = mod_pow(f.leading(), n - g.degree, modulus);
  }
  if (f.degree < g.degree) {
    is_negative ^= f.degree & g.degree & 1;
    std::swap(f, g);
  }
  while (g.degree > 0) {
    const i64 degree = f.degree;
    pair.step(modulus);
    if (g.degree < 0) return 0;
    is_negative ^= degree & f.degree & 1;
    result = mod_mul(result, mod_pow(f.leading(), degree - g.degree, modulus), modulus);
  }
  result = mod_mul(result, mod_pow(g.data()[0], f.degree, modulus), modulus);
  return is_negative ? negated(result, modulus.last) : result;
}

i64 length_of(const Polynomials& array, i64 axis) { return static_cast<i64>(array.shape(axis)); }

const u64* pointer(const Polynomials& array, i64 i, i64 b) {
  return array.data() + i * array.stride(0) + b * array.stride(1);
}

bool all_within(const Degrees& degrees, i64 pairs, i64 least, i64 length) {
  return static_cast<i64>(degrees.size()) == pairs &&
         std::all_of(degrees.data(), degrees.data() + pairs, [&](i32 d) { return d >= least && d < length; });
}

const WideModulus* checked(const Polynomials& x, const Polynomials& y, const Table64& table) {
  require(x.shape(0) == y.shape(0) && x.shape(1) == y.shape(1), "there are as many divisors as polynomials");
  return wide_moduli(table, length_of(x, 0));
}

void divide_polynomials(const Polynomials& x, const Polynomials& y, const Degrees& degrees,
                        const Table64& table, MutablePolynomials quotients, MutablePolynomials remainders) {
  const WideModulus* moduli = checked(x, y, table);
  const i64 count = length_of(x, 1), pairs = length_of(x, 0) * count, length = length_of(x, 2);
  require(all_within(degrees, pairs, 0, length_of(y, 2)) &&
              static_cast<i64>(quotients.size()) == pairs * length &&
              static_cast<i64>(remainders.size()) == pairs * length,
          "the results do not have the shapes of the polynomials");
  nb::gil_scoped_release release;
  Remainders pair(std::max(length, length_of(y, 2)));
  for (i64 t = 0; t < pairs; ++t) {
    const i64 i = t / count, b = t % count;
    pair.f.load(pointer(x, i, b), x.stride(2), length - 1);
    pair.g.load(pointer(y, i, b), y.stride(2), degrees.data()[t]);
    require(pair.g.degree >= 0, "a divisor is 0");
    divide(pair.f, pair.g, moduli[i], pair.quotient, pair.reversed);
    u64* quotient = quotients.data() + t * length;
    std::fill(std::copy(pair.quotient.begin(), pair.quotient.end(), quotient), quotient + length, u64{0});
    std::copy_n(pair.f.data(), length, remainders.data() + t * length);
  }
}

// With divisors, which need degrees that are those of the polynomials, they are found, else resultants.
void remainder_sequences(const Polynomials& x, const Polynomials& y, const Degrees& x_degrees,
                         const Degrees& y_degrees, const Table64& table, MutableMatrix64 resultants,
                         MutablePolynomials divisors) {
  const WideModulus* moduli = checked(x, y, table);
  const i64 count = length_of(x, 1), pairs = length_of(x, 0) * count;
  const i64 length = static_cast<i64>(divisors.shape(2)), most = std::max(length_of(x, 2), length_of(y, 2));
  require(all_within(x_degrees, pairs, -1, length_of(x, 2)) &&
              all_within(y_degrees, pairs, -1, length_of(y, 2)) &&
              static_cast<i64>(resultants.size()) == pairs &&
              (length == 0 || (static_cast<i64>(divisors.size()) == pairs * length && length >= most)),
          "the results do not have the shapes of the polynomials");
  nb::gil_scoped_release release;
  Remainders pair(most);
  for (i64 t = 0; t < pairs; ++t) {
    const i64 i = t / count, b = t % count, m = x_degrees.data()[t], n = y_degrees.data()[t];
    pair.f.load(pointer(x, i, b), x.stride(2), m);
    pair.g.load(pointer(y, i, b), y.stride(2), n);
    if (length == 0) {
      resultants.data()[t] = resultant(pair, m, n, moduli[i]);
      continue;
    }
    while (pair.g.degree >= 0) pair.step(moduli[i]);
    u64* divisor = divisors.data() + t * length;
    std::fill_n(divisor, length, u64{0});
    if (pair.f.degree < 0) continue;
    const u64 inverse = prime_inverse(pair.f.leading(), moduli[i].last);
    for (i64 k = 0; k <= pair.f.degree; ++k) divisor[k] = mod_mul(pair.f.data()[k], inverse, moduli[i]);
  }
}

// Euclid's algorithm on two polynomials, the first of the greater degree, until the second's is below
// `least`. They are replaced by these two, whose degrees are returned with the number of divisions.
// `matrix`, (2, 2, length), takes the first ones to these; it is not found if its length is 0. `leading` is
// given the divisors' leading coefficients, and `degrees` their degrees.
std::tuple<i64, i64, i64> half_gcd(MutableMatrix64 polynomials, i64 least, const Table64& table,
                                   MutablePolynomials matrix, MutableVector64 leading,
                                   MutableVectorI64 degrees) {
  const WideModulus m = *wide_moduli(table, 1);
  const i64 length = static_cast<i64>(polynomials.shape(1)), columns = static_cast<i64>(matrix.shape(2));
  require(polynomials.shape(0) == 2 && matrix.shape(0) == 2 && matrix.shape(1) == 2 && 0 <= least &&
              least < length && (columns == 0 || columns > length - least),
          "the results do not have the shapes of the polynomials");
  require(static_cast<i64>(leading.size()) > length - least && leading.size() == degrees.size(),
          "there is no room for the degrees");
  nb::gil_scoped_release release;
  Remainders pair(length);
  pair.f.load(polynomials.data(), 1, length - 1);
  pair.g.load(polynomials.data() + length, 1, length - 1);
  require(pair.f.degree > pair.g.degree, "the first polynomial is to have the greater degree");
  // Rows for f and g of the columns of the matrix.
  std::vector<Polynomial> of_f(2, Polynomial(columns)), of_g(2, Polynomial(columns));
  const bool is_wanted = columns > 0;
  if (is_wanted) {
    of_f[0].data()[0] = of_g[1].data()[0] = 1;
    of_f[0].degree = of_g[1].degree = 0;
  }
  i64 steps = 0;
  for (; pair.g.degree >= least; ++steps) {
    leading.data()[steps] = pair.g.leading();
    degrees.data()[steps] = pair.g.degree;
    pair.step(m);
    for (i64 k = 0; is_wanted && k < 2; ++k) of_f[k].subtract_product(pair.quotient, of_g[k], m);
    std::swap(of_f, of_g);
  }
  std::copy_n(pair.f.data(), length, polynomials.data());
  std::copy_n(pair.g.data(), length, polynomials.data() + length);
  for (i64 k = 0; k < 2; ++k) {
    std::copy_n(of_f[k].data(), columns, matrix.data() + k * columns);
    std::copy_n(of_g[k].data(), columns, matrix.data() + (2 + k) * columns);
  }
  return {pair.f.degree, pair.g.degree, steps};
}

}  // namespace

void bind_wide_polynomials(nb::module_& module) {
  module.def("wide_divide_polynomials", divide_polynomials);
  module.def("wide_remainder_sequences", remainder_sequences);
  module.def("wide_half_gcd", half_gcd);
}

}  // namespace rns
