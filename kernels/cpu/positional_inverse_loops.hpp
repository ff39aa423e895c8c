// Inverses of positional numbers modulo odd ones in tiles, for one level of instructions: included as
// positional_loops.hpp is, after it.
//
// D. Bernstein and B.-Y. Yang, "Fast constant-time gcd computation and modular inversion", CHES 2019, in the
// form of P. Wuille's safegcd of libsecp256k1: steps on the lowest digits make a matrix, by which whole
// numbers are changed. All numbers of a tile take the same steps, and those that are done stay as they are.
// Numbers are in digits of 30 bits, of which the highest has the sign.

constexpr int kStepBits = 30;  // also the steps of a matrix, whose entries are at most 2^30
constexpr u64 kStepMask = (u64{1} << kStepBits) - 1;

// (u f + v g) / 2^30 and (q f + r g) / 2^30 are the new f and g.
struct Steps {
  Lanes u, v, q, r;
};

RNS_LEVEL_INLINE void shift_signed(Lanes& x, int bits) { x = (Lanes)((SignedLanes)x >> bits); }

// From the lowest digits; `zeta` is -1 at first.
RNS_LEVEL_INLINE void take_steps(Lanes& zeta, Lanes f, Lanes g, Steps& t) {
  Lanes u = {}, v = {}, q = {}, r = {};
  u += 1;
  r += 1;
  for (int i = 0; i < kStepBits; ++i) {
    Lanes swap, odd = -(g & 1);
    sign_mask(zeta, swap);
    g += ((f ^ swap) - swap) & odd;
    q += ((u ^ swap) - swap) & odd;
    r += ((v ^ swap) - swap) & odd;
    swap &= odd;
    zeta = (zeta ^ swap) - 1;
    f += g & swap;
    u = (u + (q & swap)) << 1;
    v = (v + (r & swap)) << 1;
    g >>= 1;
  }
  t = {u, v, q, r};
}

// What the matrix makes of numbers, digit by digit.
RNS_LEVEL_INLINE void change(const Steps& t, Lanes* f, Lanes* g, i64 count) {
  Lanes f_sum = {}, g_sum = {};
  for (i64 i = 0; i < count; ++i) {
    f_sum += signed_product(t.u, f[i]) + signed_product(t.v, g[i]);
    g_sum += signed_product(t.q, f[i]) + signed_product(t.r, g[i]);
    if (i > 0) {
      f[i - 1] = f_sum & kStepMask;
      g[i - 1] = g_sum & kStepMask;
    }
    shift_signed(f_sum, kStepBits);
    shift_signed(g_sum, kStepBits);
  }
  f[count - 1] = f_sum;
  g[count - 1] = g_sum;
}

// The same of d and e modulo m, from -2 m to m: so many times m is added that the sums are divisible.
RNS_LEVEL_INLINE void change_modulo(const Steps& t, Lanes* d, Lanes* e, const Lanes* m, const Lanes& inverse,
                                    i64 count) {
  Lanes d_sign, e_sign;
  sign_mask(d[count - 1], d_sign);
  sign_mask(e[count - 1], e_sign);
  Lanes d_times = (t.u & d_sign) + (t.v & e_sign), e_times = (t.q & d_sign) + (t.r & e_sign);
  Lanes d_sum = signed_product(t.u, d[0]) + signed_product(t.v, e[0]);
  Lanes e_sum = signed_product(t.q, d[0]) + signed_product(t.r, e[0]);
  d_times -= (signed_product(inverse, d_sum) + d_times) & kStepMask;
  e_times -= (signed_product(inverse, e_sum) + e_times) & kStepMask;
  d_sum += signed_product(d_times, m[0]);
  e_sum += signed_product(e_times, m[0]);
  for (i64 i = 1; i < count; ++i) {
    shift_signed(d_sum, kStepBits);
    shift_signed(e_sum, kStepBits);
    d_sum += signed_product(t.u, d[i]) + signed_product(t.v, e[i]) + signed_product(d_times, m[i]);
    e_sum += signed_product(t.q, d[i]) + signed_product(t.r, e[i]) + signed_product(e_times, m[i]);
    d[i - 1] = d_sum & kStepMask;
    e[i - 1] = e_sum & kStepMask;
  }
  shift_signed(d_sum, kStepBits);
  shift_signed(e_sum, kStepBits);
  d[count - 1] = d_sum;
  e[count - 1] = e_sum;
}

