// Greatest common divisors and inverses of positional numbers, one number a thread, in memory of which
// neighbouring threads use neighbouring words.
#include <rns/divide.cuh>
#include <rns/gcd.cuh>

#include "grid.cuh"
#include "limb_sums.cuh"

using namespace rns;

namespace {

// The magnitude of number j, with zeros above.
__device__ void load_magnitude(const LimbOperand& x, i64 j, bool is_signed, Place to, i64 count) {
  const Magnitude<Place> magnitude(x.place(j), x.limbs, is_signed);
  for (i64 i = 0; i < count; ++i) to[i] = i < magnitude.count ? magnitude[i] : 0;
}

}  // namespace

extern "C" {

// The workspace has room for two numbers a thread, of `limbs` and one more.
__global__ void gcd_positional(LimbOperand x, LimbOperand y, i64 count, i64 limbs, i32 is_signed,
                               u32* workspace, u32* out) {
  const Place f = {workspace + thread_index(), thread_count()}, g = f + (limbs + 1);
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    load_magnitude(x, j, is_signed != 0, f, limbs + 1);
    load_magnitude(y, j, is_signed != 0, g, limbs + 1);
    gcd_of(f, g, limbs + 1);
    for (i64 i = 0; i < limbs; ++i) out[i * count + j] = f[i];
  }
}

// Inverses modulo odd numbers, of others that are not negative and have no more limbs. The workspace has room
// for four numbers a thread. `first` becomes the least index of a number that has none; it is at least
// `count` before.
__global__ void invert_positional(LimbOperand x, LimbOperand modulus, i64 count, u32* workspace, u32* out,
                                  i64* first) {
  const i64 limbs = modulus.limbs, length = limbs + 1;
  const Place f = {workspace + thread_index(), thread_count()};
  const Place g = f + length, d = g + length, e = d + length;
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    load_magnitude(modulus, j, false, f, length);
    load_magnitude(x, j, false, g, length);
    if (!invert_modulo(f, g, d, e, modulus.place(j), length)) atomicMin(first, j);
    for (i64 i = 0; i < limbs; ++i) out[i * count + j] = d[i];
  }
}

}  // extern "C"
