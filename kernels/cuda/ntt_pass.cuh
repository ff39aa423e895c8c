// What passes of number-theoretic transforms share: what they are compiled for, operands, powers of roots.
//
// They are compiled for each length and kind of prime at first use, with these set.
#pragma once

#include "ntt_tile.cuh"

#ifndef RNS_FIELD
#define RNS_FIELD NarrowField
#define RNS_LOG_LENGTH 10
#define RNS_LOG_COLUMNS 4
#define RNS_LOG_VALUES 4
#define RNS_THREADS 1024  // of a block, at most
#define RNS_BLOCKS 1      // of a multiprocessor, at least
#endif
#ifndef RNS_TWIST
#define RNS_TWIST 0  // 1 or 2: elements are multiplied by powers of a root psi of order 2N before, or after
#endif

namespace rns {

using F = RNS_FIELD;
using Word = F::Word;
using Pair = F::Pair;
using Base = F::Base;

// Bytes at whose multiples shared memory begins, for factors to be read at once.
constexpr i32 kAlignment = sizeof(Pair);

constexpr i32 kLogLength = RNS_LOG_LENGTH;
constexpr i32 kLogColumns = RNS_LOG_COLUMNS;
constexpr i32 kLogValues = RNS_LOG_VALUES;

// Of a pass that is not twisted, of the first one and of the last one.
constexpr Kind kPlain = F::kSplits ? Kind::kCyclicInTime : Kind::kCyclic;
constexpr Kind kFirst = RNS_TWIST == 1 ? Kind::kTwistedInTime : kPlain;
constexpr Kind kLast = RNS_TWIST == 2 ? Kind::kTwistedAfter : kPlain;

// What stands between passes in column c at index j are powers c j of the root w of what is transformed. With
// twists they are of psi, the root of w: c (2 j + 1) or (2 c + 1) j, so a product with j and a rest.
__device__ inline u32 exponent(u32 column, u32 j) {
  return (RNS_TWIST == 0 ? column : 2 * column + (RNS_TWIST == 2)) * j;
}
__device__ inline u32 rest_of_exponent(u32 column) { return RNS_TWIST == 1 ? column : 0u; }

// A pass over rows of numbers, each row modulo a prime and of `tiles` tiles. Tables have a row for each
// prime: roots[half + k] are the factors of a tile, up to the pass's length; where passes follow, the power m
// of the root of what they and this one transform is low[m % 2^log_split] high[m >> log_split].
struct Pass {
  const Word* x;
  Word* out;
  i64 x_stride;
  i64 out_stride;
  const Base* moduli;
  const Pair* roots;
  const Pair* low;
  const Pair* high;
  const Pair*
      within;  // what stands between passes, at (j << kLogColumns) + c, for the columns of the first tile
  const Pair* scales;  // what results are multiplied by, or null
  i32 rows;
  u32 tiles;
  i32 log_length;  // in the last pass, of the whole transform
  i32 log_rest;    // of what is transformed by the passes after this one; in the last, by those between the
                   // first one and it
  i32 log_split;
  i32 log_high;  // of the length of a row of `high`
};

// A tile: its row, and which one of the row it is. Tiles of arrays that fit memory are fewer than 2^32.
struct Place {
  i32 row;
  u32 tile;

  static __device__ Place of(u32 number, u32 tiles) {
    const u32 row = number / tiles;
    return {static_cast<i32>(row), number - row * tiles};
  }
};

// Where a multiprocessor has one block, no other one computes while it waits for memory. Then it asks for the
// lines of its next tile, for the second-level cache to have them; it is no error to ask for what is not
// there.
constexpr bool kIsAlone = RNS_BLOCKS == 1;
constexpr i32 kLine = 128 / sizeof(Word);  // words
__device__ inline void prefetch(const Word* x) { asm volatile("prefetch.global.L2 [%0];" ::"l"(x)); }

// The power m of a root, times the scale if there is one.
__device__ inline Pair power(const Pass& pass, i32 row, u32 m, bool is_scaled, Base modulus) {
  const Pair* low = pass.low + (static_cast<i64>(row) << pass.log_split);
  const Pair* high = pass.high + (static_cast<i64>(row) << pass.log_high);
  Word value = low[m & ((1u << pass.log_split) - 1)].value;
  value = F::multiply(value, load_factor(high, m >> pass.log_split), modulus.last);
  if (is_scaled) value = F::multiply(value, load_factor(pass.scales, row), modulus.last);
  return F::factor(value, modulus);
}

}  // namespace rns
