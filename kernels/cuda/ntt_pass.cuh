// What passes of number-theoretic transforms share: what is compiled for, operands, and factors between
// passes.
//
// Each length and kind of modulus is compiled by itself, at first use, with these set.
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

namespace rns {

constexpr i32 kLogLength = RNS_LOG_LENGTH;
constexpr i32 kLogColumns = RNS_LOG_COLUMNS;
constexpr i32 kLogValues = RNS_LOG_VALUES;

// A pass over rows of numbers, one row modulo each prime, of `tiles` tiles each. Factors are of power k of a
// root: roots[half + k] of order 2 half, below the pass's length (a row of them for each prime); and w^m is
// low[m % 2^split] times high[m >> split], as long as there are passes to come.
struct Pass {
  const u32* x;
  u32* out;
  i64 x_stride;
  i64 out_stride;
  const Modulus* moduli;
  const Factor* roots;
  const Factor* low;
  const Factor* high;
  const Factor* scales;  // what each result is multiplied by, or null
  i32 rows;
  u32 tiles;
  i32 log_length;  // of the transforms, of which this is a pass
  i32 log_rest;  // of what passes after this one transform, or, in the last pass, of those before it but the
                 // first
  i32 log_split;
  i32 log_high;
};

// The tile that a block is at: the row, and which one of it.
struct Place {
  i32 row;
  u32 tile;

  static __device__ Place of(u32 number, u32 tiles) {
    const u32 row = number / tiles;
    return {static_cast<i32>(row), number - row * tiles};
  }
};

// |x w^m|, both factors of the prime's row.
template <class F>
__device__ u32 multiply_by_power(u32 x, u32 m, const Factor* low, const Factor* high, i32 log_split,
                                 u32 last) {
  x = F::multiply(x, load_factor(low, m & ((1u << log_split) - 1)), last);
  return F::multiply(x, load_factor(high, m >> log_split), last);
}

}  // namespace rns
