// The loops of ntt_tile.hpp over vectors V, compiled once for each instruction set: ntt_tile.cpp includes
// this file in a namespace for each, where V is one, RNS_LEVEL says the set, and RNS_LEVEL_INLINE inlines
// besides.

// Modulo p < 2^31, where 32 bits hold the sum of two residues: of r and r - p, or r + p, the one that does
// not wrap is the less.
struct Narrow {
  static constexpr bool kIsNarrow = true;
  V::Type p;

  RNS_LEVEL_INLINE explicit Narrow(Prime prime) : p(V::broadcast(prime.value)) {}

  // |r| for r < 2 p < 2^32.
  RNS_LEVEL_INLINE V::Type reduced(V::Type r) const { return V::min(r, V::sub(r, p)); }
  RNS_LEVEL_INLINE V::Type add(V::Type a, V::Type b) const { return reduced(V::add(a, b)); }
  RNS_LEVEL_INLINE V::Type sub(V::Type a, V::Type b) const {
    const V::Type difference = V::sub(a, b);
    return V::min(difference, V::add(difference, p));
  }

  // (a - b) w: that the factor takes any 32 bits saves one reduction.
  RNS_LEVEL_INLINE V::Type sub_times(V::Type a, V::Type b, V::Type value, V::Type quotient) const {
    return times(V::add(V::sub(a, b), p), value, quotient);
  }

  // Shoup: the estimate of the quotient is exact or one too small for every x < 2^32. If kSame, the factor is
  // the same in all places.
  template <bool kSame = true>
  RNS_LEVEL_INLINE V::Type times(V::Type x, V::Type value, V::Type quotient) const {
    const V::Type q = V::mul_high<kSame>(x, quotient);
    return reduced(V::sub(V::mul_low(x, value), V::mul_low(q, p)));
  }
};

// Modulo p < 2^32.
struct Wide {
  static constexpr bool kIsNarrow = false;
  V::Type p;

  RNS_LEVEL_INLINE explicit Wide(Prime prime) : p(V::broadcast(prime.value)) {}

  // a + b = a - (p - b).
  RNS_LEVEL_INLINE V::Type add(V::Type a, V::Type b) const { return sub(a, V::sub(p, b)); }
  RNS_LEVEL_INLINE V::Type sub(V::Type a, V::Type b) const { return V::add_if_less(a, b, V::sub(a, b), p); }
  RNS_LEVEL_INLINE V::Type sub_times(V::Type a, V::Type b, V::Type value, V::Type quotient) const {
    return times(sub(a, b), value, quotient);
  }

  // P. Montgomery: x W - q p, with q = x W / p modulo 2^32, is 2^32 times the difference of the upper halves.
  template <bool kSame = true>
  RNS_LEVEL_INLINE V::Type times(V::Type x, V::Type value, V::Type quotient) const {
    const V::Type q = V::mul_low(x, quotient);
    return sub(V::mul_high<kSame>(x, value), V::mul_high<true>(q, p));
  }
};

// The factors of residues x, by y = 2^32 x modulo p: y and y / p modulo 2^32 for Montgomery; for Shoup the
// quotient (2^32 x - y) / p, which is -y / p modulo 2^32.
template <class F>
struct Factoring {
  F field;
  V::Type inverse, value, quotient;

  RNS_LEVEL_INLINE explicit Factoring(Prime p)
      : field(p),
        inverse(V::broadcast(p.inverse)),
        value(V::broadcast(p.two_to_32().value)),
        quotient(V::broadcast(p.two_to_32().quotient)) {}

  RNS_LEVEL_INLINE void find(V::Type x, V::Type& new_value, V::Type& new_quotient) const {
    const V::Type y = field.times(x, value, quotient);
    new_value = F::kIsNarrow ? x : y;
    new_quotient = V::mul_low(F::kIsNarrow ? V::sub(V::broadcast(0), y) : y, inverse);
  }
};

// The next tile's columns, of the same row: rows are too far apart for the processor to foresee. In a loop
// that the compiler is to make one of vectors, this would forbid it.
RNS_LEVEL_INLINE void fetch_next([[maybe_unused]] const u32* x) {
  if constexpr (V::kWidth > 1) __builtin_prefetch(x + kLanes);
}

// ---- levels of butterflies --------------------------------------------------------------------------------

