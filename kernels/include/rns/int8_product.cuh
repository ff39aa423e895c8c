// Products of matrices modulo m <= 2^32 by products of 8-bit numbers: residues modulo small coprime moduli q,
// and back from sums of their products (docs/exact-linalg.md has the proofs).
#pragma once

#include "modular.cuh"

namespace rns {

constexpr i32 kSmallModuli = 10;     // the most there are
constexpr i32 kReciprocalBits = 38;  // of SmallModulus::reciprocal
constexpr i32 kValueBits = 43;       // below the fraction in a weight
constexpr i32 kFractionBits = 17;    // of the fraction

// A modulus q <= 256: 2^38 / q and 1 / q, both rounded; what a matrix' residues are multiplied by; what parts
// of its numbers are therefore multiplied by, which is 2^16 modulo q for a factor of 1, else 2^22 and 2^11
// times the factor, around 0; what sums begin with whose shifted_residue is taken: the bits of a float
// which is a multiple of q; and what NumberParts are multiplied by.
struct SmallModulus {
  i32 modulus;
  i32 reciprocal;
  i32 upper;
  i32 middle;
  i32 factor;
  i32 start;
  float inverse;
  float parts[3];  // for three parts, 2^22, 2^11 and 1 times the factor; for two, 2^16, 0 and 0
};

// What leads from residues modulo all q back to one modulo m: for each q its weight, which is Q / q modulo m,
// around 0, for the product Q of all q, and 2^43 times 2^17 / q, rounded; -Q modulo m, around 0; and what
// sums of shifted residues start with.
struct Recombination {
  Modulus modulus;
  i64 weights[kSmallModuli];
  i64 product;
  i64 start;
};

// The integer around 0 that a residue x < m stands for: from -m / 2 to m / 2.
RNS_INLINE i32 centred(u32 x, u32 last) { return static_cast<i32>(x <= last / 2 ? x : x - last - 1u); }

// The bits of a float from 2^23 to 2^24, which is an integer, are the integer and a constant: so products may
// be added up to the bits of one. A lesser float is rounded to an integer by adding kRounder.
constexpr i32 kFloatBits = 0x4a800000;
constexpr float kRounder = 12582912.0f;  // 1.5 2^23
constexpr i32 kRounderBits = 12582912 + kFloatBits;
constexpr i32 kShortTerms = 256;  // products of two parts that may be added to q.start

RNS_INLINE float float_of(i32 bits) {
#if defined(__CUDA_ARCH__)
  return __int_as_float(bits);
#else
  float number;
  __builtin_memcpy(&number, &bits, sizeof number);
  return number;
#endif
}

RNS_INLINE i32 bits_of(float number) {
#if defined(__CUDA_ARCH__)
  return __float_as_int(number);
#else
  i32 bits;
  __builtin_memcpy(&bits, &number, sizeof bits);
  return bits;
#endif
}

RNS_INLINE float multiply_add(float x, float y, float z) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(x, y, z);
#else
  return __builtin_fmaf(x, y, z);
#endif
}

// What a shifted residue has more than the residue.
RNS_INLINE u32 shift_of(const SmallModulus& q) {
  return static_cast<u32>(kFloatBits) - static_cast<u32>(kRounderBits) * static_cast<u32>(q.modulus);
}

// x modulo q, from -128 to 128, and the shift, of the sum q.start + x, -2^22 + 2^9 <= x <= 2^22 + 128, as
// kShortTerms products of -128 to 127 and a residue are. The quotient is off from that of the float and q by
// at most 1/2 + 1/q, so that the rest is less than 129.
RNS_INLINE u32 shifted_residue(i32 sum, const SmallModulus& q) {
  const i32 quotient = bits_of(multiply_add(float_of(sum), q.inverse, kRounder));
  return static_cast<u32>(sum) - static_cast<u32>(quotient) * static_cast<u32>(q.modulus);
}

