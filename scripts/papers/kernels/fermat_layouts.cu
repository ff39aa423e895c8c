// Arithmetic modulo r^k + 1 on numbers whose digits lie next to one another, where the product has the same
// digit of all numbers next to one another: what scripts/bench_fermat.py compares.
#include "fermat_number.cuh"
#include "grid.cuh"

using namespace rns;

namespace {

__device__ void load(const Digit* number, Digit* x) {
#pragma unroll
  for (i32 i = 0; i < kDigits; ++i) x[i] = number[i];
}

__device__ void store(const Digit* x, Digit* number) {
#pragma unroll
  for (i32 i = 0; i < kDigits; ++i) number[i] = x[i];
}

}  // namespace

extern "C" {

__global__ void add_by_number(const Digit* a, const Digit* b, Digit* out, i64 count) {
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    Digit x[kDigits], y[kDigits];
    load(a + j * kDigits, x);
    load(b + j * kDigits, y);
    add(x, y, x);
    store(x, out + j * kDigits);
  }
}

__global__ void multiply_by_root_by_number(const Digit* a, i32 shift, Digit* out, i64 count) {
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    Digit x[kDigits];
    const FermatShift by = {kDigits, shift};
    shifted(by, [&](i32 i) { return a[j * kDigits + i]; }, x);
    store(x, out + j * kDigits);
  }
}

}  // extern "C"