// Butterflies of `half` pairs, the factors of which are `step` apart in the table; the first is 1 if kOne.
template <class F, bool kForward, bool kOne>
RNS_LEVEL_INLINE void butterflies(V::Type* x, int half, const Factor* roots, i64 step, const F& field) {
#pragma GCC unroll 4
  for (int k = 0; k < half; ++k) {
    const V::Type a = x[k], b = x[k + half];
    const V::Type value = V::broadcast(roots[k * step].value);
    const V::Type quotient = V::broadcast(roots[k * step].quotient);
    if constexpr (kForward) {
      x[k] = field.add(a, b);
      x[k + half] = kOne && k == 0 ? field.sub(a, b) : field.sub_times(a, b, value, quotient);
    } else {
      const V::Type c = kOne && k == 0 ? b : field.times(b, value, quotient);
      x[k] = field.add(a, c);
      x[k + half] = field.sub(a, c);
    }
  }
}

// The levels of 2^kLevels rows, `step` apart, in registers: they are row k of each part of a block.
template <class F, int kLevels, bool kForward, bool kOne>
RNS_LEVEL_INLINE void few_rows(ConstRows from, Rows to, i64 step, const Factor* roots, i64 k,
                               const F& field) {
  constexpr int kRows = 1 << kLevels;
#pragma GCC ivdep
  for (i64 lane = 0; lane < kLanes; lane += V::kWidth) {
    V::Type x[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      x[r] = V::load(from.row(r * step) + lane);
      fetch_next(from.row(r * step) + lane);
    }
#pragma GCC unroll 3
    for (int level = 0; level < kLevels; ++level) {
      const int half = kForward ? kRows >> (level + 1) : 1 << level;
#pragma GCC unroll 4
      for (int r = 0; r < kRows; r += 2 * half) {
        butterflies<F, kForward, kOne>(x + r, half, roots + half * step + k, step, field);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) V::store(to.row(r * step) + lane, x[r]);
  }
}

// kLevels levels of blocks of 2^kLevels step rows, of which the shortest has butterflies of rows `step`
// apart.
template <class F, int kLevels, bool kForward>
RNS_LEVEL void levels(ConstRows from, Rows to, i64 length, i64 step, const Factor* roots, Prime p) {
  const F field(p);
  for (i64 start = 0; start < length; start += step << kLevels) {
    if (step == 1) {
      few_rows<F, kLevels, kForward, true>(from.from(start), to.from(start), 1, roots, 0, field);
      continue;
    }
    for (i64 k = start; k < start + step; ++k) {
      few_rows<F, kLevels, kForward, false>(from.from(k), to.from(k), step, roots, k - start, field);
    }
  }
}

template <class F, bool kForward>
void some_levels(int count, ConstRows from, Rows to, i64 length, i64 step, const Factor* roots, Prime p) {
  if (count == 3) levels<F, 3, kForward>(from, to, length, step, roots, p);
  if (count == 2) levels<F, 2, kForward>(from, to, length, step, roots, p);
  if (count == 1) levels<F, 1, kForward>(from, to, length, step, roots, p);
}

// Each pass through the tile is one of kMost levels, but that of the longest blocks takes what is left.
template <class F>
void forward(ConstRows from, u32* tile, i64 length, const Factor* roots, Prime p) {
  const Rows rows{tile, kLanes};
  int left = bit_count(length);
  for (i64 step = length; left > 0;) {
    const int count = left % kMost != 0 ? left % kMost : kMost;
    step >>= count;
    some_levels<F, true>(count, from, rows, length, step, roots, p);
    from = rows;
    left -= count;
  }
}

template <class F>
void inverse(u32* tile, Rows to, i64 length, const Factor* roots, Prime p) {
  const Rows rows{tile, kLanes};
  int left = bit_count(length);
  for (i64 step = 1; left > 0;) {
    const int count = left < kMost ? left : kMost;
    left -= count;
    some_levels<F, false>(count, rows, left > 0 ? rows : to, length, step, roots, p);
    step <<= count;
  }
}

// ---- products ---------------------------------------------------------------------------------------------

template <class F>
RNS_LEVEL void multiply(ConstRows from, Rows to, i64 length, Factors columns, Factors numbers, Prime p) {
  const F field(p);
  for (i64 r = 0; r < length; ++r) {
    const V::Type value = V::broadcast(numbers.values[r]), quotient = V::broadcast(numbers.quotients[r]);
    const u32 *x = from.row(r), *v = columns.values + r * kLanes, *q = columns.quotients + r * kLanes;
    u32* result = to.row(r);
#pragma GCC ivdep
    for (i64 k = 0; k < kLanes; k += V::kWidth) {
      const V::Type xv = field.template times<false>(V::load(x + k), V::load(v + k), V::load(q + k));
      V::store(result + k, field.times(xv, value, quotient));
      fetch_next(x + k);
      fetch_next(result + k);
    }
  }
}

// Of kWidth numbers at a time, power after power.
template <class F>
RNS_LEVEL void powers(Factors numbers, i64 count, Factors rows, Prime p) {
  const Factoring<F> factors_of(p);
  const F& field = factors_of.field;
  for (i64 r = 0; r < count; r += V::kWidth) {
    const V::Type value = V::load(numbers.values + r), quotient = V::load(numbers.quotients + r);
    V::Type power = V::broadcast(1);
    for (i64 lane = 0; lane < kLanes; lane += V::kWidth) {
      V::Type values[V::kWidth], quotients[V::kWidth];
      for (int k = 0; k < V::kWidth; ++k) {
        factors_of.find(power, values[k], quotients[k]);
        power = field.template times<false>(power, value, quotient);
      }
      V::transpose(values);
      V::transpose(quotients);
      for (int k = 0; k < V::kWidth; ++k) {
        V::store(rows.values + (r + k) * kLanes + lane, values[k]);
        V::store(rows.quotients + (r + k) * kLanes + lane, quotients[k]);
      }
    }
  }
}

template <class F>
RNS_LEVEL void multiply_factors(u32* x, Factors y, i64 count, Factors factors, Prime p) {
  const Factoring<F> factors_of(p);
  const F& field = factors_of.field;
  for (i64 k = 0; k < count; k += V::kWidth) {
    const V::Type value = V::load(y.values + k), quotient = V::load(y.quotients + k);
    const V::Type product = field.template times<false>(V::load(x + k), value, quotient);
    V::Type new_value, new_quotient;
    factors_of.find(product, new_value, new_quotient);
    V::store(x + k, product);
    V::store(factors.values + k, new_value);
    V::store(factors.quotients + k, new_quotient);
  }
}

template <class F>
RNS_LEVEL void product(u32* x, const u32* y, i64 count, Factor factor, Prime p) {
  const F field(p);
  const Wide any(p);
  const V::Type inverse = V::broadcast(p.inverse);
  const V::Type value = V::broadcast(factor.value), quotient = V::broadcast(factor.quotient);
  for (i64 k = 0; k < count; k += V::kWidth) {
    const V::Type b = V::load(y + k);
    const V::Type xy = any.times<false>(V::load(x + k), b, V::mul_low(b, inverse));
    V::store(x + k, field.times(xy, value, quotient));
  }
}

template <class F>
RNS_LEVEL void scale(u32* x, i64 count, Factor factor, Prime p) {
  const F field(p);
  const V::Type value = V::broadcast(factor.value), quotient = V::broadcast(factor.quotient);
  for (i64 k = 0; k < count; k += V::kWidth) {
    V::store(x + k, field.times(V::load(x + k), value, quotient));
  }
}

// ---- copies of tiles --------------------------------------------------------------------------------------

RNS_LEVEL void gather(const u32* const* lines, i64 length, u32* tile) {
  if (length < V::kWidth) {
    gather_few(lines, length, tile);
    return;
  }
  for (i64 start = 0; start < length; start += V::kWidth) {
    for (i64 lane = 0; lane < kLanes; lane += V::kWidth) {
      V::Type x[V::kWidth];
      for (int k = 0; k < V::kWidth; ++k) x[k] = V::load(lines[lane + k] + start);
      V::transpose(x);
      for (int k = 0; k < V::kWidth; ++k) V::store(tile + (start + k) * kLanes + lane, x[k]);
    }
  }
}

RNS_LEVEL void scatter(const u32* tile, i64 length, const i64* order, i64 width, u32* const* lines) {
  if (length < V::kWidth) {
    scatter_few(tile, length, order, width, lines);
    return;
  }
  for (i64 start = 0; start < length; start += V::kWidth) {
    for (i64 lane = 0; lane < width; lane += V::kWidth) {
      V::Type x[V::kWidth];
      for (int k = 0; k < V::kWidth; ++k) {
        const i64 row = order != nullptr ? order[start + k] : start + k;
        x[k] = V::load(tile + row * kLanes + lane);
      }
      V::transpose(x);
      for (int k = 0; k < V::kWidth && lane + k < width; ++k) V::store(lines[lane + k] + start, x[k]);
    }
  }
}

RNS_LEVEL void copy_rows(const u32* tile, i64 length, const i64* order, Rows to) {
  for (i64 r = 0; r < length; ++r) {
    const u32* row = tile + order[r] * kLanes;
    for (i64 k = 0; k < kLanes; k += V::kWidth) {
      V::store(to.row(r) + k, V::load(row + k));
      fetch_next(to.row(r) + k);
    }
  }
}

template <class F>
constexpr TileLoops kLoops = {forward<F>, inverse<F>, multiply<F>, powers<F>, multiply_factors<F>,
                              product<F>, scale<F>,   gather,      scatter,   copy_rows};
