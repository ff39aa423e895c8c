// Polynomials modulo primes: resultants, greatest common divisors, and division. Pairs of short polynomials
// have a thread each, others a block, and a division always a block.
#include <rns/remainder_sequence.cuh>

#include "grid.cuh"

using namespace rns;

namespace {

// Coefficient k of polynomial b modulo m_i is data[i * plane + b * run + k * step].
struct Coefficients {
  const u32* data;
  i64 plane;
  i64 run;
  i64 step;
  i64 length;

  __device__ const u32* of(i64 i, i64 b) const { return data + i * plane + b * run; }
};

// Results are (n, count) and, unless it is of length 0, (n, count, divisor_length), contiguous. `space`,
// unless it is shared, is memory for the coefficients of the pairs that are computed at a time.
struct Sequences {
  Coefficients x;
  Coefficients y;
  const i32* x_degrees;
  const i32* y_degrees;
  const Modulus* moduli;
  u32* numerators;
  u32* denominators;
  u32* divisors;
  u32* space;
  i64 moduli_count;
  i64 count;
  i64 divisor_length;
  i64 is_shared;
};

// Quotients and remainders are (n, count, length of x), contiguous.
struct Divisions {
  Coefficients x;
  Coefficients y;
  const i32* y_degrees;
  const Modulus* moduli;
  u32* quotients;
  u32* remainders;
  i64 moduli_count;
  i64 count;
};

// Who computes a pair: one thread, or the threads of a block.
template <bool kIsBlock>
struct Team {
  __device__ i64 rank() const { return kIsBlock ? static_cast<i64>(threadIdx.x) : 0; }
  __device__ i64 size() const { return kIsBlock ? static_cast<i64>(blockDim.x) : 1; }
  __device__ void wait() const {
    if (kIsBlock) __syncthreads();
  }
};

// Takes from f, of degree m, its multiples of g, of degree n, until it has degree n - 1; coefficients are
// `stride` and `step` apart. The factors go to `quotient`, if there is one.
template <class Team>
__device__ void reduce_by(Team team, u32* f, i64 m, i64 stride, const u32* g, i64 n, i64 step,
                          Modulus modulus, u32* quotient) {
  const u32 inverse = prime_inverse(g[n * step], modulus.last);
  for (i64 k = m; k >= n; --k) {
    team.wait();
    const u32 factor = mod_mul(f[k * stride], inverse, modulus);
    const u32 negative = mod_sub(0u, factor, modulus.last);
    if (quotient != nullptr && team.rank() == 0) quotient[k - n] = factor;
    for (i64 j = team.rank(); j < n; j += team.size()) {
      u32& word = f[(k - n + j) * stride];
      word = mod_fma(negative, g[j * step], word, modulus);
    }
  }
}

// A pair as remainder_sequence asks for it. Every thread of a team has all numbers but the coefficients,
// which are `stride` apart in memory that only the team has.
template <class Team>
class Pair {
 public:
  i64 m, n;
  bool is_negative;

  __device__ Pair(Team team, u32* first, u32* second, i64 stride, i64 x_degree, i64 y_degree, Modulus modulus)
      : m(x_degree < y_degree ? y_degree : x_degree),
        n(x_degree < y_degree ? x_degree : y_degree),
        is_negative(x_degree < y_degree && (x_degree & y_degree & 1)),
        team_(team),
        f_(x_degree < y_degree ? second : first),
        g_(x_degree < y_degree ? first : second),
        stride_(stride),
        modulus_(modulus) {}

  // Waits for what others of the team have written.
  __device__ Leading leading() const {
    team_.wait();
    return g(n) == 0 ? Leading::kZero : Leading::kNonzero;
  }
  __device__ void scale() { multiply(numerator_, f(m)); }
  __device__ void lower() {
    if (--n > 0) multiply(denominator_, weight_);
  }
  __device__ void divide_once() {
    const u32 a = g(n), b = f(m);
    for (i64 k = team_.rank(); k < n; k += team_.size()) f(k) = mod_mulsub(a, f(k), b, g(k), modulus_);
    multiply(weight_, a);
  }
  __device__ void divide_twice() {
    const DivisionFactors c = division_factors(f(m), f(m - 1), g(n), g(n - 1), modulus_);
    const bool narrow = is_narrow(modulus_.last);
    for (i64 k = team_.rank(); k < n; k += team_.size()) {
      const u32 below = k > 0 ? g(k - 1) : 0u;
      f(k) = narrow ? combined_narrow(c.scale, f(k), c.linear, below, c.constant, g(k), modulus_)
                    : combined_wide(c.scale, f(k), c.linear, below, c.constant, g(k), modulus_);
    }
    multiply(weight_, c.scale);
  }
  __device__ void divide() {
    multiply(numerator_, mod_pow(g(n), m - n + 1, modulus_));
    reduce_by(team_, f_, m, stride_, g_, n, stride_, modulus_, nullptr);
  }
  __device__ void exchange() {
    u32* const former = f_;
    f_ = g_;
    g_ = former;
    m = n;
  }
  __device__ void finish() {
    multiply(numerator_, mod_pow(g(0), m, modulus_));
    is_coprime_ = true;
  }
  __device__ void clear() { numerator_ = 0; }

