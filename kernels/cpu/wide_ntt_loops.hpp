// The loops of wide_ntt.cpp over fields F, which compute with F::kWidth words at a time, compiled once for
// each instruction set: wide_ntt.cpp includes this file in a namespace for each, where RNS_LEVEL says the
// set.

// |x w| of `count` words, by one factor.
template <class F>
RNS_LEVEL void multiply_all(const u64* x, i64 count, WideFactor w, const F& field, u64* out) {
  const auto factor = field.broadcast(w);
  for (i64 k = 0; k < count; k += F::kWidth) F::store(out + k, field.multiply(F::load(x + k), factor));
}

// The words of a run, each times a factor, below 2 p.
template <class F>
RNS_LEVEL void multiply_each(const u64* x, i64 count, Factors factors, const F& field, u64* out) {
  for (i64 k = 0; k < count; k += F::kWidth) {
    F::store(out + k, field.multiply_loosely(F::load(x + k), F::load(factors, k)));
  }
}

// Fills `count` factors: a power of two of powers of `ratio`, times `start`. Their number doubles in each
// turn.
template <class F>
RNS_LEVEL void fill_powers(u64 start, u64 ratio, i64 count, WideModulus m, const F& field, Factors powers) {
  const i64 first = std::min(count, kLine);
  u64 power = 1;
  for (i64 k = 0; k < first; ++k, power = mod_mul(power, ratio, m))
    powers.values[k] = mod_mul(start, power, m);
  for (i64 done = first; done < count; done *= 2, power = mod_mul(power, power, m)) {
    multiply_all(powers.values, done, wide_factor(power, m), field, powers.values + done);
  }
  const auto scale = field.broadcast(wide_factor(F::scale(m), m));
  for (i64 k = 0; k < count; k += F::kWidth) {
    const auto power = F::load(powers.values + k);
    F::store(powers, k, field.factor(power, field.multiply(power, scale)));
  }
}

// Fills the factors of a transform of `length` words: those at half + k are of the power k of a root of order
// 2 half, for each power of two `half`.
template <class F>
RNS_LEVEL void fill_factors(u64 root, i64 length, WideModulus m, const F& field, Factors factors) {
  fill_powers(1, root, length / 2, m, field, factors.from(length / 2));
  for (i64 half = length / 4; half > 0; half /= 2) {
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

// The squares of kLine lines of a run in turn, whose words are in squares again where the bits of their
// places are reversed: function(the first word, that of the other square, words of a line).
template <class F, class Function>
RNS_LEVEL_INLINE void for_each_square(int bits, const Function& function) {
  const int middle_bits = bits - 2 * kLineBits;
  for (i64 step = 0; step < i64{1} << middle_bits; ++step) {
    const i64 middle = near_both(step, middle_bits), other = reversed(middle, middle_bits);
    for (i64 lane = 0; lane < kLine; lane += F::kWidth) function(middle * kLine, other * kLine, lane);
  }
}

// Words of a run in reversed order of bits.
template <class F>
RNS_LEVEL void reverse(const u64* x, int bits, u64* out) {
  const Lines lines(bits);
  for_each_square<F>(bits, [&](i64 middle, i64 other, i64 lane) RNS_LEVEL {
    typename F::Type y[kLine];
    F::load_square(x + middle, lines.at + lane, y);
    for (i64 k = 0; k < kLine; ++k) F::store(out + lines.at[k] + other + lane, y[k]);
  });
}

// The last three levels: of a square of lines, each is one of lines against lines, and results are whole
// lines in natural order, or transposed once more in reversed order.
template <class F>
RNS_LEVEL void last_levels(const u64* x, int bits, Factors factors, const Ending& ending, const F& field,
                           u64* out) {
  const Lines lines(bits);
  const auto w1 = field.broadcast(factors, 5), w2 = field.broadcast(factors, 6);
  const auto w3 = field.broadcast(factors, 7), scale = field.broadcast(ending.scale);
  for_each_square<F>(bits, [&](i64 middle, i64 other, i64 lane) RNS_LEVEL {
    typename F::Type y[kLine];
    F::load_square(x + middle, lines.at + lane, y);
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
      if (ending.twists.values != nullptr)
        y[k] = field.multiply(y[k], F::load(ending.twists, lines.at[k] + other + lane));
      else
        y[k] = ending.scale.value == 1 ? field.residue(y[k]) : field.multiply(y[k], scale);
    }
    if (ending.is_reversed) {
      F::store_square(out + middle, lines.at + lane, y);
      return;
    }
#pragma GCC unroll 8
    for (i64 k = 0; k < kLine; ++k) F::store(out + lines.at[k] + other + lane, y[k]);
  });
}

// Transforms runs of a row.
template <class F>
RNS_LEVEL void transform_runs(const u64* x, i64 count, int bits, Roots roots, WideModulus m, Order order,
                              u64* run, u64* out) {
  const F field(m);
  const i64 length = i64{1} << bits;
  const Factors factors{run + length, run + 2 * length}, twists{run + 3 * length, run + 4 * length};
  fill_factors(roots.root, length, m, field, factors);
  const bool is_twisted = roots.twist != 1;
  Ending ending{wide_factor(roots.scale, m), {}, order.is_reversed && !order.is_inverse};
  if (is_twisted) fill_powers(order.is_inverse ? roots.scale : 1, roots.twist, length, m, field, twists);
  if (is_twisted && order.is_inverse) ending.twists = twists;
  for (i64 first = 0; first < count; first += length) {
    const u64* from = x + first;
    if (order.is_inverse && order.is_reversed) {
      reverse<F>(from, bits, run);
      from = run;
    } else if (is_twisted && !order.is_inverse) {
      multiply_each(from, length, twists, field, run);
      from = run;
    }
    long_levels(from, run, length, factors, field);
    last_levels(run, bits, factors, ending, field, out + first);
  }
}
