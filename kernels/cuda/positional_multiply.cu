// Products of positional numbers. Neighbouring threads read the same limb of neighbouring numbers. Short
// numbers take one thread, compiled for their limbs, that goes by columns of the product; longer ones one or
// several lanes of a warp that go by rows.
#include "grid.cuh"
#include "limb_lanes.cuh"
#include "product_task.cuh"

using namespace rns;

namespace {

constexpr i32 kAhead = 16;

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
  LaneSums<> sums;
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
