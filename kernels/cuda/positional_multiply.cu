// Products of positional numbers. Neighbouring threads read the same limb of neighbouring numbers. Numbers
// that fit registers take one thread, compiled for their limbs. Longer ones take several lanes of a warp, or
// one thread that multiplies them by tiles: signed ones, and the longest.
#include "grid.cuh"
#include "limb_lanes.cuh"

using namespace rns;

// Limbs of the operands, and those that are computed; whether no operand is signed, and a sum is none of
// signed ones.
#ifndef RNS_X_LIMBS
#define RNS_X_LIMBS 4
#define RNS_Y_LIMBS 3
#define RNS_COLUMNS 7
#define RNS_IS_PLAIN 0
#define RNS_IS_SUM 0
#endif

namespace {

// The addend may be the result's own memory, for each thread reads a limb of it before it writes that.
// The limbs `columns` of x y + addend are computed, and those of the result written: modulo 2^bits. Flags may
// be null.
struct ProductTask {
  LimbOperand x, y, addend;
  u32* out;
  u8* overflowed;
  i64 out_limbs;
  i64 count;
  i64 columns;      // where flags are asked for, all that numbers of at most one bit too many have
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
      lost |= limb ^ wrapped;
      limb = wrapped;
      if (task.is_signed != 0) above = limb >> 31 != 0 ? ~0u : 0;
    }
    __stcs(task.out + i * task.count + j, limb);
  }
  // The bits of a number's magnitude, or one less if it is negative, but at least 1 unless it is 0.
  __device__ i64 length(const LimbOperand& x, u32 sign) const {
    for (i64 i = x.limbs - 1; i >= 0; --i) {
      if (const u32 limb = x.at(i, j) ^ sign) return 32 * i + 32 - __clz(static_cast<i32>(limb));
    }
    return sign & 1;
  }
  // A product of numbers of a and b bits has a + b - 1 at least: too many, or by one at most too many.
  __device__ bool is_too_long() const {
    if (task.addend.limbs != 0) return false;
    const i64 bits = 32 * task.out_limbs - task.unused_bits;
    const i64 a = length(task.x, x_sign), b = length(task.y, y_sign);
    return a != 0 && b != 0 && a + b >= bits + 2;
  }
  __device__ void end() {
    if (task.overflowed != nullptr) task.overflowed[j] = lost != 0 || is_too_long();
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
      if (RNS_IS_SUM) sum.add(task.addend.at_or_zero(c, j), 0, 0);
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

#if RNS_LANES > 1

// Numbers that are not signed, and nothing added: each lane multiplies its limbs of x by one limb of y after
// the other. The lowest limb is complete then, and leaves.
__global__ void multiply_by_lanes(ProductTask task) {
  for (i64 warp = thread_index() / 32; warp * kNumbers < task.count; warp += thread_count() / 32) {
    const Share share(warp, task.count);
    const bool is_lowest = share.first == 0;
    const i32 columns = static_cast<i32>(task.columns), out_limbs = static_cast<i32>(task.out_limbs);
    Result result(task, share.j);
    u32* const out = task.out + share.j;
    const auto take = [&](const u32* limbs, i32 first) {
      if (!share.is_stored) return;
      if (first + RNS_LIMBS < out_limbs) {
        u32* to = out + first * task.count;
#pragma unroll
        for (i32 i = 0; i < RNS_LIMBS; ++i, to += task.count) __stcs(to, limbs[i]);
        return;
      }
#pragma unroll
      for (i32 i = 0; i < RNS_LIMBS; ++i) {
        if (first + i < columns) result.take(first + i, limbs[i]);
      }
    };
    u32 x[RNS_LIMBS], y[RNS_LIMBS], next[RNS_LIMBS];
    share.load(x, task.x);
    load_from(next, task.y, share.j, 0);
    LaneSums sums;
    sums.clear();
    i32 done = 0;
#pragma unroll 1
    while (done < columns && done < task.y.limbs) {
      share.copy(y, next);
      load_from(next, task.y, share.j, done + RNS_LIMBS);  // before the products, which hide that
#pragma unroll
      for (i32 step = 0; step < RNS_LIMBS; ++step) {
        sums.add_product(x, y[step]);
        y[step] = sums.column[0].low;
        sums.shift(is_lowest ? 0 : y[step]);
      }
      if (is_lowest) take(y, done);
      done += RNS_LIMBS;
    }
    if (done < columns) {
      sums.resolve(x);
      take(x, done + share.first);
      for (i32 i = done + RNS_LANES * RNS_LIMBS; is_lowest && share.is_stored && i < columns; ++i)
        result.take(i, 0);
    }
    if (task.overflowed == nullptr) continue;
    u32 lost = __ballot_sync(~0u, result.lost != 0) >> lane() % kNumbers;
#pragma unroll
    for (i32 step = 16; step >= kNumbers; step /= 2) lost |= lost >> step;
    if (is_lowest && share.is_stored) task.overflowed[share.j] = (lost & 1) != 0 || result.is_too_long();
  }
}

#endif

}  // extern "C"
