// Element-wise arithmetic modulo r^k + 1: one thread takes one number. Neighbouring threads read the same
// digit of neighbouring numbers.
#include "fermat_number.cuh"
#include "grid.cuh"

using namespace rns;

namespace {

// Digit i of number j is data[i * stride + j * step]; step is 0 for one number, else 1.
struct FermatOperand {
  const Digit* data;
  i64 stride;
  i64 step;

  __device__ Digit at(i32 i, i64 j) const {
    const Digit* digit = data + i * stride + j * step;
    return step != 0 ? __ldcs(digit) : __ldg(digit);
  }
  __device__ void load(i64 j, Digit* x) const {
#pragma unroll
    for (i32 i = 0; i < kDigits; ++i) x[i] = at(i, j);
  }
};

struct FermatTask {
  FermatOperand x[2];
  Digit* out;
  i64 out_stride;
  i64 count;

  __device__ void store(i64 j, const Digit* x) const {
#pragma unroll
    for (i32 i = 0; i < kDigits; ++i) __stcs(out + i * out_stride + j, x[i]);
  }
};

}  // namespace

extern "C" {

__global__ void add_numbers(FermatTask task) {
  for (i64 j = thread_index(); j < task.count; j += thread_count()) {
    Digit x[kDigits], y[kDigits];
    task.x[0].load(j, x);
    task.x[1].load(j, y);
    add(x, y, x);
    task.store(j, x);
  }
}

__global__ void subtract_numbers(FermatTask task) {
  for (i64 j = thread_index(); j < task.count; j += thread_count()) {
    Digit x[kDigits], y[kDigits];
    task.x[0].load(j, x);
    task.x[1].load(j, y);
    subtract(x, y, x);
    task.store(j, x);
  }
}

__global__ void multiply_numbers(FermatTask task) {
  for (i64 j = thread_index(); j < task.count; j += thread_count()) {
    Digit x[kDigits], y[kDigits], z[kDigits];
    task.x[0].load(j, x);
    task.x[1].load(j, y);
    multiply(x, y, z);
    task.store(j, z);
  }
}

__global__ void multiply_by_root(FermatTask task, i32 shift) {
  for (i64 j = thread_index(); j < task.count; j += thread_count()) {
    Digit x[kDigits];
    const FermatShift by = {kDigits, shift};
    shifted(by, [&](i32 i) { return task.x[0].at(i, j); }, x);
    task.store(j, x);
  }
}

// The least index of a number that is not canonical; `first` is at least the count before.
__global__ void first_invalid(FermatTask task, i64* first) {
  for (i64 j = thread_index(); j < task.count; j += thread_count()) {
    Digit others = 0;
    bool is_invalid = false;
    for (i32 i = 0; i + 1 < kDigits; ++i) {
      const Digit digit = task.x[0].at(i, j);
      others |= digit;
      is_invalid |= digit >= kRadix;
    }
    const Digit last = task.x[0].at(kDigits - 1, j);
    is_invalid |= last > kRadix || (last == kRadix && others != 0);
    if (is_invalid) atomicMin(first, j);
  }
}

}  // extern "C"
