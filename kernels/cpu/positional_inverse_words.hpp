// Inverses of positional numbers modulo odd ones, one after another in words of 64 bits, where there are no
// vectors: included as positional_inverse_loops.hpp is, instead of it.
//
// The same division steps, of P. Wuille's safegcd of libsecp256k1, in variable time and 62 at once: zeros of
// the lowest word are skipped, and whole numbers are changed half as often.

constexpr int kWordSteps = 62;  // and the bits of a digit, of which the highest one has the sign
constexpr u64 kWordMask = (u64{1} << kWordSteps) - 1;

using i128 = __int128;

// (u f + v g) / 2^62 and (q f + r g) / 2^62 are the new f and g.
struct WordSteps {
  i64 u, v, q, r;
};

// From the lowest words of f, which is odd, and g. `eta` is the paper's -delta, -1 at first.
inline WordSteps take_word_steps(i64& eta, u64 f, u64 g) {
  u64 u = 1, v = 0, q = 0, r = 1;
  for (int left = kWordSteps;;) {
    const int zeros = __builtin_ctzll(g | ~u64{0} << left);
    g >>= zeros;
    u <<= zeros;
    v <<= zeros;
    eta -= zeros;
    left -= zeros;
    if (left == 0) break;
    if (eta < 0) {
      eta = -eta;
      f = std::exchange(g, -f);
      u = std::exchange(q, -u);
      v = std::exchange(r, -v);
    }
    // The multiple of f that makes up to 6 bits of g zero: f (2 - f f) is its inverse modulo 2^6.
    const i64 most = std::min<i64>({eta + 1, left, 6});
    const u64 factor = f * g * (f * f - 2) & ((u64{1} << most) - 1);
    g += f * factor;
    q += u * factor;
    r += v * factor;
  }
  return {static_cast<i64>(u), static_cast<i64>(v), static_cast<i64>(q), static_cast<i64>(r)};
}

// The sum becomes a digit, and what is above it.
inline i64 take_word(i128& sum) {
  const i64 digit = static_cast<i64>(static_cast<u64>(sum) & kWordMask);
  sum >>= kWordSteps;
  return digit;
}

// What the steps make of f and g.
inline void change_words(const WordSteps& t, i64* f, i64* g, i64 count) {
  i128 f_sum = 0, g_sum = 0;
  for (i64 i = 0; i < count; ++i) {
    const i64 f_digit = f[i], g_digit = g[i];
    f_sum += i128{t.u} * f_digit + i128{t.v} * g_digit;
    g_sum += i128{t.q} * f_digit + i128{t.r} * g_digit;
    const i64 f_new = take_word(f_sum), g_new = take_word(g_sum);
    if (i > 0) {
      f[i - 1] = f_new;
      g[i - 1] = g_new;
    }
  }
  f[count - 1] = static_cast<i64>(f_sum);
  g[count - 1] = static_cast<i64>(g_sum);
}

// The same of d and e modulo m, from -2 m to m: so many times m is added that the sums are divisible.
inline void change_words_modulo(const WordSteps& t, i64* d, i64* e, const i64* m, u64 inverse, i64 count) {
  const i64 d_sign = d[count - 1] >> 63, e_sign = e[count - 1] >> 63;
  i64 d_times = (t.u & d_sign) + (t.v & e_sign), e_times = (t.q & d_sign) + (t.r & e_sign);
  i128 d_sum = i128{t.u} * d[0] + i128{t.v} * e[0], e_sum = i128{t.q} * d[0] + i128{t.r} * e[0];
  d_times -= static_cast<i64>((inverse * static_cast<u64>(d_sum) + static_cast<u64>(d_times)) & kWordMask);
  e_times -= static_cast<i64>((inverse * static_cast<u64>(e_sum) + static_cast<u64>(e_times)) & kWordMask);
  d_sum = (d_sum + i128{m[0]} * d_times) >> kWordSteps;
  e_sum = (e_sum + i128{m[0]} * e_times) >> kWordSteps;
  for (i64 i = 1; i < count; ++i) {
    d_sum += i128{t.u} * d[i] + i128{t.v} * e[i] + i128{m[i]} * d_times;
    e_sum += i128{t.q} * d[i] + i128{t.r} * e[i] + i128{m[i]} * e_times;
    d[i - 1] = take_word(d_sum);
    e[i - 1] = take_word(e_sum);
  }
  d[count - 1] = static_cast<i64>(d_sum);
  e[count - 1] = static_cast<i64>(e_sum);
}

