// The loops of wide_arithmetic.cpp over vectors, compiled once for each instruction set: wide_arithmetic.cpp
// includes this file in a namespace for each, where mod_mul is one for vectors, and RNS_LEVEL says the set.

RNS_LEVEL_INLINE Words mod_fma(Words a, Words b, Words c, const Modulus& m) {
  return mod_add(mod_mul(a, b, m), c, m.last);
}

RNS_LEVEL_INLINE Words mod_mulsub(Words a, Words b, Words c, Words d, const Modulus& m) {
  return mod_sub(mod_mul(a, b, m), mod_mul(c, d, m), m.last);
}

RNS_LEVEL_INLINE Words mod_muladd(Words a, Words b, Words c, Words d, const Modulus& m) {
  return mod_add(mod_mul(a, b, m), mod_mul(c, d, m), m.last);
}

RNS_LEVEL_INLINE Words operand(const u64* x, i64 step, i64 j) {
  return step == 0 ? spread_word(*x) : load_words(x + j);
}

// What is left of a vector goes one by one.
#define DEFINE(name, operands, expression)                                                             \
  RNS_LEVEL void name##_words(const u64* const* x, const i64* step, WideModulus modulus, i64 count,    \
                              u64* __restrict__ out) {                                                 \
    const Modulus m(modulus);                                                                          \
    const u64 *x0 = x[0], *x1 = x[1 % operands], *x2 = x[2 % operands], *x3 = x[3 % operands];         \
    const i64 s0 = step[0], s1 = step[1 % operands], s2 = step[2 % operands], s3 = step[3 % operands]; \
    i64 j = 0;                                                                                         \
    for (; j + kWords <= count; j += kWords) {                                                         \
      [[maybe_unused]] const Words a = operand(x0, s0, j), b = operand(x1, s1, j);                     \
      [[maybe_unused]] const Words c = operand(x2, s2, j), d = operand(x3, s3, j);                     \
      store_words(out + j, expression);                                                                \
    }                                                                                                  \
    const u64* const rest[] = {x0 + j * s0, x1 + j * s1, x2 + j * s2, x3 + j * s3};                    \
    portable::name##_words(rest, step, modulus, count - j, out + j);                                   \
  }
RNS_OPERATIONS(DEFINE)
#undef DEFINE

// Of several vectors at a time, for each product waits for the one before.
RNS_LEVEL void power_words(const u64* x, i64 step, u64 exponent, WideModulus modulus, i64 count, u64* out) {
  constexpr int kTogether = 4;
  const Modulus m(modulus);
  i64 j = 0;
  for (; step == 1 && j + kTogether * kWords <= count; j += kTogether * kWords) {
    Words base[kTogether], power[kTogether];
    for (int v = 0; v < kTogether; ++v) {
      base[v] = load_words(x + j + v * kWords);
      power[v] = spread_word(1 % (modulus.last + 1u));
    }
    for (u64 k = exponent; k != 0; k >>= 1) {
      for (int v = 0; k & 1 && v < kTogether; ++v) power[v] = mod_mul(power[v], base[v], m);
      for (int v = 0; v < kTogether; ++v) base[v] = mod_mul(base[v], base[v], m);
    }
    for (int v = 0; v < kTogether; ++v) store_words(out + j + v * kWords, power[v]);
  }
  portable::power_words(x + j * step, step, exponent, modulus, count - j, out + j);
}
