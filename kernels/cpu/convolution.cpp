// Convolution modulo m_i: sums of products for short operands, and what goes before and after transforms
// modulo three primes.
#include <algorithm>
#include <vector>

#include "bindings.hpp"
#include "rns/product_sum.cuh"
#include "rns/three_primes.cuh"

namespace rns {

namespace {

using Runs = nb::ndarray<const u32, nb::ndim<3>, nb::device::cpu>;
using MutableRuns = Written<u32, nb::ndim<3>, nb::c_contig>;

const u32* run(const Runs& array, i64 i, i64 b) {
  return array.data() + i * array.stride(0) + b * array.stride(1);
}

void require_runs(const Runs& array) {
  require(array.shape(2) <= 1 || array.stride(2) == 1, "the numbers of a run must be contiguous");
}

// ---- sums of products -------------------------------------------------------------------------------------

// Numbers that are summed side by side, and terms at a time.
constexpr i64 kWidth = 128;
constexpr i64 kUnrolled = 4;
constexpr i64 kLanes = 16;

// Adds the products of `terms` words of y, a multiple of kUnrolled, to `width` sums: number k has x[k - t]
// y[t].
RNS_VECTORISED void add_narrow(const u32* x, const u32* y, i64 terms, i64 width, u64* __restrict__ sum) {
  for (i64 t = 0; t < terms; t += kUnrolled) {
    const u64 y0 = y[t], y1 = y[t + 1], y2 = y[t + 2], y3 = y[t + 3];
    const u32* from = x - t;
    for (i64 k = 0; k < width; ++k) {
      sum[k] += y0 * from[k] + y1 * from[k - 1] + y2 * from[k - 2] + y3 * from[k - 3];
    }
  }
}

// The same with the sums of the products' upper halves besides.
RNS_VECTORISED void add_wide(const u32* x, const u32* y, i64 terms, i64 width, u64* __restrict__ sum,
                             u64* __restrict__ upper) {
  for (i64 t = 0; t < terms; t += kUnrolled) {
    const u64 y0 = y[t], y1 = y[t + 1], y2 = y[t + 2], y3 = y[t + 3];
    const u32* from = x - t;
    for (i64 k = 0; k < width; ++k) {
      const u64 p0 = y0 * from[k], p1 = y1 * from[k - 1], p2 = y2 * from[k - 2], p3 = y3 * from[k - 3];
      sum[k] += p0 + p1 + p2 + p3;
      upper[k] += (p0 >> 32) + (p1 >> 32) + (p2 >> 32) + (p3 >> 32);
    }
  }
}

RNS_VECTORISED void add_reduced(const u64* sum, const u64* upper, bool narrow, Modulus m, i64 width,
                                u32* __restrict__ out) {
  for (i64 k = 0; k < width; ++k) {
    const u32 x = narrow ? mod_reduce_word(sum[k], m) : ProductSum{sum[k], upper[k]}.reduce(m);
    out[k] = mod_add(out[k], x, m.last);
  }
}

// Numbers `first` to `first + count` of the convolution of x and y. `part` holds words of x with zeros
// around.
void convolve_run(const u32* x, i64 x_length, const u32* y, i64 y_length, Modulus m, i64 first, i64 count,
                  u32* part, u32* out) {
  alignas(64) u64 sum[kWidth], upper[kWidth];
  u32 factors[kProductTerms];
  const bool narrow = products_fit_word(m.last);
  std::fill_n(out, count, 0u);
  for (i64 start = 0; start < count; start += kWidth) {
    const i64 width = std::min(kWidth, count - start);
    const i64 padded = (width + kLanes - 1) / kLanes * kLanes;
    for (i64 t = 0; t < y_length; t += kProductTerms) {
      const i64 terms = std::min<i64>(kProductTerms, y_length - t);
      const i64 depth = (terms + kUnrolled - 1) / kUnrolled * kUnrolled;
      std::copy_n(y + t, terms, factors);
      std::fill_n(factors + terms, depth - terms, 0u);
      // Words of x from `low` on: part[depth + k] is that of term t and number start + k.
      const i64 low = first + start - t - depth, size = depth + padded;
      const i64 begin = std::clamp<i64>(-low, 0, size), end = std::clamp<i64>(x_length - low, begin, size);
      std::fill_n(part, begin, 0u);
      std::copy_n(x + low + begin, end - begin, part + begin);
      std::fill_n(part + end, size - end, 0u);
      std::fill_n(sum, padded, 0);
      if (narrow) {
        add_narrow(part + depth, factors, depth, padded, sum);
      } else {
        std::fill_n(upper, padded, 0);
        add_wide(part + depth, factors, depth, padded, sum, upper);
      }
      add_reduced(sum, upper, narrow, m, width, out + start);
    }
  }
}

void convolve(const Runs& x, const Runs& y, const Modulus* moduli, i64 first, const MutableRuns& out) {
  const i64 n = static_cast<i64>(out.shape(0)), runs = static_cast<i64>(out.shape(1)),
            count = static_cast<i64>(out.shape(2));
  std::vector<u32> part(kProductTerms + kWidth);
  for (i64 i = 0; i < n; ++i) {
    for (i64 b = 0; b < runs; ++b) {
      convolve_run(run(x, i, b), static_cast<i64>(x.shape(2)), run(y, i, b), static_cast<i64>(y.shape(2)),
                   moduli[i], first, count, part.data(), out.data() + (i * runs + b) * count);
    }
  }
}

// ---- three primes -----------------------------------------------------------------------------------------

RNS_VECTORISED void reduce_run(const u32* x, i64 count, Modulus p, u32* __restrict__ out) {
  for (i64 k = 0; k < count; ++k) out[k] = mod_reduce(x[k], p);
}

RNS_VECTORISED void remainders(const u32* x0, const u32* x1, const u32* x2, i64 count, ThreePrimes p,
                               PrimeWeights w, u32* __restrict__ out) {
  for (i64 k = 0; k < count; ++k) out[k] = three_prime_remainder(x0[k], x1[k], x2[k], p, w);
}

}  // namespace

void bind_convolution(nb::module_& module) {
  module.def("convolve", [](const Runs& x, const Runs& y, const Table32& moduli, i64 first, MutableRuns out) {
    require(moduli.shape(0) == out.shape(0) && moduli.shape(1) == 4, "one modulus for each row is needed");
    for (const Runs* operand : {&x, &y}) {
      require(operand->shape(0) == out.shape(0) && operand->shape(1) == out.shape(1),
              "operands and result must have the same rows and runs");
      require_runs(*operand);
    }
    require(first >= 0, "the first number must not be before the convolution");
    nb::gil_scoped_release release;
    convolve(x, y, reinterpret_cast<const Modulus*>(moduli.data()), first, out);
  });
  module.def("padded_residues", [](const Runs& x, const Table32& primes, MutableRuns out) {
    const i64 n = static_cast<i64>(x.shape(0)), runs = static_cast<i64>(x.shape(1)),
              length = static_cast<i64>(x.shape(2)), padded = static_cast<i64>(out.shape(2));
    require(primes.shape(0) == out.shape(0) && primes.shape(1) == 4 &&
                out.shape(1) == x.shape(0) * x.shape(1) && length <= padded,
            "the result must have a row for each prime, and in it all runs of the operand");
    require_runs(x);
    const auto* table = reinterpret_cast<const Modulus*>(primes.data());
    nb::gil_scoped_release release;
    for (i64 p = 0; p < static_cast<i64>(out.shape(0)); ++p) {
      for (i64 r = 0; r < n * runs; ++r) {
        u32* to = out.data() + (p * n * runs + r) * padded;
        reduce_run(run(x, r / runs, r % runs), length, table[p], to);
        std::fill_n(to + length, padded - length, 0u);
      }
    }
  });
  module.def("three_prime_remainders", [](const Table32& x, const Vector32& primes, const Table32& weights,
                                          MutableMatrix32 out) {
    const i64 n = static_cast<i64>(out.shape(0)), count = static_cast<i64>(out.shape(1));
    require(x.shape(0) == 3 && x.shape(1) == out.shape(0) * out.shape(1) && primes.shape(0) == 9 &&
                weights.shape(0) == out.shape(0) && weights.shape(1) == 6,
            "residues modulo three primes of all numbers of the result, and weights for each row are needed");
    const auto& p = *reinterpret_cast<const ThreePrimes*>(primes.data());
    const auto* w = reinterpret_cast<const PrimeWeights*>(weights.data());
    nb::gil_scoped_release release;
    for (i64 i = 0; i < n; ++i) {
      const u32* row = x.data() + i * count;
      remainders(row, row + n * count, row + 2 * n * count, count, p, w[i], out.data() + i * count);
    }
  });
}

}  // namespace rns