// Adds m to a negative number, and negates it then if asked to.
inline void add_and_negate_words(i64* d, const i64* m, bool negate, i64 count) {
  const bool is_negative = d[count - 1] < 0;
  i128 sum = 0;
  for (i64 i = 0; i < count; ++i) {
    const i64 digit = d[i] + (is_negative ? m[i] : 0);
    sum += negate ? -digit : digit;
    d[i] = i + 1 < count ? take_word(sum) : static_cast<i64>(sum);
  }
}

// The digits of one number of a tile.
inline void load_words(const LimbRows& x, i64 lane, i64* digits, i64 count) {
  u128 bits = 0;
  int have = 0;
  i64 limb = 0;
  for (i64 i = 0; i < count; ++i) {
    for (; have < kWordSteps && limb < x.limbs; have += 32) bits |= u128{x.row(limb++)[lane]} << have;
    digits[i] = static_cast<i64>(static_cast<u64>(bits) & kWordMask);
    bits >>= kWordSteps;
    have = std::max(0, have - kWordSteps);
  }
}

inline void store_words(const i64* digits, i64 count, const LimbResult& out, i64 lane) {
  u128 bits = 0;
  int have = 0;
  i64 digit = 0;
  for (i64 i = 0; i < out.limbs; ++i, bits >>= 32, have -= 32) {
    for (; have < 32 && digit < count; have += kWordSteps) bits |= u128(digits[digit++]) << have;
    out.row(i)[lane] = static_cast<u32>(bits);
  }
}

// Whether g becomes 0 with 1 or -1 in f; d is the inverse times f then.
inline bool divide_by_steps(i64* f, i64* g, i64* d, i64* e, const i64* m, i64 count) {
  u64 inverse = static_cast<u64>(m[0]);  // right modulo 2^3; each step doubles the bits
  for (int bits = 3; bits < kWordSteps; bits *= 2) inverse *= 2 - static_cast<u64>(m[0]) * inverse;
  i64 eta = -1;
  for (i64 length = count;;) {
    if (std::all_of(g, g + length, [](i64 digit) { return digit == 0; })) {
      const i64 sign = f[length - 1] >> 63;
      bool is_one = true;
      // -1 has all digits of ones, of which the highest is negative.
      for (i64 i = 0; i < length; ++i) {
        const i64 one = sign == 0 ? i == 0 : i + 1 < length ? static_cast<i64>(kWordMask) : -1;
        is_one = is_one && f[i] == one;
      }
      add_and_negate_words(d, m, sign != 0, count);
      add_and_negate_words(d, m, false, count);
      return is_one;
    }
    const WordSteps t = take_word_steps(eta, static_cast<u64>(f[0]), static_cast<u64>(g[0]));
    change_words(t, f, g, length);
    change_words_modulo(t, d, e, m, inverse, count);
    // A highest digit that is but the sign goes to the one below.
    i64 &f_top = f[length - 1], &g_top = g[length - 1];
    if (length > 1 && ((f_top ^ f_top >> 63) | (g_top ^ g_top >> 63)) == 0) {
      --length;
      f[length - 1] |= static_cast<i64>(static_cast<u64>(f_top) << kWordSteps);
      g[length - 1] |= static_cast<i64>(static_cast<u64>(g_top) << kWordSteps);
    }
  }
}

inline void invert(const LimbRows& x, const LimbRows& modulus, const LimbResult& out, u8* has_none,
                   PositionalScratch& scratch) {
  const i64 count = (32 * modulus.limbs + 2) / kWordSteps + 1;
  scratch.x.resize(5 * count);
  i64 *f = scratch.x.as<i64>(), *g = f + count, *d = g + count, *e = d + count, *m = e + count;
  for (i64 lane = 0; lane < kLanes; ++lane) {
    load_words(modulus, lane, m, count);
    load_words(x, lane, g, count);
    m[0] |= 1;  // of columns that no number is in
    std::copy_n(m, count, f);
    std::fill_n(d, 2 * count, 0);
    e[0] = m[0] != 1 || std::any_of(m + 1, m + count, [](i64 digit) { return digit != 0; });  // 1 modulo m
    has_none[lane] = !divide_by_steps(f, g, d, e, m, count);
    store_words(d, count, out, lane);
  }
}
