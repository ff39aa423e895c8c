// Products and powers modulo odd numbers. RNS_LANES lanes of a warp take one number, RNS_LIMBS limbs each, in
// registers. One lane goes column by column, first for the product and then for the multiples of the modulus,
// with code of its own for squares (SOS of C. Koc, T. Acar and B. Kaliski, "Analyzing and comparing
// Montgomery multiplication algorithms", 1996); several go limb by limb of one factor (CIOS of the same, with
// carries passed on at the end only), as NVIDIA's CGBN does.
#include "grid.cuh"
#include "limb_squares.cuh"
#include "montgomery.cuh"

using namespace rns;

namespace {

constexpr i32 kBlock = 64;

// x - m, and whether that is negative.
__device__ __forceinline__ u32 subtract(const u32* x, const u32* m, u32* difference) {
  u32 complement[RNS_LIMBS];
#pragma unroll
  for (i32 i = 0; i < RNS_LIMBS; ++i) {
    difference[i] = x[i];
    complement[i] = ~m[i];
  }
  return 1 - add_to_limbs<RNS_LIMBS>(difference, complement, 1);
}

#if RNS_LANES == 1

// The sum of the products of a column that both factors have, from limb `first` to limb `last` of each.
template <bool kIsSquare>
__device__ __forceinline__ void add_column(ColumnSum& sum, const u32* x, const u32* y, i32 first, i32 last) {
  if (!kIsSquare) {
#pragma unroll
    for (i32 i = first; i <= last; ++i) sum.add_product(x[i], y[first + last - i]);
    return;
  }
  ColumnSum half = {0, 0, 0};
#pragma unroll
  for (i32 i = first; 2 * i < first + last; ++i) half.add_product(x[i], x[first + last - i]);
  if (first < last) {
    sum.add(half.low, half.high, half.top);
    sum.add(half.low, half.high, half.top);
  }
  if ((first + last) % 2 == 0) sum.add_product(x[(first + last) / 2], x[(first + last) / 2]);
}

// The limbs of x y. In two loops, for the compiler does not unroll one.
template <bool kIsSquare>
__device__ __forceinline__ void multiply(const u32* x, const u32* y, u32* product) {
  ColumnSum sum = {0, 0, 0};
#pragma unroll
  for (i32 c = 0; c < RNS_LIMBS; ++c) {
    add_column<kIsSquare>(sum, x, y, 0, c);
    product[c] = sum.low;
    sum.shift();
  }
#pragma unroll
  for (i32 c = RNS_LIMBS; c < 2 * RNS_LIMBS - 1; ++c) {
    add_column<kIsSquare>(sum, x, y, c - RNS_LIMBS + 1, RNS_LIMBS - 1);
    product[c] = sum.low;
    sum.shift();
  }
  product[2 * RNS_LIMBS - 1] = sum.low;
}

// x = product / R modulo m, below m, if the product is at most m R; its lower half becomes the quotient.
__device__ __forceinline__ void reduce(u32* product, const u32* m, u32 inverse, u32* x) {
  ColumnSum sum = {0, 0, 0};
#pragma unroll
  for (i32 c = 0; c < RNS_LIMBS; ++c) {
    sum.add(product[c], 0, 0);
#pragma unroll
    for (i32 i = 0; i < c; ++i) sum.add_product(product[i], m[c - i]);
    product[c] = sum.low * inverse;
    sum.add_product(product[c], m[0]);
    sum.shift();
  }
#pragma unroll
  for (i32 c = RNS_LIMBS; c < 2 * RNS_LIMBS; ++c) {
    sum.add(product[c], 0, 0);
#pragma unroll
    for (i32 i = c - RNS_LIMBS + 1; i < RNS_LIMBS; ++i) sum.add_product(product[i], m[c - i]);
    x[c - RNS_LIMBS] = sum.low;
    sum.shift();
  }
  if (subtract(x, m, product) <= sum.low) {
#pragma unroll
    for (i32 i = 0; i < RNS_LIMBS; ++i) x[i] = product[i];
  }
}

// x = x y / R modulo m; of a square y is x.
__device__ __forceinline__ void montgomery_product(u32* x, const u32* y, const u32* m, u32 inverse,
                                                   bool is_square) {
  u32 product[2 * RNS_LIMBS];
  if (is_square) {
    multiply<true>(x, x, product);
  } else {
    multiply<false>(x, y, product);
  }
  reduce(product, m, inverse, x);
}

#else

// x = sums modulo m, for sums below 2 m.
__device__ __forceinline__ void subtract_once(const LaneSums<>& sums, const u32* m, u32* x) {
  u32 z[RNS_LIMBS], any = 0;
  const u32 above = sums.resolve(z);
  const u32 borrow = subtract(z, m, x);
#pragma unroll
  for (i32 i = 0; i < RNS_LIMBS; ++i) any |= x[i];
  const u32 passed = carries(borrow != 0, any == 0);
  const i32 highest = 32 - kNumbers + lane() % kNumbers;
  const bool is_below = (passed >> highest & 1) > of_lane(above, highest);
  u32 borrow_below[RNS_LIMBS];
#pragma unroll
  for (i32 i = 0; i < RNS_LIMBS; ++i) borrow_below[i] = 0 - (passed << kNumbers >> lane() & 1);
  add_to_limbs<RNS_LIMBS>(x, borrow_below, 0);
#pragma unroll
  for (i32 i = 0; i < RNS_LIMBS; ++i) x[i] = is_below ? z[i] : x[i];
}

#if RNS_SQUARES

// Adds multiples of m to the square of x, so that its lower half becomes 0: the sums of the upper one.
__device__ __forceinline__ void reduced_square(LaneSums<>& sums, const u32* x, const u32* m, u32 inverse) {
  __shared__ SquareWords words[kBlock / 32];
  SquareWords& own = words[threadIdx.x / 32];
  const i32 number = lane() % kNumbers, part = lane() / kNumbers;
  square(x, own);
  const u32 *const total = own.total + number, *const carried = own.carried + number;
  const u32 is_highest = part == RNS_LANES - 1 ? ~0u : 0;
  u32 lower[RNS_LIMBS];
#pragma unroll
  for (i32 i = 0; i < RNS_LIMBS; ++i) lower[i] = total[(part * RNS_LIMBS + i) * kNumbers];
  sums.set(lower);
  sums.rest = carried[2 * part * kNumbers];
#pragma unroll 1
  for (i32 done = RNS_LANES * RNS_LIMBS; done < 2 * RNS_LANES * RNS_LIMBS; done += RNS_ROWS) {
    if (done % RNS_LIMBS == 0) sums.even_carry += carried[done / kHalf * kNumbers] & is_highest;
#pragma unroll
    for (i32 step = 0; step < RNS_ROWS; ++step) {
      const u32 next = total[(done + step) * kNumbers] & is_highest;
      sums.add_product(m, of_lane((sums.lowest() + sums.rest) * inverse, number));
      sums.shift(of_lane(sums.lowest(), lane() + kNumbers) | next);  // one of these is 0
    }
  }
}

#endif

// x = x y / R modulo m, below m, if x y is at most m R; of a square y is x.
__device__ __forceinline__ void montgomery_product(u32* x, const u32* y, const u32* m, u32 inverse,
                                                   bool is_square) {
  const i32 number = lane() % kNumbers, first = lane() / kNumbers * RNS_LIMBS;
  __shared__ u32 factors[kBlock * RNS_LIMBS];  // all limbs of y, which each lane reads one by one
  u32* const factor = factors + threadIdx.x / 32 * 32 * RNS_LIMBS + number;
  __syncwarp();
#pragma unroll
  for (i32 i = 0; i < RNS_LIMBS; ++i) factor[(first + i) * kNumbers] = y[i];
  __syncwarp();
  LaneSums<> sums;
#if RNS_SQUARES
  if (is_square) {
    reduced_square(sums, factor, m, inverse);
    subtract_once(sums, m, x);
    return;
  }
#endif
  sums.clear();
#pragma unroll 1
  for (i32 done = 0; done < RNS_LANES * RNS_LIMBS; done += RNS_ROWS) {
#pragma unroll
    for (i32 step = 0; step < RNS_ROWS; ++step) {
      sums.add_product(x, factor[(done + step) * kNumbers]);
      sums.add_product(m, of_lane(sums.lowest() * inverse, number));
      sums.shift(of_lane(sums.lowest(), lane() + kNumbers));  // 0 to the highest lane
    }
  }
  subtract_once(sums, m, x);
}

#endif

// Of a block: all its threads go round as often, so that the compiler knows that those of a warp do.
__device__ i64 first_warp() { return static_cast<i64>(blockIdx.x) * (kBlock / 32); }

__device__ void store(const ModularTask& task, const Share& share, const u32* x) {
#pragma unroll
  for (i32 i = 0; i < RNS_LIMBS; ++i) {
    const i64 place = share.first + i;
    if (share.is_stored && place < task.modulus.limbs) __stcs(task.out + place * task.count + share.j, x[i]);
  }
}

}  // namespace

