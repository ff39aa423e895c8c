// Polynomials modulo primes: resultants, greatest common divisors, and division. Vectors are of coefficients
// of 16 pairs of polynomials with the same degrees, or of one after another of a single pair.
#include <algorithm>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "rns/remainder_sequence.cuh"

namespace rns {

namespace {

using Polynomials = nb::ndarray<const u32, nb::ndim<3>, nb::device::cpu>;
using MutablePolynomials = Written<u32, nb::ndim<3>, nb::c_contig>;
using Degrees = nb::ndarray<const i32, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

constexpr i64 kLanes = 16;

// Pairs from which on they are computed side by side, and coefficients of a pair up to which: those of all
// lie in the first-level cache, or nearly.
constexpr i64 kFewPairs = 4;
constexpr i64 kMostCoefficients = 1000;

struct Lanes {
  u32 word[kLanes];
};

struct LaneModuli {
  Lanes last, divisor, reciprocal, shift;

  RNS_INLINE Modulus at(i64 l) const {
    return {last.word[l], divisor.word[l], reciprocal.word[l], shift.word[l]};
  }
  void set(i64 l, const Modulus& m) {
    last.word[l] = m.last;
    divisor.word[l] = m.divisor;
    reciprocal.word[l] = m.reciprocal;
    shift.word[l] = m.shift;
  }
};

// Loops over words [0, count) in whole vectors, each word of which has its own factors and modulus.

RNS_VECTORISED void combine_two(u32* __restrict__ f, const u32* __restrict__ g, i64 count, const Lanes& a,
                                const Lanes& b, const LaneModuli& m) {
  for (i64 j = 0; j < count; j += kLanes) {
    for (i64 l = 0; l < kLanes; ++l) {
      f[j + l] = mod_mulsub(a.word[l], f[j + l], b.word[l], g[j + l], m.at(l));
    }
  }
}

RNS_VECTORISED void combine_narrow(u32* __restrict__ f, const u32* __restrict__ g, i64 back, i64 count,
                                   const Lanes& a, const Lanes& b, const Lanes& c, const LaneModuli& m) {
  for (i64 j = 0; j < count; j += kLanes) {
    for (i64 l = 0; l < kLanes; ++l) {
      const i64 k = j + l;
      f[k] = combined_narrow(a.word[l], f[k], b.word[l], g[k - back], c.word[l], g[k], m.at(l));
    }
  }
}

RNS_VECTORISED void combine_wide(u32* __restrict__ f, const u32* __restrict__ g, i64 back, i64 count,
                                 const Lanes& a, const Lanes& b, const Lanes& c, const LaneModuli& m) {
  for (i64 j = 0; j < count; j += kLanes) {
    for (i64 l = 0; l < kLanes; ++l) {
      const i64 k = j + l;
      f[k] = combined_wide(a.word[l], f[k], b.word[l], g[k - back], c.word[l], g[k], m.at(l));
    }
  }
}

RNS_VECTORISED void add_multiples(u32* __restrict__ f, const u32* __restrict__ g, i64 count, const Lanes& c,
                                  const LaneModuli& m) {
  for (i64 j = 0; j < count; j += kLanes) {
    for (i64 l = 0; l < kLanes; ++l) f[j + l] = mod_fma(c.word[l], g[j + l], f[j + l], m.at(l));
  }
}

RNS_VECTORISED void multiply(Lanes& x, const Lanes& y, const LaneModuli& m) {
  for (i64 l = 0; l < kLanes; ++l) x.word[l] = mod_mul(x.word[l], y.word[l], m.at(l));
}

// The three factors of a division, and the weight times the first.
RNS_VECTORISED void find_factors(const Lanes& f_top, const Lanes& f_next, const Lanes& g_top,
                                 const Lanes& g_next, const LaneModuli& m, Lanes& a, Lanes& b, Lanes& c,
                                 Lanes& weight) {
  for (i64 l = 0; l < kLanes; ++l) {
    const DivisionFactors found =
        division_factors(f_top.word[l], f_next.word[l], g_top.word[l], g_next.word[l], m.at(l));
    a.word[l] = found.scale;
    b.word[l] = found.linear;
    c.word[l] = found.constant;
    weight.word[l] = mod_mul(weight.word[l], found.scale, m.at(l));
  }
}

// A polynomial of each of kPairs pairs, coefficient k of pair l at word k kPairs + l. A vector of zeros is
// before it, and whole vectors reach beyond its end.
template <i64 kPairs>
class Coefficients {
 public:
  explicit Coefficients(i64 length) : words_((length + 2) * kPairs + 2 * kLanes) {}

