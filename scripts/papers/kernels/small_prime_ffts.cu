// Plain transforms on a GPU: a launch is one level of all rows, and a thread takes a butterfly at a time. A
// row has 2^bits elements modulo one prime.
#include "grid.cuh"
#include "small_prime_ffts.cuh"

using namespace rns;

namespace {

// Calls a function of the row and the number in it for 2^bits things of each row.
template <class Function>
__device__ void for_each(i32 rows, i32 bits, Function function) {
  const i64 count = static_cast<i64>(rows) << bits;
  for (i64 t = thread_index(); t < count; t += thread_count()) function(t >> bits, t & ((1LL << bits) - 1));
}

}  // namespace

extern "C" {

__global__ void reverse_bits(const u32* x, i32 rows, i32 bits, u32* out) {
  for_each(rows, bits, [&](i64 row, i64 i) {
    out[(row << bits) + bit_reversed(static_cast<u32>(i), bits)] = x[(row << bits) + i];
  });
}

// `roots` are of order 2, 4, ... for each row; each butterfly computes its power.
__global__ void cooley_tukey(const Factor* roots, const Modulus* moduli, i32 rows, i32 bits, i32 level,
                             u32* x) {
  const i64 half = 1LL << level;
  for_each(rows, bits - 1, [&](i64 row, i64 i) {
    const Modulus modulus = moduli[row];
    const i64 j = i & (half - 1);
    u32* place = x + (row << bits) + 2 * i - j;
    const u32 w = mod_pow(roots[row * bits + level].value, static_cast<u64>(j), modulus);
    cooley_tukey_butterfly(place, half, mod_mul(place[half], w, modulus), modulus.last);
  });
}

// `powers` are the first half of each row's root's, here and below.
__global__ void cooley_tukey_stored(const Factor* powers, const Modulus* moduli, i32 rows, i32 bits,
                                    i32 level, u32* x) {
  const i64 half = 1LL << level;
  for_each(rows, bits - 1, [&](i64 row, i64 i) {
    const u32 last = moduli[row].last;
    const i64 j = i & (half - 1);
    u32* place = x + (row << bits) + 2 * i - j;
    const Factor w = powers[(row << (bits - 1)) + (j << (bits - 1 - level))];
    cooley_tukey_butterfly(place, half, mod_mul(place[half], w, last), last);
  });
}

__global__ void stockham(const u32* x, const Factor* powers, const Modulus* moduli, i32 rows, i32 bits,
                         i32 level, u32* out) {
  const i64 stride = 1LL << level;
  for_each(rows, bits - 1, [&](i64 row, i64 i) {
    const i64 start = i & -stride;
    const u32* place = x + (row << bits) + i;
    const Factor w = powers[(row << (bits - 1)) + start];
    u32* target = out + (row << bits) + start + i;
    stockham_butterfly(place[0], place[1LL << (bits - 1)], w, moduli[row].last, target, stride);
  });
}

}  // extern "C"