// The same of any sum x that begins with 0, from -128 to 128: the quotient is off from x / q by at most
// 1/2 + 2^-8.
RNS_INLINE u32 shifted_long_residue(i32 sum, const SmallModulus& q) {
  const i64 half = static_cast<i64>(1) << (kReciprocalBits - 1);
  const i32 quotient = static_cast<i32>((static_cast<i64>(sum) * q.reciprocal + half) >> kReciprocalBits);
  return static_cast<u32>(sum) - static_cast<u32>(quotient) * static_cast<u32>(q.modulus) + shift_of(q);
}

// What a matrix has of a number: its residue times a factor, from -128 to 127, which is the last byte of
// this. Parts of the number are at most 2^15 and 2^16 in magnitude, or 2^9 and 2^11; what they are multiplied
// by is at most 81, or 128. Whether the factor is other than 1 is asked once for many numbers, for their
// parts are computed side by side.
template <bool HasFactor>
RNS_INLINE u32 small_part(i32 x, const SmallModulus& q) {
  const u32 word = static_cast<u32>(x);
  u32 sum = static_cast<u32>(q.start);
  if (HasFactor) {
    sum += static_cast<u32>(x >> 22) * static_cast<u32>(q.upper) +
           (word >> 11 & 0x7ffu) * static_cast<u32>(q.middle) + (word & 0x7ffu) * static_cast<u32>(q.factor);
  } else {
    sum += static_cast<u32>(x >> 16) * static_cast<u32>(q.upper) + (word & 0xffffu);
  }
  return shifted_residue(static_cast<i32>(sum), q);
}

// The parts of a number, for many moduli: as floats, whose products and sums are integers below 2^24 and so
// exact. GPUs multiply twice as many of them as integers.
template <bool HasFactor>
struct NumberParts {
  float upper;
  float middle;
  float lower;

  RNS_INLINE explicit NumberParts(i32 x)
      : upper(static_cast<float>(x >> 22)),
        middle(static_cast<float>(x >> 11 & 0x7ff)),
        lower(static_cast<float>(x & 0x7ff)) {}

  // Equals small_part of the number.
  RNS_INLINE u32 residue(const SmallModulus& q) const {
    const float start = multiply_add(upper, q.parts[0], float_of(q.start));
    return shifted_residue(bits_of(multiply_add(lower, q.parts[2], multiply_add(middle, q.parts[1], start))),
                           q);
  }
};

template <>
struct NumberParts<false> {
  float upper;
  i32 lower;

  RNS_INLINE explicit NumberParts(i32 x) : upper(static_cast<float>(x >> 16)), lower(x & 0xffff) {}

  RNS_INLINE u32 residue(const SmallModulus& q) const {
    return shifted_residue(bits_of(multiply_add(upper, q.parts[0], float_of(q.start + lower))), q);
  }
};

// Collects the shifted residues modulo each q of a sum S, each times the inverse modulo q of Q / q,
// |S| / Q <= 1/2 - 2^-7.
struct SmallResidues {
  i64 sum;  // begins as Recombination::start

  RNS_INLINE void add(u32 residue, i64 weight) {
    sum = static_cast<i64>(static_cast<u64>(sum) + residue * static_cast<u64>(weight));
  }

  // |S| mod m. The weights' values add up to less than 1024 m in magnitude, also with what corrects them. The
  // sum started with 1024 m, so that they are its last 43 bits; and with half of 2^17 above these, so that
  // the fractions, off by less than 2^10, are rounded to the integer by how many Q the value is too great.
  RNS_INLINE u32 reduce(const Modulus& m, i64 product) const {
    const i64 value = sum & ((static_cast<i64>(1) << kValueBits) - 1);
    const i32 excess = static_cast<i32>(sum >> (kValueBits + kFractionBits));
    return mod_reduce(static_cast<u64>(value + static_cast<i64>(excess) * static_cast<i32>(product)), m);
  }
};

}  // namespace rns
