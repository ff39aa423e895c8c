// One number each of several matrices in step: inverses, and sums of products that are reduced once.
#include "lanes.hpp"

#include <algorithm>

namespace rns {

namespace {

// Sums that are added up at a time.
constexpr i64 kSums = 32;

struct alignas(64) Words {
  u64 of[kLanes];
};

// Rounds of Euclid's algorithm with the quotients that leave the least remainders: a and b become b and
// a - q b, s and t become t and s - q t, unless b is 0. Doubles hold all values: of inputs below 2^32, |t|
// stays below 2^34 (|a t - b s| is the first a, |s| <= |t|, and |b| is little more than |a| / 2 at most).
RNS_VECTORISED void euclid_rounds(double* __restrict__ a, double* __restrict__ b, double* __restrict__ s,
                                  double* __restrict__ t) {
  constexpr double kInteger = 0x1.8p52;  // added and taken off, it rounds to an integer
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    for (i64 k = 0; k < kLanes; ++k) {
      const double x = a[k], y = b[k], u = s[k], v = t[k];
      const bool done = y == 0.0;
      const double quotient = (x / (done ? 1.0 : y) + kInteger) - kInteger;
      const double rest = x - quotient * y, factor = u - quotient * v;
      a[k] = done ? x : y;
      b[k] = done ? y : rest;
      s[k] = done ? u : v;
      t[k] = done ? v : factor;
    }
  }
}

// |s / a| modulo p, for a = 1 or -1, where |s| is at most |t| = p in the end; or s = 0.
RNS_VECTORISED void to_residues(const double* __restrict__ a, const double* __restrict__ s,
                                const u32* __restrict__ last, u32* __restrict__ values) {
  for (i64 k = 0; k < kLanes; ++k) {
    const double inverse = a[k] < 0.0 ? -s[k] : s[k];
    const double residue = inverse < 0.0 ? inverse + (static_cast<double>(last[k]) + 1.0) : inverse;
    values[k] = static_cast<u32>(static_cast<i64>(residue));
  }
}

// Adds kTerms products modulo p < 2^31, where `most` is R p: sums stay below it, for two products are less
// than it too.
template <i64 kTerms>
RNS_INLINE void add_narrow(const Vector* __restrict__ factors, Terms x, i64 count, const Words& most,
                           Words* __restrict__ sums) {
  for (i64 q = 0; q < count; ++q) {
    const Vector* __restrict__ y = x.data + q * x.step;
    for (i64 lane = 0; lane < kLanes; ++lane) {
      u64 sum = sums[q].of[lane];
      for (i64 m = 0; m < kTerms; ++m) {
        sum += static_cast<u64>(factors[m].of[lane]) * y[m * x.term_step].of[lane];
        if (m % 2 == 1 || m + 1 == kTerms) sum = std::min(sum, sum - most.of[lane]);
      }
      sums[q].of[lane] = sum;
    }
  }
}

RNS_VECTORISED void add_all_narrow(const Vector* factors, Terms x, i64 terms, i64 count, const Words& most,
                                   Words* sums) {
  constexpr i64 kUnrolled = 4;
  i64 m = 0;
  for (; m + kUnrolled <= terms; m += kUnrolled, x.data += kUnrolled * x.term_step) {
    add_narrow<kUnrolled>(factors + m, x, count, most, sums);
  }
  for (; m < terms; ++m, x.data += x.term_step) add_narrow<1>(factors + m, x, count, most, sums);
}

// The same modulo any p.
RNS_VECTORISED void add_all_wide(const Vector* __restrict__ factors, Terms x, i64 terms, i64 count,
                                 const Words& most, Words* __restrict__ sums) {
  for (i64 m = 0; m < terms; ++m) {
    const Vector factor = factors[m];
    for (i64 q = 0; q < count; ++q) {
      const Vector* __restrict__ y = x.data + m * x.term_step + q * x.step;
      for (i64 lane = 0; lane < kLanes; ++lane) {
        const u64 room = most.of[lane] - static_cast<u64>(factor.of[lane]) * y->of[lane];
        const u64 sum = sums[q].of[lane];
        sums[q].of[lane] = sum >= room ? sum - room : sum + (most.of[lane] - room);
      }
    }
  }
}

RNS_VECTORISED void subtract_reduced(const Words* __restrict__ sums, i64 count, const Primes& primes,
                                     Vector* __restrict__ out, i64 out_step) {
  for (i64 q = 0; q < count; ++q) {
    u32* __restrict__ x = out[q * out_step].of;
    for (i64 lane = 0; lane < kLanes; ++lane) {
      x[lane] = mod_sub(x[lane], montgomery_reduce(sums[q].of[lane], primes.at(lane)), primes.last.of[lane]);
    }
  }
}

}  // namespace

