// Products of positional numbers, one number a thread. Neighbouring threads read the same limb of
// neighbouring numbers. Numbers that fit registers have a compilation for their limbs; longer ones are
// multiplied by tiles.
#include "grid.cuh"
#include "limb_sums.cuh"

using namespace rns;

// Limbs of the operands, and those that are computed; whether no operand is signed and nothing is added.
#ifndef RNS_X_LIMBS
#define RNS_X_LIMBS 4
#define RNS_Y_LIMBS 3
#define RNS_COLUMNS 7
#define RNS_IS_PLAIN 0
#endif

namespace {

// The limbs `columns` of x y + addend are computed, and those of the result written: modulo 2^bits. Flags may
// be null.
struct ProductTask {
  LimbOperand x, y, addend;
  u32* out;
  u8* overflowed;
  i64 out_limbs;
  i64 count;
  i64 columns;
  i32 unused_bits;  // of the result's highest limb
  i32 is_signed;
};

// What becomes of the limbs of a product, which come one by one.
struct Result {
  const ProductTask& task;
  i64 j;
  u32 x_sign, y_sign, addend_sign;
  i64 carry;
  u32 lost, above;

  __device__ Result(const ProductTask& t, i64 number)
      : task(t), j(number), x_sign(0), y_sign(0), addend_sign(0), carry(0), lost(0), above(0) {
    if (RNS_IS_PLAIN || task.is_signed == 0) return;
    x_sign = task.x.sign(j);
    y_sign = task.y.sign(j);
    if (task.addend.limbs != 0) addend_sign = task.addend.sign(j);
  }

  // In two's complement limbs are those of x + s 2^(32 limbs of x), where s is 1 of negative numbers.
  __device__ u32 adjusted(i64 i, u32 limb) {
    const i64 a = task.x.limbs, b = task.y.limbs;
    i64 sum = carry + limb;
    if (task.addend.limbs != 0) sum += i < task.addend.limbs ? task.addend.at(i, j) : addend_sign;
    if (i >= a && x_sign != 0) sum -= task.y.at_or_zero(i - a, j);
    if (i >= b && y_sign != 0) sum -= task.x.at_or_zero(i - b, j);
    if (i == a + b) sum += x_sign & y_sign & 1;
    carry = sum >> 32;
    return static_cast<u32>(sum);
  }
  __device__ void take(i64 i, u32 limb) {
    if (!RNS_IS_PLAIN) limb = adjusted(i, limb);
    if (i >= task.out_limbs) {
      lost |= limb ^ above;
      return;
    }
    if (i == task.out_limbs - 1) {
      const u32 shifted = limb << task.unused_bits;
      const u32 wrapped = task.is_signed != 0
                              ? static_cast<u32>(static_cast<i32>(shifted) >> task.unused_bits)
                              : shifted >> task.unused_bits;
      lost = limb ^ wrapped;
      limb = wrapped;
      if (task.is_signed != 0) above = limb >> 31 != 0 ? ~0u : 0;
    }
    __stcs(task.out + i * task.count + j, limb);
  }
  __device__ void end() {
    if (task.overflowed != nullptr) task.overflowed[j] = lost != 0;
  }
};

__device__ void load_tile(const LimbOperand& x, i64 tile, i64 j, u32* limbs) {
#pragma unroll
  for (i32 t = 0; t < kTileLimbs; ++t) limbs[t] = x.at_or_zero(tile * kTileLimbs + t, j);
}

}  // namespace

extern "C" {

__global__ void multiply_in_registers(ProductTask task) {
  for (i64 j = thread_index(); j < task.count; j += thread_count()) {
    u32 x[RNS_X_LIMBS], y[RNS_Y_LIMBS];
#pragma unroll
    for (i32 i = 0; i < RNS_X_LIMBS; ++i) x[i] = task.x.at(i, j);
#pragma unroll
    for (i32 i = 0; i < RNS_Y_LIMBS; ++i) y[i] = task.y.at(i, j);
    Result result(task, j);
    ColumnSum sum = {0, 0, 0};
#pragma unroll
    for (i32 c = 0; c < RNS_COLUMNS; ++c) {
#pragma unroll
      for (i32 i = 0; i < RNS_X_LIMBS; ++i) {
        if (c - i >= 0 && c - i < RNS_Y_LIMBS) sum.add_product(x[i], y[c - i]);
      }
      result.take(c, sum.low);
      sum.shift();
    }
    result.end();
  }
}

__global__ void multiply_by_tiles(ProductTask task) {
  const i64 x_tiles = (task.x.limbs + kTileLimbs - 1) / kTileLimbs;
  const i64 y_tiles = (task.y.limbs + kTileLimbs - 1) / kTileLimbs;
  for (i64 j = thread_index(); j < task.count; j += thread_count()) {
    Result result(task, j);
    TileSums sums;
    sums.clear();
    for (i64 c = 0; c * kTileLimbs < task.columns; ++c) {
      for (i64 i = c < y_tiles ? 0 : c - y_tiles + 1; i <= c && i < x_tiles; ++i) {
        u32 a[kTileLimbs], b[kTileLimbs];
        load_tile(task.x, i, j, a);
        load_tile(task.y, c - i, j, b);
        sums.add_product(a, b);
      }
      u32 limbs[kTileLimbs];
      sums.shift(limbs);
#pragma unroll
      for (i32 t = 0; t < kTileLimbs; ++t) {
        if (c * kTileLimbs + t < task.columns) result.take(c * kTileLimbs + t, limbs[t]);
      }
    }
    result.end();
  }
}

}  // extern "C"
