// Products of positional numbers. Neighbouring threads read the same limb of neighbouring numbers. Short
// numbers take one thread, compiled for their limbs, that goes by columns of the product; longer ones one or
// several lanes of a warp that go by rows.
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

constexpr i32 kAhead = 16;

// The addend may be the result's own memory, for only the thread that writes a limb of it reads that, before.
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
  template <i32 kLimbs>
  __device__ __forceinline__ void take_all(const u32* limbs, i32 first) {
    if (RNS_IS_PLAIN && first + kLimbs < task.out_limbs) {
      u32* to = task.out + j + first * task.count;
#pragma unroll
      for (i32 i = 0; i < kLimbs; ++i, to += task.count) __stcs(to, limbs[i]);
      return;
    }
#pragma unroll
    for (i32 i = 0; i < kLimbs; ++i) {
      if (first + i < task.columns) take(first + i, limbs[i]);
    }
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

#if RNS_ROWS > 0

// The limbs from `first` on, which the lanes of a number have, and zeros above. Where signs or an addend pass
// carries from limb to limb, one lane takes them all.
__device__ void take_rest(Result& result, const Share& share, const u32* limbs, i32 first) {
  const i32 columns = static_cast<i32>(result.task.columns);
  const bool takes = share.first == 0 && share.is_stored;
  if (RNS_IS_PLAIN) {
    if (share.is_stored) result.take_all<RNS_LIMBS>(limbs, first + share.first);
  } else {
#pragma unroll 1
    for (i32 part = 0; part < RNS_LANES; ++part) {
      u32 its[RNS_LIMBS];
#pragma unroll
      for (i32 i = 0; i < RNS_LIMBS; ++i) its[i] = of_lane(limbs[i], part * kNumbers + lane() % kNumbers);
      if (takes) result.take_all<RNS_LIMBS>(its, first + part * RNS_LIMBS);
    }
  }
  for (i32 i = first + RNS_LANES * RNS_LIMBS; takes && i < columns; ++i) result.take(i, 0);
}

#endif

}  // namespace

extern "C" {

__global__ void multiply_in_registers(ProductTask task) {
  for (i64 j = thread_index(); j < task.count; j += thread_count()) {
    u32 x[RNS_X_LIMBS], y[RNS_Y_LIMBS];
#pragma unroll
    for (i32 i = 0; i < RNS_X_LIMBS; ++i) x[i] = task.x.at(i, j);
#pragma unroll
    for (i32 i = 0; i < RNS_Y_LIMBS; ++i) y[i] = task.y.at(i, j);
    u32 z[kAhead];  // limbs of the addend, loaded before they are needed
#pragma unroll
    for (i32 c = 0; RNS_IS_SUM && c < kAhead; ++c) z[c] = task.addend.at_or_zero(c, j);
    Result result(task, j);
    ColumnSum sum = {0, 0, 0};
#pragma unroll
    for (i32 c = 0; c < RNS_COLUMNS; ++c) {
#pragma unroll
      for (i32 i = 0; i < RNS_X_LIMBS; ++i) {
        if (c - i >= 0 && c - i < RNS_Y_LIMBS) sum.add_product(x[i], y[c - i]);
      }
      if (RNS_IS_SUM) {
        sum.add(z[c % kAhead], 0, 0);
        if (c + kAhead < RNS_COLUMNS) z[c % kAhead] = task.addend.at_or_zero(c + kAhead, j);
      }
      result.take(c, sum.low);
      sum.shift();
    }
    result.end();
  }
}

#if RNS_ROWS > 0

// Each lane multiplies its limbs of x by one limb of y after the other. The lowest limb is complete then, and
// leaves. All threads of whole warps go the same way, so that the compiler needs no code for others between
// rows.
__global__ void multiply_by_rows(ProductTask task) {
  const Share share(thread_index() / 32, task.count);
  const bool is_lowest = share.first == 0;
  const i32 columns = static_cast<i32>(task.columns);
  Result result(task, share.j);
  u32 x[RNS_LIMBS], y[RNS_ROWS], next[RNS_ROWS];
  share.load(x, task.x);
  load_from<RNS_ROWS>(next, task.y, share.j, 0);
  LaneSums sums;
  sums.clear();
  i32 done = 0;
#pragma unroll 1
  while (done < columns && done < task.y.limbs) {
#pragma unroll
    for (i32 i = 0; i < RNS_ROWS; ++i) y[i] = next[i];
    load_from<RNS_ROWS>(next, task.y, share.j, done + RNS_ROWS);  // before the products, which hide that
#pragma unroll
    for (i32 step = 0; step < RNS_ROWS; ++step) {
      sums.add_product(x, y[step]);
      y[step] = sums.lowest();
      sums.shift(RNS_LANES == 1 ? 0 : of_lane(is_lowest ? 0 : y[step], lane() + kNumbers));
    }
    if (is_lowest && share.is_stored) result.take_all<RNS_ROWS>(y, done);
    done += RNS_ROWS;
  }
  if (done < columns) {
    sums.resolve(x);
    take_rest(result, share, x, done);
  }
  if (task.overflowed == nullptr) return;
  u32 lost = __ballot_sync(~0u, result.lost != 0) >> lane() % kNumbers;
#pragma unroll
  for (i32 step = 16; step >= kNumbers; step /= 2) lost |= lost >> step;
  if (is_lowest && share.is_stored) task.overflowed[share.j] = (lost & 1) != 0 || result.is_too_long();
}

#endif

}  // extern "C"
