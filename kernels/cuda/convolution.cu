// Convolution modulo m_i, one number a thread: sums of products for short operands, and what goes before and
// after transforms modulo three primes.
#include <rns/product_sum.cuh>
#include <rns/three_primes.cuh>

#include "grid.cuh"

using namespace rns;

namespace {

// Number k of run b modulo m_i is data[i * plane + b * step + k]; step is 0 where all runs are one.
struct Runs {
  const u32* data;
  i64 plane;
  i64 step;
  i64 length;

  __device__ const u32* run(i64 i, i64 b) const { return data + i * plane + b * step; }
};

// out is (rows, runs, count), contiguous: the numbers from `first` on.
struct Convolution {
  Runs x;
  Runs y;
  u32* out;
  const Modulus* moduli;
  i64 rows;
  i64 runs;
  i64 first;
  i64 count;
};

// The sum of x[k - t] y[t], for t from `begin` to `end`.
template <class Sum>
__device__ u32 sum_of_products(const u32* x, const u32* y, i64 k, i64 begin, i64 end, Modulus m) {
  u32 result = 0;
  for (i64 t = begin; t < end;) {
    const i64 stop = t + kProductTerms < end ? t + kProductTerms : end;
    Sum sum;
    for (; t < stop; ++t) sum.add(__ldg(x + k - t), __ldg(y + t));
    result = mod_add(result, sum.reduce(m), m.last);
  }
  return result;
}

}  // namespace

extern "C" {

__global__ void convolve(Convolution c) {
  for (i64 j = thread_index(); j < c.rows * c.runs * c.count; j += thread_count()) {
    const i64 k = c.first + j % c.count, b = j / c.count % c.runs, i = j / (c.count * c.runs);
    const i64 begin = k < c.x.length ? 0 : k - c.x.length + 1;
    const i64 end = k < c.y.length ? k + 1 : c.y.length;
    const u32 *x = c.x.run(i, b), *y = c.y.run(i, b);
    const Modulus m = c.moduli[i];
    c.out[j] = products_fit_word(m.last) ? sum_of_products<NarrowSum>(x, y, k, begin, end, m)
                                         : sum_of_products<ProductSum>(x, y, k, begin, end, m);
  }
}

// out is (primes, rows * runs, padded).
__global__ void padded_residues(Runs x, i64 rows, i64 runs, const Modulus* primes, i64 prime_count,
                                i64 padded, u32* out) {
  const i64 size = rows * runs * padded;
  for (i64 j = thread_index(); j < prime_count * size; j += thread_count()) {
    const i64 k = j % padded, r = j / padded % (rows * runs);
    out[j] = k < x.length ? mod_reduce(x.run(r / runs, r % runs)[k], primes[j / size]) : 0u;
  }
}

// x is (3, rows * count), out (rows, count).
__global__ void three_prime_remainders(const u32* x, ThreePrimes primes, const PrimeWeights* weights,
                                       i64 rows, i64 count, u32* out) {
  const i64 size = rows * count;
  for (i64 j = thread_index(); j < size; j += thread_count()) {
    out[j] = three_prime_remainder(x[j], x[size + j], x[2 * size + j], primes, weights[j / count]);
  }
}

}  // extern "C"