  u32* data() { return words_.data() + kLanes; }
  u32* at(i64 k) { return data() + k * kPairs; }

  // Coefficient k of all pairs, or of the only one in all lanes.
  Lanes row(i64 k) {
    Lanes result;
    for (i64 l = 0; l < kLanes; ++l) result.word[l] = at(k)[kPairs == 1 ? 0 : l];
    return result;
  }

  void load(const u32* from, i64 step, i64 length, i64 l) {
    for (i64 k = 0; k < length; ++k) at(k)[l] = from[k * step];
  }

 private:
  std::vector<u32> words_;
};

// What a pair of polynomials is computed from, and where to.
struct Task {
  const u32* x;
  const u32* y;
  i64 x_step, y_step;
  i64 x_degree, y_degree;
  const Modulus* modulus;
  u32* numerator;
  u32* denominator;
  u32* divisor;  // the greatest common divisor's coefficients, of which there are
  i64 divisor_length;
};

// Pairs of polynomials with the same degrees, as remainder_sequence asks for them.
template <i64 kPairs>
class Pairs {
 public:
  i64 m = 0, n = 0;
  bool is_negative = false;

  Pairs(i64 x_length, i64 y_length) : f_(std::max(x_length, y_length)), g_(std::max(x_length, y_length)) {}

  // Takes `count` tasks; lanes that are left repeat the last one.
  void load(const Task* tasks, i64 count) {
    const bool is_swapped = tasks->x_degree < tasks->y_degree;
    m = std::max(tasks->x_degree, tasks->y_degree);
    n = std::min(tasks->x_degree, tasks->y_degree);
    is_negative = is_swapped && (m & n & 1);
    is_narrow_ = true;
    auto &first = is_swapped ? g_ : f_, &second = is_swapped ? f_ : g_;
    for (i64 l = 0; l < kLanes; ++l) {
      const Task& task = tasks[std::min(l, count - 1)];
      moduli_.set(l, *task.modulus);
      is_narrow_ = is_narrow_ && is_narrow(task.modulus->last);
      numerator_.word[l] = denominator_.word[l] = weight_.word[l] = 1;
      if (l >= kPairs) continue;
      first.load(task.x, task.x_step, task.x_degree + 1, l);
      second.load(task.y, task.y_step, task.y_degree + 1, l);
    }
  }

  void store(const Task* tasks, i64 count) {
    for (i64 l = 0; l < count; ++l) {
      const Task& task = tasks[l];
      const u32 value = numerator_.word[l], last = task.modulus->last;
      *task.numerator = is_negative && value != 0 ? last - value + 1u : value;
      *task.denominator = denominator_.word[l];
      if (task.divisor_length > 0) store_divisor(task, l);
    }
  }

  Leading leading() {
    const u32* words = g_.at(n);
    i64 zeros = 0;
    for (i64 l = 0; l < kPairs; ++l) zeros += words[l] == 0;
    return zeros == 0 ? Leading::kNonzero : zeros == kPairs ? Leading::kZero : Leading::kMixed;
  }
  void scale() { multiply(numerator_, f_.row(m), moduli_); }
  void lower() {
    if (--n > 0) multiply(denominator_, weight_, moduli_);
  }
  void divide_once() {
    const Lanes top = g_.row(n);
    combine_two(f_.data(), g_.data(), n * kPairs, top, f_.row(m), moduli_);
    multiply(weight_, top, moduli_);
  }
  void divide_twice() {
    Lanes a, b, c;
    find_factors(f_.row(m), f_.row(m - 1), g_.row(n), g_.row(n - 1), moduli_, a, b, c, weight_);
    const auto combine = is_narrow_ ? combine_narrow : combine_wide;
    combine(f_.data(), g_.data(), kPairs, n * kPairs, a, b, c, moduli_);
  }
  void divide() {
    Lanes inverses = g_.row(n);
    scale_by_power(inverses, m - n + 1);
    invert(inverses);
    for (i64 k = m; k >= n; --k) divide_step(k, inverses);
  }
  void exchange() {
    std::swap(f_, g_);
    m = n;
  }
  void finish() {
    scale_by_power(g_.row(0), m);
    m = 0;
    std::fill_n(f_.data(), kPairs, 1u);
  }
  void clear() { std::fill_n(numerator_.word, kLanes, 0u); }