void Primes::set(i64 lane, Montgomery prime) {
  m.of[lane] = prime.m;
  inverse.of[lane] = prime.inverse;
  square.of[lane] = montgomery_mul(prime.cube, 1u, prime);
  cube.of[lane] = prime.cube;
  last.of[lane] = prime.m - 1u;
}

void Group::load(i64 rows, i64 columns, i64 stride, Vector* out) const {
  for (i64 i = 0; i < rows; ++i) {
    for (i64 j = 0; j < columns; ++j) {
      const i64 place = i * row_step + j * column_step;
      for (i64 lane = 0; lane < kLanes; ++lane) out[i * stride + j].of[lane] = data[lane][place];
    }
  }
}

Group group_of(const Stack& x, i64 first, const std::vector<Montgomery>& moduli, Primes& primes) {
  const i64 count = static_cast<i64>(x.shape(1)), total = static_cast<i64>(x.shape(0)) * count;
  Group group{{}, x.stride(2), x.stride(3)};
  for (i64 lane = 0; lane < kLanes; ++lane) {
    const i64 place = std::min(first + lane, total - 1), i = place / count;
    group.data[lane] = x.data() + i * x.stride(0) + place % count * x.stride(1);
    primes.set(lane, moduli[i]);
  }
  return group;
}

std::vector<Montgomery> odd_moduli(const Table32& table, i64 rows) {
  require(static_cast<i64>(table.shape(0)) == rows && table.shape(1) == 4,
          "one modulus for each row is needed");
  std::vector<Montgomery> moduli;
  for (i64 i = 0; i < rows; ++i) {
    const Modulus m = reinterpret_cast<const Modulus*>(table.data())[i];
    require(m.last % 2 == 0, "the moduli must be odd");
    moduli.push_back(montgomery_of(m));
  }
  return moduli;
}

void invert_together(u32* values, const u32* last) {
  alignas(64) double a[kLanes], b[kLanes], s[kLanes], t[kLanes];
  for (i64 k = 0; k < kLanes; ++k) {
    a[k] = static_cast<double>(last[k]) + 1.0;
    b[k] = static_cast<double>(values[k]);
    s[k] = 0.0;
    t[k] = 1.0;
  }
  while (std::any_of(b, b + kLanes, [](double x) { return x != 0.0; })) euclid_rounds(a, b, s, t);
  to_residues(a, s, last, values);
}

RNS_VECTORISED void multiply(const Vector& a, const Vector& b, const Primes& primes, Vector& out) {
  Vector product;
  for (i64 lane = 0; lane < kLanes; ++lane) {
    product.of[lane] = montgomery_mul(a.of[lane], b.of[lane], primes.at(lane));
  }
  out = product;
}

void subtract_sums(const Vector* factors, Terms x, i64 terms, i64 count, const Primes& primes, Vector* out,
                   i64 out_step) {
  Words most, sums[kSums];
  bool all_narrow = true;
  for (i64 lane = 0; lane < kLanes; ++lane) {
    most.of[lane] = static_cast<u64>(primes.m.of[lane]) << 32;
    all_narrow &= is_narrow(primes.last.of[lane]);
  }
  const auto add = all_narrow ? add_all_narrow : add_all_wide;
  for (i64 q = 0; q < count; q += kSums) {
    const i64 here = std::min(kSums, count - q);
    std::fill_n(sums, here, Words{});
    add(factors, {x.data + q * x.step, x.term_step, x.step}, terms, here, most, sums);
    subtract_reduced(sums, here, primes, out + q * out_step, out_step);
  }
}

}  // namespace rns
