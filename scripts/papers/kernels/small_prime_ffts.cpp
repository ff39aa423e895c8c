// Plain transforms on the CPU, one row after the other, as a library with a plain C interface. A row has
// 2^bits elements modulo one prime.
#include "small_prime_ffts.cuh"

using namespace rns;

namespace {

void reverse_bits(const u32* __restrict__ x, i32 bits, u32* __restrict__ out) {
  for (i64 i = 0; i < 1LL << bits; ++i) out[bit_reversed(static_cast<u32>(i), bits)] = x[i];
}

// The powers are a running product by the root of order 2 half.
void cooley_tukey_level(Factor root, Modulus modulus, i64 length, i64 half, u32* x) {
  for (i64 start = 0; start < length; start += 2 * half) {
    u32 w = 1;
    for (i64 j = start; j < start + half; ++j) {
      cooley_tukey_butterfly(x + j, half, mod_mul(x[j + half], w, modulus), modulus.last);
      w = mod_mul(w, root, modulus.last);
    }
  }
}

void stored_level(const Factor* __restrict__ powers, u32 last, i64 length, i64 half, u32* __restrict__ x) {
  const i64 step = length / (2 * half);
  for (i64 start = 0; start < length; start += 2 * half) {
    u32* block = x + start;
    for (i64 j = 0; j < half; ++j) {
      cooley_tukey_butterfly(block + j, half, mod_mul(block[j + half], powers[j * step], last), last);
    }
  }
}

void stockham_level(const u32* __restrict__ x, const Factor* powers, u32 last, i64 length, i64 stride,
                    u32* __restrict__ out) {
  for (i64 start = 0; start < length / 2; start += stride) {
    const Factor w = powers[start];
    for (i64 j = start; j < start + stride; ++j)
      stockham_butterfly(x[j], x[j + length / 2], w, last, out + start + j, stride);
  }
}

}  // namespace

extern "C" {

// `roots` are of order 2, 4, ... for each row.
void cooley_tukey(const u32* x, const Factor* roots, const Modulus* moduli, i64 rows, i64 bits, u32* out) {
  const i64 length = 1LL << bits;
  for (i64 row = 0; row < rows; ++row, x += length, out += length, roots += bits) {
    reverse_bits(x, static_cast<i32>(bits), out);
    for (i64 level = 0; level < bits; ++level)
      cooley_tukey_level(roots[level], moduli[row], length, 1LL << level, out);
  }
}

// `powers` are the first length / 2 ones of each row's root, here and below.
void cooley_tukey_stored(const u32* x, const Factor* powers, const Modulus* moduli, i64 rows, i64 bits,
                         u32* out) {
  const i64 length = 1LL << bits;
  for (i64 row = 0; row < rows; ++row, x += length, out += length, powers += length / 2) {
    reverse_bits(x, static_cast<i32>(bits), out);
    for (i64 level = 0; level < bits; ++level)
      stored_level(powers, moduli[row].last, length, 1LL << level, out);
  }
}

// `buffer` has room for a row. Levels write to it and to `out` in turn, the last one to `out`.
void stockham(const u32* x, const Factor* powers, const Modulus* moduli, i64 rows, i64 bits, u32* out,
              u32* buffer) {
  const i64 length = 1LL << bits;
  for (i64 row = 0; row < rows; ++row, x += length, out += length, powers += length / 2) {
    const u32* source = x;
    for (i64 level = 0; level < bits; ++level) {
      u32* target = (bits - level) % 2 ? out : buffer;
      stockham_level(source, powers, moduli[row].last, length, 1LL << level, target);
      source = target;
    }
  }
}

}  // extern "C"