  // Coefficients of the quotient of x by y go to `quotient`, those of the remainder to `remainder`.
  void divide_fully(const Task& task, i64 x_length, u32* quotient, u32* remainder) {
    m = x_length - 1;
    n = task.y_degree;
    for (i64 l = 0; l < kLanes; ++l) moduli_.set(l, *task.modulus);
    f_.load(task.x, task.x_step, x_length, 0);
    g_.load(task.y, task.y_step, n + 1, 0);
    Lanes inverses = g_.row(n);
    invert(inverses);
    std::fill_n(quotient, x_length, 0u);
    for (i64 k = m; k >= n; --k) quotient[k - n] = divide_step(k, inverses);
    std::copy_n(f_.data(), std::min(n, x_length), remainder);
    std::fill(remainder + std::min(n, x_length), remainder + x_length, 0u);
  }

 private:
  void scale_by_power(Lanes x, i64 exponent) {
    for (; exponent > 0; exponent >>= 1) {
      if (exponent & 1) multiply(numerator_, x, moduli_);
      multiply(x, x, moduli_);
    }
  }

  void invert(Lanes& x) {
    for (i64 l = 0; l < kLanes; ++l) {
      x.word[l] = kPairs == 1 && l > 0 ? x.word[0] : prime_inverse(x.word[l], moduli_.last.word[l]);
    }
  }

  // Takes the multiple of g from f that clears its coefficient k, which stays as it is; it is the first
  // one's.
  u32 divide_step(i64 k, const Lanes& inverses) {
    Lanes c = f_.row(k);
    multiply(c, inverses, moduli_);
    const u32 quotient = c.word[0];
    for (i64 l = 0; l < kLanes; ++l) c.word[l] = mod_sub(0u, c.word[l], moduli_.last.word[l]);
    add_multiples(f_.at(k - n), g_.data(), n * kPairs, c, moduli_);
    return quotient;
  }

  // The greatest common divisor is f, of degree m; its leading coefficient becomes 1.
  void store_divisor(const Task& task, i64 l) {
    const u32 inverse = prime_inverse(f_.at(m)[l], task.modulus->last);
    for (i64 k = 0; k < task.divisor_length; ++k) {
      task.divisor[k] = k <= m ? mod_mul(f_.at(k)[l], inverse, *task.modulus) : 0u;
    }
  }

