// CRC-32C (Castagnoli) as arithmetic with polynomials over GF(2) modulo P, in words of 32 bits.
//
// A word is a polynomial of degree below 32; bit 31 - i is the coefficient of x^i, as the bytes of a little-
// endian message have it. The CRC of a message of words w_0 ... w_{n-1} is the complement of
//
//   (w'_0 x^(32 (n-1)) + w'_1 x^(32 (n-2)) + ... + w'_{n-1}) x^32 mod P,    w'_0 = complement of w_0
//
// which is linear in the words: parts of a message can be taken anywhere, in any order, and be combined by
// multiplications with powers of x, as crc32_combine of zlib does (M. Adler). Words that are a constant
// distance apart are summed by Horner's rule, with one factor. A product with it is looked up in tables for
// each four bits of the word (R. Sarwate, CACM 31(8), 1988; M. Kounavis and F. Berry, "Novel table
// lookup-based algorithms for high-performance CRC generation", IEEE Trans. Computers 57(11), 2008), and what
// Horner's rule leaves is folded together (V. Gopal et al., "Fast CRC computation for generic polynomials
// using PCLMULQDQ", Intel, 2009).
#pragma once

#include "base.cuh"

namespace rns {

// x^32 mod P
constexpr u32 kCrcPolynomial = 0x82f63b78u;

// x^0
constexpr u32 kCrcOne = 0x80000000u;

// a b mod P
RNS_INLINE constexpr u32 crc_multiply(u32 a, u32 b) {
  u32 product = 0;
  for (i32 i = 0; i < 32; ++i) {
    product ^= a & kCrcOne ? b : 0u;
    a <<= 1;
    b = b & 1u ? (b >> 1) ^ kCrcPolynomial : b >> 1;
  }
  return product;
}

// a^exponent mod P
RNS_INLINE constexpr u32 crc_power(u32 a, u64 exponent) {
  u32 result = kCrcOne;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result = crc_multiply(result, a);
    a = crc_multiply(a, a);
  }
  return result;
}

// x^(32 words) mod P: the factor of what is so many words before the end.
RNS_INLINE constexpr u32 crc_shift(u64 words) { return crc_power(kCrcPolynomial, words); }

// Tables of the products of every four bits of a word with a factor: 16 entries for each of 8 places.
constexpr i32 kCrcEntries = 128;

RNS_INLINE u32 crc_table_entry(i32 entry, u32 factor) {
  return crc_multiply(static_cast<u32>(entry % 16) << (entry / 16 * 4), factor);
}

// a factor mod P, of tables whose entries are `stride` apart.
RNS_INLINE u32 crc_multiply(u32 a, const u32* tables, i32 stride) {
  u32 product = 0;
  for (i32 place = 0; place < 8; ++place) {
    product ^= tables[(16 * place + static_cast<i32>(a >> (4 * place) & 15u)) * stride];
  }
  return product;
}

}  // namespace rns
