// Element-wise arithmetic modulo r^k + 1: a thread takes one number, or some side by side. Neighbouring
// threads read the same digit of neighbouring numbers.
#include "fermat_number.cuh"
#include "grid.cuh"

using namespace rns;

namespace {

constexpr i32 kSide = RNS_FERMAT_SIDE;

// Digit i of number j is data[i * stride + j * step]; step is 0 for one number, else 1.
struct FermatOperand {
  const Digit* data;
  i64 stride;
  i64 step;

  __device__ const Digit* at(i32 i, i64 j) const { return data + i * stride + j * step; }
};

// The first kSide * vectors of `count` numbers can be read and written kSide together: no operand is one for
// all of them.
struct FermatTask {
  FermatOperand x[2];
  Digit* out;
  i64 out_stride;
  i64 count;
  i64 vectors;
};

// The digit of some numbers side by side: one load or store.
template <i32 kCount>
struct alignas(kCount * sizeof(Digit)) Side {
  Digit of[kCount];
};

// A digit of some numbers, to z[s][i] for each of them.
template <i32 kCount>
__device__ __forceinline__ void load(const Digit* digit, i32 i, Digit (&z)[kCount][kDigits]) {
  const auto side = *reinterpret_cast<const Side<kCount>*>(digit);
#pragma unroll
  for (i32 s = 0; s < kCount; ++s) z[s][i] = side.of[s];
}

template <i32 kCount>
__device__ __forceinline__ void store(const FermatTask& task, i64 j, const Digit (&z)[kCount][kDigits]) {
#pragma unroll
  for (i32 i = 0; i < kDigits; ++i) {
    Side<kCount> side;
#pragma unroll
    for (i32 s = 0; s < kCount; ++s) side.of[s] = z[s][i];
    *reinterpret_cast<Side<kCount>*>(task.out + i * task.out_stride + j) = side;
  }
}

struct Sum {
  static __device__ __forceinline__ void of(const Digit* x, const Digit* y, Digit* out) { add(x, y, out); }
};
struct Difference {
  static __device__ __forceinline__ void of(const Digit* x, const Digit* y, Digit* out) {
    subtract(x, y, out);
  }
};
struct Product {
  static __device__ __forceinline__ void of(const Digit* x, const Digit* y, Digit* out) {
    multiply(x, y, out);
  }
};

// An operation on two numbers.
template <class Operation>
struct Combination {
  const FermatTask& task;

  template <i32 kCount>
  __device__ __forceinline__ void take(i64 j) const {
    Digit x[kCount][kDigits], y[kCount][kDigits], z[kCount][kDigits];
#pragma unroll
    for (i32 i = 0; i < kDigits; ++i) {
      load(task.x[0].at(i, j), i, x);
      load(task.x[1].at(i, j), i, y);
    }
#pragma unroll
    for (i32 s = 0; s < kCount; ++s) Operation::of(x[s], y[s], z[s]);
    store(task, j, z);
  }
};

// x r^shift. The digits come from memory in the places that they have in the result.
struct Turn {
  const FermatTask& task;
  i32 shift;

  template <i32 kCount>
  __device__ __forceinline__ void take(i64 j) const {
    const Digit* data = task.x[0].data + j;
    const i64 stride = task.x[0].stride;
    FermatShift by = {kDigits, shift};
    // Else compilers hold each digit's place and sign in registers, and there are half as many threads.
    asm volatile("" : "+r"(by.shift));
    Digit x[kCount][kDigits];
#pragma unroll
    for (i32 i = 0; i < kDigits; ++i) load(data + by.from(i) * stride, i, x);
#pragma unroll
    for (i32 s = 0; s < kCount; ++s) settle_shift(by, data[(kDigits - 1) * stride + s] == kRadix, x[s]);
    store(task, j, x);
  }
};

// All numbers, as many side by side as can be.
template <class Operation>
__device__ __forceinline__ void take_all(const FermatTask& task, const Operation& operation) {
#pragma unroll 1
  for (i64 v = thread_index(); v < task.vectors; v += thread_count())
    operation.template take<kSide>(v * kSide);
#pragma unroll 1
  for (i64 j = task.vectors * kSide + thread_index(); j < task.count; j += thread_count())
    operation.template take<1>(j);
}

}  // namespace

extern "C" {

__global__ void add_numbers(FermatTask task) { take_all(task, Combination<Sum>{task}); }

__global__ void subtract_numbers(FermatTask task) { take_all(task, Combination<Difference>{task}); }

// One at a time, for arithmetic takes longer than memory.
__global__ void multiply_numbers(FermatTask task) {
  for (i64 j = thread_index(); j < task.count; j += thread_count()) Combination<Product>{task}.take<1>(j);
}

__global__ void multiply_by_root(FermatTask task, i32 shift) { take_all(task, Turn{task, shift}); }

// The least index of a number that is not canonical; `first` is at least the count before.
__global__ void first_invalid(FermatTask task, i64* first) {
  for (i64 j = thread_index(); j < task.count; j += thread_count()) {
    Digit others = 0;
    bool is_invalid = false;
    for (i32 i = 0; i + 1 < kDigits; ++i) {
      const Digit digit = *task.x[0].at(i, j);
      others |= digit;
      is_invalid |= digit >= kRadix;
    }
    const Digit last = *task.x[0].at(kDigits - 1, j);
    is_invalid |= last > kRadix || (last == kRadix && others != 0);
    if (is_invalid) atomicMin(first, j);
  }
}

}  // extern "C"