  Coefficients<kPairs> f_, g_;
  LaneModuli moduli_;
  Lanes numerator_, denominator_, weight_;
  bool is_narrow_ = true;
};

// Of two polynomials of which one is 0: the greatest common divisor is the other.
void store_of_zero(const Task& task) {
  *task.numerator = 0;
  *task.denominator = 1;
  std::fill_n(task.divisor, task.divisor_length, 0u);
  const bool is_first = task.x_degree >= 0;
  const i64 degree = std::max(task.x_degree, task.y_degree), step = is_first ? task.x_step : task.y_step;
  const u32* from = is_first ? task.x : task.y;
  if (degree < 0 || task.divisor_length == 0) return;
  const u32 inverse = prime_inverse(from[degree * step], task.modulus->last);
  for (i64 k = 0; k <= degree; ++k) task.divisor[k] = mod_mul(from[k * step], inverse, *task.modulus);
}

i64 length_of(const Polynomials& array, i64 axis) { return static_cast<i64>(array.shape(axis)); }

const Modulus* checked(const Polynomials& x, const Polynomials& y, const Table32& moduli) {
  require(moduli.shape(0) == x.shape(0) && moduli.shape(1) == 4, "one modulus for each row is needed");
  require(x.shape(0) == y.shape(0) && x.shape(1) == y.shape(1), "there are as many divisors as polynomials");
  return reinterpret_cast<const Modulus*>(moduli.data());
}

const u32* pointer(const Polynomials& array, i64 i, i64 b) {
  return array.data() + i * array.stride(0) + b * array.stride(1);
}

bool all_within(const Degrees& degrees, i64 pairs, i64 length) {
  if (static_cast<i64>(degrees.size()) != pairs) return false;
  return std::all_of(degrees.data(), degrees.data() + pairs, [&](i32 d) { return d >= -1 && d < length; });
}

// Pairs of the same degrees, `found` of them.
void store_sequences(const Task* tasks, i64 found, Pairs<kLanes>& many, Pairs<1>& one) {
  if (std::min(tasks->x_degree, tasks->y_degree) < 0) {
    std::for_each(tasks, tasks + found, store_of_zero);
    return;
  }
  if (found >= kFewPairs && tasks->x_degree + tasks->y_degree < kMostCoefficients) {
    many.load(tasks, found);
    if (remainder_sequence(many)) {
      many.store(tasks, found);
      return;
    }
  }
  for (i64 l = 0; l < found; ++l) {
    one.load(tasks + l, 1);
    remainder_sequence(one);
    one.store(tasks + l, 1);
  }
}

void remainder_sequences(const Polynomials& x, const Polynomials& y, const Degrees& x_degrees,
                         const Degrees& y_degrees, const Table32& table, MutableMatrix32 numerators,
                         MutableMatrix32 denominators, MutablePolynomials divisors) {
  const Modulus* moduli = checked(x, y, table);
  const i64 count = length_of(x, 1), pairs = length_of(x, 0) * count;
  const i64 divisor_length = static_cast<i64>(divisors.shape(2));
  require(all_within(x_degrees, pairs, length_of(x, 2)) && all_within(y_degrees, pairs, length_of(y, 2)),
          "degrees must be those of the polynomials");
  require(static_cast<i64>(numerators.size()) == pairs && static_cast<i64>(denominators.size()) == pairs &&
              (divisor_length == 0 || (static_cast<i64>(divisors.size()) == pairs * divisor_length &&
                                       divisor_length >= std::max(length_of(x, 2), length_of(y, 2)))),
          "the results do not have the shapes of the polynomials");
  nb::gil_scoped_release release;
  Pairs<kLanes> many(length_of(x, 2), length_of(y, 2));
  Pairs<1> one(length_of(x, 2), length_of(y, 2));
  const auto task_of = [&](i64 t) {
    const i64 i = t / count, b = t % count;
    return Task{pointer(x, i, b),
                pointer(y, i, b),
                x.stride(2),
                y.stride(2),
                x_degrees.data()[t],
                y_degrees.data()[t],
                moduli + i,
                numerators.data() + t,
                denominators.data() + t,
                divisors.data() + t * divisor_length,
                divisor_length};
  };
  Task tasks[kLanes];
  for (i64 t = 0; t < pairs;) {
    i64 found = 0;
    for (; found < kLanes && t + found < pairs; ++found) {
      tasks[found] = task_of(t + found);
      if (tasks[found].x_degree != tasks->x_degree || tasks[found].y_degree != tasks->y_degree) break;
    }
    t += found;
    store_sequences(tasks, found, many, one);
  }
}

void divide_polynomials(const Polynomials& x, const Polynomials& y, const Degrees& degrees,
                        const Table32& table, MutablePolynomials quotients, MutablePolynomials remainders) {
  const Modulus* moduli = checked(x, y, table);
  const i64 count = length_of(x, 1), pairs = length_of(x, 0) * count, length = length_of(x, 2);
  require(all_within(degrees, pairs, length_of(y, 2)) &&
              static_cast<i64>(quotients.size()) == pairs * length &&
              static_cast<i64>(remainders.size()) == pairs * length,
          "the results do not have the shapes of the polynomials");
  require(std::all_of(degrees.data(), degrees.data() + pairs, [](i32 d) { return d >= 0; }),
          "a divisor is 0");
  nb::gil_scoped_release release;
  Pairs<1> one(length, length_of(y, 2));
  for (i64 t = 0; t < pairs; ++t) {
    const i64 i = t / count, b = t % count;
    Task task{};
    task.x = pointer(x, i, b);
    task.y = pointer(y, i, b);
    task.x_step = x.stride(2);
    task.y_step = y.stride(2);
    task.y_degree = degrees.data()[t];
    task.modulus = moduli + i;
    one.divide_fully(task, length, quotients.data() + t * length, remainders.data() + t * length);
  }
}

}  // namespace

void bind_polynomials(nb::module_& module) {
  module.def("remainder_sequences", remainder_sequences);
  module.def("divide_polynomials", divide_polynomials);
}

}  // namespace rns
