// Products and powers modulo odd numbers of any length, one number a thread: those of
// positional_montgomery.cu by tiles of limbs in memory, of which numbers have whole ones.
#include "grid.cuh"
#include "montgomery.cuh"

using namespace rns;

namespace {

__device__ void load_tile(Place x, i64 tile, u32* limbs) {
#pragma unroll
  for (i32 t = 0; t < kTileLimbs; ++t) limbs[t] = x.at(tile * kTileLimbs + t);
}

__device__ void store_tile(Place x, i64 tile, const u32* limbs) {
#pragma unroll
  for (i32 t = 0; t < kTileLimbs; ++t) x.set(tile * kTileLimbs + t, limbs[t]);
}

// z = x y / R modulo m likewise, of numbers of whole tiles; z is other memory.
__device__ void montgomery_product(Place x, Place y, Place m, u32 inverse, i64 tiles, Place z) {
  TileSums sums;
  sums.clear();
  u32 a[kTileLimbs], b[kTileLimbs];
  for (i64 c = 0; c < 2 * tiles; ++c) {
    const i64 last = c < tiles ? c : tiles;
#pragma unroll 1
    for (i64 i = c < tiles ? 0 : c - tiles + 1; i < last; ++i) {
      u32 q[kTileLimbs], digits[kTileLimbs];  // loaded before the products, which hide that
      load_tile(x, i, a);
      load_tile(y, c - i, b);
      load_tile(z, i, q);
      load_tile(m, c - i, digits);
      sums.add_product(a, b);
      sums.add_product(q, digits);
    }
    if (c < tiles) {
      load_tile(x, c, a);
      load_tile(y, 0, b);
      sums.add_product(a, b);
      load_tile(m, 0, b);
      sums.reduce(b, inverse, a);
      store_tile(z, c, a);
    } else {
      sums.shift(a);
      store_tile(z, c - tiles, a);
    }
  }
  const i64 limbs = tiles * kTileLimbs;
  bool is_above = sums.column[0].low != 0, is_decided = is_above;
  for (i64 i = limbs - 1; i >= 0 && !is_decided; --i) {
    is_above = z.at(i) >= m.at(i);
    is_decided = z.at(i) != m.at(i);
  }
  if (!is_above) return;
  u32 borrow = 0;
  for (i64 i = 0; i < limbs; ++i) {
    const u64 difference = static_cast<u64>(z.at(i)) - m.at(i) - borrow;
    z.set(i, static_cast<u32>(difference));
    borrow = static_cast<u32>(difference >> 63);
  }
}

}  // namespace

extern "C" {

// The workspace has room for one number a thread.
__global__ void montgomery_multiply_by_tiles(ModularTask task) {
  const i64 tiles = task.modulus.limbs / kTileLimbs;
  const Place form = {task.workspace + thread_index(), thread_count()};
  for (i64 j = thread_index(); j < task.count; j += thread_count()) {
    const Place m = task.modulus.place(j), out = {task.out + j, task.count};
    const u32 inverse = negative_inverse(m.at(0));
#pragma unroll 1
    for (i32 step = 0; step < 2; ++step) {
      montgomery_product(step == 0 ? task.x.place(j) : form,
                         step == 0 ? task.square.place(j) : task.y.place(j), m, inverse, tiles,
                         step == 0 ? form : out);
    }
  }
}

// The workspace has room for the entries of the table, the number 1 and two more numbers a thread.
__global__ void montgomery_power_by_tiles(ModularTask task) {
  const PowerSteps steps(task);
  const i64 limbs = task.modulus.limbs, threads = thread_count();
  const auto number = [&](i64 k) {
    return Place{task.workspace + k * limbs * threads + thread_index(), threads};
  };
  const Place one = number(steps.entries);
  for (i64 i = 0; i < limbs; ++i) one.set(i, i == 0);
  for (i64 j = thread_index(); j < task.count; j += threads) {
    const Place m = task.modulus.place(j), out = {task.out + j, task.count};
    const u32 inverse = negative_inverse(m.at(0));
    Place x = {nullptr, 0};
#pragma unroll 1
    for (i32 step = 0; step < steps.count(); ++step) {
      Place y = one, z = number(steps.entries + 1 + step % 2);
      if (steps.makes_entry(step)) {
        if (step < 2) x = task.square.place(j);
        if (step > 0) y = step == 1 ? task.x.place(j) : number(1);
        z = number(step);
      } else {
        if (step == steps.entries) x = number(steps.first_entry(task, j));
        if (steps.is_last(step)) {
          z = out;
        } else {
          y = steps.is_square(step) ? x : number(steps.entry(step, task, j));
        }
      }
      montgomery_product(x, y, m, inverse, limbs / kTileLimbs, z);
      x = z;
    }
  }
}

}  // extern "C"
