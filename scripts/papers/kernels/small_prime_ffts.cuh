// Butterflies of plain radix-2 transforms modulo small primes, which go over memory once for each level. The
// product uses none of these: scripts/bench_fermat.py compares with them.
#pragma once

#include <rns/modular.cuh>

namespace rns {

// The lowest `bits` bits of i, the last first; i < 2^bits, and bits from 1 to 32.
RNS_INLINE u32 bit_reversed(u32 i, i32 bits) {
  i = (i >> 1 & 0x55555555u) | (i & 0x55555555u) << 1;
  i = (i >> 2 & 0x33333333u) | (i & 0x33333333u) << 2;
  i = (i >> 4 & 0x0F0F0F0Fu) | (i & 0x0F0F0F0Fu) << 4;
  i = (i >> 8 & 0x00FF00FFu) | (i & 0x00FF00FFu) << 8;
  return (i >> 16 | i << 16) >> (32 - bits);
}

// J. Cooley and J. Tukey's, decimation in time: x[0] + y and x[0] - y in their places, with y = x[half] w.
RNS_INLINE void cooley_tukey_butterfly(u32* x, i64 half, u32 y, u32 last) {
  const u32 a = x[0];
  x[0] = mod_add(a, y, last);
  x[half] = mod_sub(a, y, last);
}

// T. Stockham's, decimation in frequency: a + b, and (a - b) w `stride` elements behind it.
RNS_INLINE void stockham_butterfly(u32 a, u32 b, Factor w, u32 last, u32* out, i64 stride) {
  out[0] = mod_add(a, b, last);
  out[stride] = mod_mul(mod_sub(a, b, last), w, last);
}

}  // namespace rns