extern "C" {

__global__ void montgomery_multiply(ModularTask task) {
  for (i64 first = first_warp(); first * kNumbers < task.count; first += thread_count() / 32) {
    const Share share(first + threadIdx.x / 32, task.count);
    u32 x[RNS_LIMBS], y[RNS_LIMBS], m[RNS_LIMBS];
    share.load(m, task.modulus);
    share.load(x, task.x);
    share.load(y, task.square);
    const u32 inverse = negative_inverse(task.modulus.at(0, share.j));
#pragma unroll 1
    for (i32 step = 0; step < 2; ++step) {
      montgomery_product(x, y, m, inverse, false);
      share.load(y, task.y);
    }
    store(task, share, x);
  }
}

// The workspace has a column of words for each thread: its limbs of the table's entries.
__global__ void montgomery_power(ModularTask task) {
  const PowerSteps steps(task);
  const i64 threads = thread_count();
  u32* table = task.workspace + thread_index();
  for (i64 first = first_warp(); first * kNumbers < task.count; first += threads / 32) {
    const Share share(first + threadIdx.x / 32, task.count);
    u32 x[RNS_LIMBS], y[RNS_LIMBS], m[RNS_LIMBS];
    share.load(m, task.modulus);
    const u32 inverse = negative_inverse(task.modulus.at(0, share.j));
    const auto load = [&](u32* to, u32 entry) {
#pragma unroll
      for (i32 i = 0; i < RNS_LIMBS; ++i) to[i] = table[(entry * RNS_LIMBS + i) * threads];
    };
#pragma unroll 1
    for (i32 step = 0; step < steps.count(); ++step) {
      bool is_square = false;
      if (step < 2) {
        share.load(x, task.square);
        share.set(y, 1);
        if (step == 1) share.load(y, task.x);
      } else if (steps.makes_entry(step)) {
        if (step == 2) load(y, 1);
      } else {
        if (step == steps.entries) load(x, steps.first_entry(task, share.j));
        if (steps.is_last(step)) {
          share.set(y, 1);
        } else if (steps.is_square(step)) {
          is_square = true;
          if (RNS_LANES > 1) share.copy(y, x);
        } else {
          load(y, steps.entry(step, task, share.j));
        }
      }
      montgomery_product(x, y, m, inverse, is_square);
      if (steps.makes_entry(step)) {
#pragma unroll
        for (i32 i = 0; i < RNS_LIMBS; ++i) table[(step * RNS_LIMBS + i) * threads] = x[i];
      }
    }
    store(task, share, x);
  }
}

}  // extern "C"