  __device__ u32 numerator() const {
    return is_negative && numerator_ != 0 ? modulus_.last - numerator_ + 1u : numerator_;
  }
  __device__ u32 denominator() const { return denominator_; }

  // The greatest common divisor, with the leading coefficient 1.
  __device__ void store_divisor(u32* out, i64 length) const {
    const i64 degree = is_coprime_ ? 0 : m;
    const u32 inverse = is_coprime_ ? 0u : prime_inverse(f(m), modulus_.last);
    for (i64 k = team_.rank(); k < length; k += team_.size()) {
      out[k] = k > degree ? 0u : is_coprime_ ? 1u : mod_mul(f(k), inverse, modulus_);
    }
  }

 private:
  __device__ u32& f(i64 k) const { return f_[k * stride_]; }
  __device__ u32& g(i64 k) const { return g_[k * stride_]; }
  __device__ void multiply(u32& x, u32 y) const { x = mod_mul(x, y, modulus_); }

  Team team_;
  u32* f_;
  u32* g_;
  i64 stride_;
  Modulus modulus_;
  u32 numerator_ = 1, denominator_ = 1, weight_ = 1;
  bool is_coprime_ = false;
};

template <class Team>
__device__ void load(Team team, const Coefficients& from, i64 i, i64 b, i64 degree, i64 stride, u32* to) {
  const u32* data = from.of(i, b);
  for (i64 k = team.rank(); k <= degree; k += team.size()) to[k * stride] = data[k * from.step];
}

// Pair t; `memory` is the team's, for the coefficients of both.
template <class Team>
__device__ void compute_pair(const Sequences& s, i64 t, Team team, u32* memory, i64 stride) {
  const i64 i = t / s.count, b = t % s.count;
  const i64 x_degree = s.x_degrees[t], y_degree = s.y_degrees[t];
  u32* second = memory + s.x.length * stride;
  load(team, s.x, i, b, x_degree, stride, memory);
  load(team, s.y, i, b, y_degree, stride, second);
  Pair<Team> pair(team, memory, second, stride, x_degree, y_degree, s.moduli[i]);
  const bool is_zero = pair.n < 0;
  if (is_zero) {
    pair.clear();  // the greatest common divisor is the other one
    team.wait();
  } else {
    remainder_sequence(pair);
  }
  if (team.rank() == 0) {
    s.numerators[t] = pair.numerator();
    s.denominators[t] = pair.denominator();
  }
  if (s.divisor_length == 0) return;
  u32* out = s.divisors + t * s.divisor_length;
  if (pair.m >= 0) {
    pair.store_divisor(out, s.divisor_length);
  } else {
    for (i64 k = team.rank(); k < s.divisor_length; k += team.size()) out[k] = 0;
  }
}

extern __shared__ u32 shared_words[];

}  // namespace

extern "C" {

__global__ void __launch_bounds__(128) sequences_by_threads(Sequences s) {
  u32* memory = s.is_shared ? shared_words + threadIdx.x : s.space + thread_index();
  const i64 stride = s.is_shared ? blockDim.x : thread_count();
  for (i64 t = thread_index(); t < s.moduli_count * s.count; t += thread_count()) {
    compute_pair(s, t, Team<false>(), memory, stride);
  }
}

__global__ void __launch_bounds__(256) sequences_by_blocks(Sequences s) {
  u32* memory = s.is_shared ? shared_words : s.space + blockIdx.x * (s.x.length + s.y.length);
  for (i64 t = blockIdx.x; t < s.moduli_count * s.count; t += gridDim.x) {
    compute_pair(s, t, Team<true>(), memory, 1);
    __syncthreads();  // before the memory is another pair's
  }
}

__global__ void __launch_bounds__(256) divide_polynomials(Divisions d) {
  const Team<true> team;
  for (i64 t = blockIdx.x; t < d.moduli_count * d.count; t += gridDim.x) {
    const i64 i = t / d.count, b = t % d.count, length = d.x.length, n = d.y_degrees[t];
    u32 *quotient = d.quotients + t * length, *remainder = d.remainders + t * length;
    load(team, d.x, i, b, length - 1, 1, remainder);
    for (i64 k = threadIdx.x; k < length; k += blockDim.x) {
      if (k > length - 1 - n) quotient[k] = 0;
    }
    // The divisor is read where it is.
    reduce_by(team, remainder, length - 1, 1, d.y.of(i, b), n, d.y.step, d.moduli[i], quotient);
    __syncthreads();
    for (i64 k = n + threadIdx.x; k < length; k += blockDim.x) remainder[k] = 0;
  }
}

}  // extern "C"