// Adds m where a number is negative, and negates it then where `sign` is ones.
RNS_LEVEL_INLINE void add_and_negate(Lanes* d, const Lanes* m, const Lanes& sign, i64 count) {
  Lanes negative, carried = {};
  sign_mask(d[count - 1], negative);
  for (i64 i = 0; i < count; ++i) {
    carried += ((d[i] + (m[i] & negative)) ^ sign) - sign;
    d[i] = i + 1 < count ? carried & kStepMask : carried;
    shift_signed(carried, kStepBits);
  }
}

RNS_LEVEL void invert(const LimbRows& x, const LimbRows& modulus, const LimbResult& out, u8* has_none,
                      PositionalScratch& scratch) {
  const i64 count = (32 * modulus.limbs + 2) / kStepBits + 1;
  for (LaneVector* each : {&scratch.x, &scratch.y, &scratch.z, &scratch.sum, &scratch.table})
    each->resize(count);
  Lanes *f = lanes_of(scratch.x), *g = lanes_of(scratch.y), *d = lanes_of(scratch.z),
        *e = lanes_of(scratch.sum), *m = lanes_of(scratch.table);
  load_digits<kStepBits>(modulus, m, count);
  load_digits<kStepBits>(x, g, count);
  m[0] |= 1;  // of columns that no number is in
  Lanes some = {};
  for (i64 i = 0; i < count; ++i) {
    f[i] = m[i];
    d[i] = e[i] = Lanes{};
    some |= i > 0 ? m[i] : m[i] ^ 1;
  }
  e[0] = (Lanes)(some != 0) & 1;  // 1 modulo m
  Lanes inverse = m[0];           // right modulo 2^3; each step doubles the bits
  for (int bits = 3; bits < kStepBits; bits *= 2)
    inverse = signed_product(inverse, 2 - signed_product(m[0], inverse));
  inverse &= kStepMask;
  Lanes zeta = {}, f_sign;
  zeta -= 1;
  for (i64 length = count;;) {
    some = Lanes{};
    for (i64 i = 0; i < length; ++i) some |= g[i];
    if (!any_of(some)) {
      sign_mask(f[length - 1], f_sign);
      some = (f[0] ^ f_sign) - (1 & ~f_sign);  // 0 of 1 and of -1
      if (length > 1) some &= kStepMask;
      for (i64 i = 1; i < length; ++i) some |= (f[i] ^ f_sign) & (i + 1 < length ? kStepMask : ~u64{0});
      break;
    }
    Steps t;
    take_steps(zeta, f[0], g[0], t);
    change(t, f, g, length);
    change_modulo(t, d, e, m, inverse, count);
    // A highest digit that is but the sign goes to the one below.
    Lanes &f_top = f[length - 1], &g_top = g[length - 1], g_sign;
    sign_mask(f_top, f_sign);
    sign_mask(g_top, g_sign);
    if (length > 1 && !any_of((f_top ^ f_sign) | (g_top ^ g_sign))) {
      --length;
      f[length - 1] |= f_top << kStepBits;
      g[length - 1] |= g_top << kStepBits;
    }
  }
  add_and_negate(d, m, f_sign, count);
  add_and_negate(d, m, Lanes{}, count);
  Limbs<kStepBits> limbs = {d, count};
  for (i64 i = 0; i < out.limbs; ++i) {
    Lanes limb;
    limbs.take(limb);
    store_limbs(limb, out.row(i));
  }
  for (i64 j = 0; j < kLanes; ++j) has_none[j] = some[j] != 0;
}
