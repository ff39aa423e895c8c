// Transforms modulo r^k + 1, a pass at a time (FermatPass): a block takes columns of R numbers into shared
// memory, transforms them by shifts and additions, and writes them, each times its factor, where the next
// pass reads.
#include "fermat_number.cuh"

using namespace rns;

namespace {

// Numbers of a tile, in 32 KiB.
constexpr i32 kMost = 32768 / (kDigits * static_cast<i32>(sizeof(Digit)));
constexpr i32 kTileNumbers = kMost < 512 ? kMost : 512;
constexpr i32 kThreads = kTileNumbers / 2;
constexpr i32 kBlocks = 3;  // a multiprocessor, by registers
constexpr i32 kLogBanks = sizeof(Digit) == 4 ? 5 : 4;

struct FermatTransform {
  const Digit* x;
  i64 stride;
  const Digit* factors;  // (k, J R), or null where all are 1
  i64 factor_count;
  Digit* out;
  i64 out_stride;
  i64 columns;  // of all transforms
  FermatPass shape;
};

__shared__ Digit tile[kDigits][kTileNumbers];

// Rows are permuted so that both a row's neighbours and a column's lie in different banks.
__device__ i32 place(i32 row, i32 column, i32 log_width) {
  const i32 mixed = row >> (log_width < kLogBanks ? kLogBanks - log_width : 0);
  return (row << log_width) + (column ^ (mixed & ((1 << log_width) - 1)));
}

// A number in shared memory, less c: -1, 0 or 1.
__device__ void settle_shared(i32 at, i32 c) {
  if (c == 0) return;
  const Digit from = c == 1 ? 0 : kRadix - 1, to = kRadix - 1 - from;
  for (i32 i = 0; i < kDigits; ++i) {
    const Digit digit = tile[i][at];
    if (digit != from) {
      tile[i][at] = digit - static_cast<Digit>(c);
      return;
    }
    tile[i][at] = to;
  }
  for (i32 i = 0; i < kDigits; ++i) tile[i][at] = i == kDigits - 1 ? kRadix : 0;
}

// x + y and x - y for digits y with signs, to shared memory.
template <class Read>
__device__ __forceinline__ void butterfly(Read x, const Step* y, i32 first, i32 second) {
  i32 up = 0, down = 0;
  const Step r = static_cast<Step>(kRadix);
#pragma unroll
  for (i32 i = 0; i < kDigits; ++i) {
    const Step digit = static_cast<Step>(x(i));
    tile[i][first] = fermat_reduce<Digit>(static_cast<Step>(digit + y[i] + up), up, r);
    tile[i][second] = fermat_reduce<Digit>(static_cast<Step>(digit - y[i] + down), down, r);
  }
  settle_shared(first, up);
  settle_shared(second, down);
}

// The first level, where all factors are 1, from memory.
__device__ void load(const FermatTransform& t, i64 column, i32 pair, i32 first, i32 second) {
  const bool exists = column < t.columns;
  const i64 half = static_cast<i64>(1) << (t.shape.log_radix - 1);
  const Digit* a = t.x + t.shape.source(column) + (static_cast<i64>(pair) << t.shape.log_columns);
  const Digit* b = a + (half << t.shape.log_columns);
  Step y[kDigits];
#pragma unroll
  for (i32 i = 0; i < kDigits; ++i) y[i] = exists ? static_cast<Step>(__ldg(b + i * t.stride)) : 0;
  butterfly([&](i32 i) { return exists ? __ldg(a + i * t.stride) : 0; }, y, first, second);
}

__device__ void level(i32 first, i32 second, i32 by) {
  const FermatShift shift = {kDigits, by};
  Step y[kDigits];
#pragma unroll
  for (i32 i = 0; i < kDigits; ++i) {
    const Step digit = static_cast<Step>(tile[shift.from(i)][second]);
    y[i] = shift.is_negative(i) ? -digit : digit;
  }
  butterfly([&](i32 i) { return tile[i][first]; }, y, first, second);
}

__device__ void store(const FermatTransform& t, i64 column, i32 row, i32 at) {
  if (column >= t.columns) return;
  Digit x[kDigits], z[kDigits];
#pragma unroll
  for (i32 i = 0; i < kDigits; ++i) x[i] = tile[i][at];
  Digit* out = t.out + t.shape.target(column, row);
  if (t.factors == nullptr) {
#pragma unroll
    for (i32 i = 0; i < kDigits; ++i) out[i * t.out_stride] = x[i];
    return;
  }
  const Digit* factor = t.factors + t.shape.factor(column, row);
  Digit y[kDigits];
#pragma unroll
  for (i32 i = 0; i < kDigits; ++i) y[i] = __ldg(factor + i * t.factor_count);
  multiply(x, y, z);
#pragma unroll
  for (i32 i = 0; i < kDigits; ++i) out[i * t.out_stride] = z[i];
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks) transform_pass(FermatTransform t) {
  const FermatPass& pass = t.shape;
  const i32 radix = 1 << pass.log_radix;
  const i32 width = kTileNumbers >> pass.log_radix;
  i32 log_width = 0;
  while (2 << log_width <= width) ++log_width;
  const i32 thread = static_cast<i32>(threadIdx.x);
  const i32 column = thread & (width - 1), pair = thread >> log_width;
  for (i64 start = static_cast<i64>(blockIdx.x) * width; start < t.columns;
       start += static_cast<i64>(gridDim.x) * width) {
    const i32 row = pass.reversed(2 * pair);
    load(t, start + column, row, place(2 * pair, column, log_width), place(2 * pair + 1, column, log_width));
    for (i32 log_half = 1; log_half < pass.log_radix; ++log_half) {
      __syncthreads();
      const i32 i = pair & ((1 << log_half) - 1), top = 2 * pair - i;
      level(place(top, column, log_width), place(top + (1 << log_half), column, log_width),
            pass.shift(i, log_half, kDigits));
    }
    __syncthreads();
    for (i32 k = thread; k < kTileNumbers; k += kThreads) {
      // Neighbours are written next to one another: numbers of a row, or, where these are apart, of a column.
      const bool by_rows = 1 << pass.log_done >= width;
      const i32 s = k & ((1 << pass.log_done) - 1), rest = k >> pass.log_done;
      const i32 out_row = by_rows ? k >> log_width : rest & (radix - 1);
      const i32 out_column = by_rows ? k & (width - 1) : ((rest >> pass.log_radix) << pass.log_done) + s;
      store(t, start + out_column, out_row, place(out_row, out_column, log_width));
    }
    __syncthreads();
  }
}
