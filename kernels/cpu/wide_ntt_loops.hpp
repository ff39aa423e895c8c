// The loops of wide_ntt.cpp over fields F, which compute with F::kWidth words at a time, compiled once for
// each instruction set: wide_ntt.cpp includes this file in a namespace for each, where RNS_LEVEL says the
// set.

// |x w| of `count` words, by one factor.
template <class F>
RNS_LEVEL void multiply_all(const u64* x, i64 count, WideFactor w, const F& field, u64* out) {
  const auto factor = field.broadcast(w);
  for (i64 k = 0; k < count; k += F::kWidth) F::store(out + k, field.multiply(F::load(x + k), factor));
}

// Fills the factors of a transform of `length` words: those at half + k are of the power k of a root of order
// 2 half, for each power of two `half`. Powers double in number; quotients come from the inverse of p.
template <class F>
RNS_LEVEL void fill_factors(u64 root, i64 length, WideModulus m, const F& field, Factors factors) {
  const i64 most = length / 2, first = std::min(most, kLine);
  u64 *values = factors.values + most, *quotients = factors.quotients + most, power = 1;
  for (i64 k = 0; k < first; ++k, power = mod_mul(power, root, m)) values[k] = power;
  for (i64 count = first; count < most; count *= 2, power = mod_mul(power, power, m)) {
    multiply_all(values, count, wide_factor(power, m), field, values + count);
  }
  const auto scale = field.broadcast(wide_factor(F::scale(m), m));
  for (i64 k = 0; k < most; k += F::kWidth) {
    F::store(quotients + k, field.quotient(field.multiply(F::load(values + k), scale)));
  }
  for (i64 half = most / 2; half > 0; half /= 2) {
    for (i64 k = 0; k < half; ++k) {
      factors.values[half + k] = factors.values[2 * half + 2 * k];
      factors.quotients[half + k] = factors.quotients[2 * half + 2 * k];
    }
  }
}

// A level of a run of two halves.
template <class F>
RNS_LEVEL void level(const u64* from, u64* to, i64 half, Factors factors, const F& field) {
  for (i64 k = 0; k < half; k += F::kWidth) {
    auto a = F::load(from + k), b = F::load(from + half + k);
    field.butterfly(a, b, F::load(factors, half + k));
    F::store(to + k, a);
    F::store(to + half + k, b);
  }
}

// Two levels at once, of halves of two and of one quarter: words are read and written once.
template <class F>
RNS_LEVEL void two_levels(const u64* from, u64* to, i64 quarter, Factors factors, const F& field) {
  const u64 *from1 = from + quarter, *from2 = from1 + quarter, *from3 = from2 + quarter;
  u64 *to1 = to + quarter, *to2 = to1 + quarter, *to3 = to2 + quarter;
  for (i64 k = 0; k < quarter; k += F::kWidth) {
    auto a = F::load(from + k), b = F::load(from1 + k), c = F::load(from2 + k), d = F::load(from3 + k);
    field.butterfly(a, c, F::load(factors, 2 * quarter + k));
    field.butterfly(b, d, F::load(factors, 3 * quarter + k));
    const auto second = F::load(factors, quarter + k);
    field.butterfly(a, b, second);
    field.butterfly(c, d, second);
    F::store(to + k, a);
    F::store(to1 + k, b);
    F::store(to2 + k, c);
    F::store(to3 + k, d);
  }
}

// All levels but the last three, of runs of kLine words. Runs longer than a cache are quartered until they
// fit it.
template <class F>
RNS_LEVEL void long_levels(const u64* from, u64* to, i64 length, Factors factors, const F& field) {
  if (length > kCached) {
    const i64 quarter = length / 4;
    two_levels(from, to, quarter, factors, field);
    for (i64 start = 0; start < length; start += quarter) {
      long_levels(to + start, to + start, quarter, factors, field);
    }
    return;
  }
  i64 run = length;
  if (bit_count(length / kLine) % 2 == 1) {
    run /= 2;
    level(from, to, run, factors, field);
    from = to;
  }
  for (; run > kLine; run /= 4, from = to) {
    for (i64 start = 0; start < length; start += run) {
      two_levels(from + start, to + start, run / 4, factors, field);
    }
  }
}

// The last three levels, and natural order: of a square of kLine lines, which the last bits of their places
// part, each level is one of lines against lines, and results are whole lines again.
template <class F, bool kScaled>
RNS_LEVEL void last_levels(const u64* x, int bits, Factors factors, u64 scale, WideModulus m, const F& field,
                           u64* out) {
  using Factor = typename F::Factor;
  const i64 stride = i64{1} << (bits - kLineBits);
  const int middle_bits = bits - 2 * kLineBits;
  const Factor w1 = field.broadcast(factors, 5), w2 = field.broadcast(factors, 6);
  const Factor w3 = field.broadcast(factors, 7), all = field.broadcast(wide_factor(scale, m));
  i64 places[kLine];
  for (i64 k = 0; k < kLine; ++k) places[k] = reversed(k, kLineBits);
  for (i64 step = 0; step < i64{1} << middle_bits; ++step) {
    const i64 middle = near_both(step, middle_bits);
    const i64 other = reversed(middle, middle_bits) * kLine;
    for (i64 lane = 0; lane < kLine; lane += F::kWidth) {
      typename F::Type y[kLine];
      F::load_square(x + middle * kLine, stride, places + lane, y);
      field.butterfly(y[0], y[4]);
      field.butterfly(y[1], y[5], w1);
      field.butterfly(y[2], y[6], w2);
      field.butterfly(y[3], y[7], w3);
#pragma GCC unroll 2
      for (int half = 0; half < 8; half += 4) {
        field.butterfly(y[half], y[half + 2]);
        field.butterfly(y[half + 1], y[half + 3], w2);
        field.butterfly(y[half], y[half + 1]);
        field.butterfly(y[half + 2], y[half + 3]);
      }
#pragma GCC unroll 8
      for (i64 k = 0; k < kLine; ++k) {
        const auto word = kScaled ? field.multiply(y[k], all) : field.residue(y[k]);
        F::store(out + places[k] * stride + other + lane, word);
      }
    }
  }
}

// Transforms runs of a row, times a scale; `run`, of a line's address, has room for the run and its factors.
template <class F>
RNS_LEVEL void transform_runs(const u64* x, i64 count, int bits, u64 root, u64 scale, WideModulus m, u64* run,
                              u64* out) {
  const F field(m);
  const i64 length = i64{1} << bits;
  const Factors factors{run + length, run + 2 * length};
  fill_factors(root, length, m, field, factors);
  const auto last = scale == 1 ? last_levels<F, false> : last_levels<F, true>;
  for (i64 first = 0; first < count; first += length) {
    long_levels(x + first, run, length, factors, field);
    last(run, bits, factors, scale, m, field, out + first);
  }
}
