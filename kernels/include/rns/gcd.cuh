// Greatest common divisors and inverses of positional numbers of 32-bit limbs, by division steps on their
// lowest bits: D. Bernstein and B.-Y. Yang, "Fast constant-time gcd computation and modular inversion", CHES
// 2019, in variable time and with many steps at once, as P. Wuille's safegcd of libsecp256k1.
#pragma once

#include "base.cuh"

namespace rns {

// Steps that are taken on one word before whole numbers are changed: sums of their products fit 64 bits.
constexpr i32 kDivisionSteps = 28;
constexpr u32 kStepMask = (1u << kDivisionSteps) - 1;

// What some steps make of f and g: (u f + v g) / 2^steps and (q f + r g) / 2^steps. |u| + |v| and |q| + |r|
// are at most 2^steps.
struct StepMatrix {
  i32 u, v, q, r;
};

RNS_INLINE i32 trailing_zeros(u32 x) {
  i32 zeros = 0;
  for (u32 half = 16; half > 0; half /= 2) {
    if ((x & ((1u << half) - 1)) == 0) {
      x >>= half;
      zeros += static_cast<i32>(half);
    }
  }
  return zeros;
}

// Steps from the lowest words of f, which is odd, and g. `eta` is the paper's -delta, -1 at first.
RNS_INLINE StepMatrix division_steps(i32& eta, u32 f, u32 g) {
  u32 u = 1, v = 0, q = 0, r = 1;
  i32 left = kDivisionSteps;
  for (;;) {
    const i32 zeros = trailing_zeros(g | (~0u << left));
    g >>= zeros;
    u <<= zeros;
    v <<= zeros;
    eta -= zeros;
    left -= zeros;
    if (left == 0) break;
    if (eta < 0) {
      eta = -eta;
      const u32 old_f = f, old_u = u, old_v = v;
      f = g;
      g = 0 - old_f;
      u = q;
      q = 0 - old_u;
      v = r;
      r = 0 - old_v;
    }
    // The multiple of f that makes up to 6 bits of g zero: f (2 - f f) is its inverse modulo 2^6.
    const i32 most = eta + 1 < left ? eta + 1 : left;
    const u32 factor = (g * f * (f * f - 2)) & ((1u << (most < 6 ? most : 6)) - 1);
    g += f * factor;
    q += u * factor;
    r += v * factor;
  }
  return {static_cast<i32>(u), static_cast<i32>(v), static_cast<i32>(q), static_cast<i32>(r)};
}

// Limb i of a number in two's complement as it enters a sum: the highest one with its sign.
template <class Limbs>
RNS_INLINE i64 signed_limb(Limbs x, i64 i, i64 count) {
  return i == count - 1 ? static_cast<i64>(static_cast<i32>(x[i])) : static_cast<i64>(x[i]);
}

// Limbs of a sum as they come, divided by 2^steps, of which the remainder is 0.
template <class Limbs>
struct ShiftedSum {
  Limbs out;
  i64 carry;
  u32 below;

