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

// Asks for a line of memory, so that the second-level cache has it when the next tile is read. It is no error
// to ask for what is not there.
__device__ inline void prefetch(const u32* x) { asm volatile("prefetch.global.L2 [%0];" ::"l"(x)); }

constexpr i32 kLine = 32;  // words that are asked for at once

// The power m of a root, times the scale if there is one.
template <class F>
__device__ Factor power(const Pass& pass, i32 row, u32 m, bool is_scaled, Modulus modulus) {
  const Factor* low = pass.low + (static_cast<i64>(row) << pass.log_split);
  const Factor* high = pass.high + (static_cast<i64>(row) << pass.log_high);
  u32 value = low[m & ((1u << pass.log_split) - 1)].value;
  value = F::multiply(value, load_factor(high, m >> pass.log_split), modulus.last);
  if (is_scaled) value = F::multiply(value, load_factor(pass.scales, row), modulus.last);
  return F::factor(value, modulus);
}

}  // namespace rns