  RNS_INLINE explicit ShiftedSum(Limbs limbs) : out(limbs), carry(0), below(0) {}
  RNS_INLINE void add(i64 i, i64 term) {
    const i64 sum = carry + term;
    const u32 limb = static_cast<u32>(sum);
    if (i > 0) out[i - 1] = below >> kDivisionSteps | limb << (32 - kDivisionSteps);
    below = limb;
    carry = sum >> 32;
  }
  RNS_INLINE void end(i64 count) {
    out[count - 1] = below >> kDivisionSteps | static_cast<u32>(carry) << (32 - kDivisionSteps);
  }
};

template <class Limbs>
RNS_INLINE void take_steps(const StepMatrix& t, Limbs f, Limbs g, i64 count) {
  ShiftedSum<Limbs> new_f(f), new_g(g);
  for (i64 i = 0; i < count; ++i) {
    const i64 x = signed_limb(f, i, count), y = signed_limb(g, i, count);
    new_f.add(i, t.u * x + t.v * y);
    new_g.add(i, t.q * x + t.r * y);
  }
  new_f.end(count);
  new_g.end(count);
}

// The same of d and e modulo m, from -2 m to m: so many times m is added that the sums are divisible.
// `inverse` is that of m modulo 2^steps. The modulus has one limb less.
template <class Limbs, class Modulus>
RNS_INLINE void take_steps_modulo(const StepMatrix& t, Limbs d, Limbs e, Modulus m, u32 inverse, i64 count) {
  const bool d_negative = d[count - 1] >> 31 != 0, e_negative = e[count - 1] >> 31 != 0;
  const auto times = [&](i32 a, i32 b) {
    const i32 first = (d_negative ? a : 0) + (e_negative ? b : 0);
    const u32 low = static_cast<u32>(a) * d[0] + static_cast<u32>(b) * e[0];
    return first - static_cast<i32>((inverse * low + static_cast<u32>(first)) & kStepMask);
  };
  const i64 d_times = times(t.u, t.v), e_times = times(t.q, t.r);
  ShiftedSum<Limbs> new_d(d), new_e(e);
  for (i64 i = 0; i < count; ++i) {
    const i64 x = signed_limb(d, i, count), y = signed_limb(e, i, count);
    const i64 z = i + 1 < count ? static_cast<i64>(m[i]) : 0;
    new_d.add(i, t.u * x + t.v * y + d_times * z);
    new_e.add(i, t.q * x + t.r * y + e_times * z);
  }
  new_d.end(count);
  new_e.end(count);
}

template <class Limbs>
RNS_INLINE bool is_zero(Limbs x, i64 count) {
  for (i64 i = 0; i < count; ++i) {
    if (x[i] != 0) return false;
  }
  return true;
}

template <class Limbs>
RNS_INLINE void negate(Limbs x, i64 count) {
  u32 carry = 1;
  for (i64 i = 0; i < count; ++i) {
    x[i] = ~x[i] + carry;
    carry = carry != 0 && x[i] == 0 ? 1 : 0;
  }
}

// f, which is odd, becomes the greatest common divisor of f and g, and g 0: numbers of `count` limbs in two's
// complement that are not negative.
template <class Limbs>
RNS_INLINE void gcd_of_odd(Limbs f, Limbs g, i64 count) {
  i32 eta = -1;
  while (!is_zero(g, count)) take_steps(division_steps(eta, f[0], g[0]), f, g, count);
  if (f[count - 1] >> 31 != 0) negate(f, count);
}

// The number without the lower `bits` bits.
template <class Limbs>
RNS_INLINE void shift_down(Limbs x, i64 count, i64 bits) {
  const i64 limbs = bits / 32;
  for (i64 i = 0; i < count; ++i) {
    const u64 low = i + limbs < count ? x[i + limbs] : 0, high = i + limbs + 1 < count ? x[i + limbs + 1] : 0;
    x[i] = static_cast<u32>((high << 32 | low) >> bits % 32);
  }
}

template <class Limbs>
RNS_INLINE void shift_up(Limbs x, i64 count, i64 bits) {
  const i64 limbs = bits / 32;
  for (i64 i = count - 1; i >= 0; --i) {
    const u64 high = i >= limbs ? x[i - limbs] : 0, low = i > limbs ? x[i - limbs - 1] : 0;
    x[i] = static_cast<u32>((high << 32 | low) << bits % 32 >> 32);
  }
}

// Of a number that is not 0.
template <class Limbs>
RNS_INLINE i64 lower_zeros(Limbs x) {
  i64 i = 0;
  while (x[i] == 0) ++i;
  return 32 * i + trailing_zeros(x[i]);
}

// f becomes the greatest common divisor, 0 of two zeros; g is not kept. `count` as above.
template <class Limbs>
RNS_INLINE void gcd_of(Limbs f, Limbs g, i64 count) {
  if (is_zero(g, count)) return;
  if (is_zero(f, count)) {
    for (i64 i = 0; i < count; ++i) f[i] = g[i];
    return;
  }
  const i64 f_zeros = lower_zeros(f), g_zeros = lower_zeros(g);
  shift_down(f, count, f_zeros);
  shift_down(g, count, g_zeros);
  gcd_of_odd(f, g, count);
  shift_up(f, count, f_zeros < g_zeros ? f_zeros : g_zeros);
}

// d becomes the inverse of g modulo m, an odd number in count - 1 limbs, which f has too. Returns false if
// there is none.
template <class Limbs, class Modulus>
RNS_INLINE bool invert_modulo(Limbs f, Limbs g, Limbs d, Limbs e, Modulus m, i64 count) {
  u32 inverse = m[0];
  for (i32 step = 0; step < 4; ++step) inverse *= 2 - m[0] * inverse;
  for (i64 i = 0; i < count; ++i) {
    d[i] = 0;
    e[i] = i == 0;
  }
  i32 eta = -1;
  while (!is_zero(g, count)) {
    const StepMatrix t = division_steps(eta, f[0], g[0]);
    take_steps(t, f, g, count);
    take_steps_modulo(t, d, e, m, inverse, count);
  }
  if (f[count - 1] >> 31 != 0) {
    negate(f, count);
    negate(d, count);
  }
  const auto add_multiple = [&](i64 times) {
    i64 carry = 0;
    for (i64 i = 0; i < count; ++i) {
      carry += static_cast<i64>(d[i]) + (i + 1 < count ? times * m[i] : 0);
      d[i] = static_cast<u32>(carry);
      carry >>= 32;
    }
  };
  // It is from -2 m to 2 m: up to the least that is not negative.
  while (d[count - 1] >> 31 == 0) add_multiple(-1);
  while (d[count - 1] >> 31 != 0) add_multiple(1);
  f[0] -= 1;
  return is_zero(f, count);
}

}  // namespace rns
