// Signed multiple-precision integers with stored intervals. A number's header gives its selector, before any
// residue is read, and what is open about it.
#include <rns/interval_rns.cuh>

#include "grid.cuh"
#include "operands.cuh"

using namespace rns;

namespace {

// Rows whose residues a thread reads ahead, and vectors of a row that a thread of the digit-parallel kernel
// takes at once.
constexpr i32 kRowsAhead = 4;
constexpr i32 kDigitVectors = 4;

__device__ Header header_at(const Operand& x, i64 rows, i64 j) {
  u32 words[kHeaderRows];
#pragma unroll
  for (i32 k = 0; k < kHeaderRows; ++k) words[k] = x.at(rows + k, j);
  return header_of(words);
}

__device__ void store_header(const Task& task, const Header& header, i64 j) {
  u32 words[kHeaderRows];
  words_of(header, words);
#pragma unroll
  for (i32 k = 0; k < kHeaderRows; ++k) task.out[(task.rows + k) * task.out_stride + j] = words[k];
}

// The headers of four consecutive numbers, word by word.
struct Headers {
  u32 words[4][kHeaderRows];

  __device__ void load(const Operand& x, i64 rows, i64 v) {
#pragma unroll
    for (i32 k = 0; k < kHeaderRows; ++k) {
      const uint4 row = x.vector(rows + k, v);
      words[0][k] = row.x;
      words[1][k] = row.y;
      words[2][k] = row.z;
      words[3][k] = row.w;
    }
  }
  __device__ void store(const Task& task, i64 v) const {
#pragma unroll
    for (i32 k = 0; k < kHeaderRows; ++k) {
      __stcs(task.out_vectors(task.rows + k) + v, {words[0][k], words[1][k], words[2][k], words[3][k]});
    }
  }
};

// The header of the number of a column.
__device__ Header header_of_column(const u32* columns, i64 stride, i32 rows, i64 j) {
  u32 words[kHeaderRows];
#pragma unroll
  for (i32 k = 0; k < kHeaderRows; ++k) words[k] = columns[(rows + k) * stride + j];
  return header_of(words);
}

// The order key of the number of a column, or that of its negative.
__device__ i64 key_of_column(const u32* columns, i64 stride, i32 rows, i32 bits, u32 negate, i64 j) {
  const u32* header = columns + rows * stride + j;
  const u32 sign = (header[kSignRow * stride] != 0) ^ negate;
  return order_key(sign, header[kExponentRow * stride], header[(kUppRow + 1) * stride], bits);
}

__device__ uint4 sum_of_vectors(uint4 x, uint4 y, const u32 (&selectors)[4], u32 last) {
  return {residue_of_sum(x.x, y.x, selectors[0], last), residue_of_sum(x.y, y.y, selectors[1], last),
          residue_of_sum(x.z, y.z, selectors[2], last), residue_of_sum(x.w, y.w, selectors[3], last)};
}

// Plans the sums of four numbers, writes their headers and flags, and leaves their selectors.
__device__ void plan_vector(const Task& task, u32 flip, double accuracy, i64 v, u8* flags,
                            u32 (&selectors)[4]) {
  Headers x, y;
  x.load(task.x[0], task.rows, v);
  y.load(task.x[1], task.rows, v);
  u32 open[4];
#pragma unroll
  for (i32 k = 0; k < 4; ++k) {
    const Header b = flipped(header_of(y.words[k]), flip);
    const SumPlan plan = plan_by_complement(header_of(x.words[k]), b, accuracy);
    words_of(plan.header, x.words[k]);
    selectors[k] = plan.selector;
    open[k] = plan.flags;
  }
  x.store(task, v);
  reinterpret_cast<uchar4*>(flags)[v] = {static_cast<u8>(open[0]), static_cast<u8>(open[1]),
                                         static_cast<u8>(open[2]), static_cast<u8>(open[3])};
}

// The same for one number.
__device__ u32 plan_single(const Task& task, u32 flip, double accuracy, i64 j, u8* flags) {
  const Header y = flipped(header_at(task.x[1], task.rows, j), flip);
  const SumPlan plan = plan_by_complement(header_at(task.x[0], task.rows, j), y, accuracy);
  store_header(task, plan.header, j);
  flags[j] = static_cast<u8>(plan.flags);
  return plan.selector;
}

__device__ void add_single(const Task& task, i64 i, i64 j, u32 selector) {
  task.out[i * task.out_stride + j] =
      residue_of_sum(task.x[0].at(i, j), task.x[1].at(i, j), selector, task.moduli[i].last);
}

}  // namespace

extern "C" {

// Algorithm 1: a number a thread, which takes one of three ways.
__global__ void interval_rns_add_signs(Task task, u32 flip, double accuracy, u8* flags) {
  for (i64 j = thread_index(); j < task.count; j += thread_count()) {
    const Header x = header_at(task.x[0], task.rows, j);
    const Header y = flipped(header_at(task.x[1], task.rows, j), flip);
    const SumPlan plan = plan_by_signs(x, y, accuracy);
    store_header(task, plan.header, j);
    flags[j] = static_cast<u8>(plan.flags);
    u32* z = task.out + j;
    if ((plan.selector & kSubtract) == 0) {
      for (i64 i = 0; i < task.rows; ++i) {
        z[i * task.out_stride] = mod_add(task.x[0].at(i, j), task.x[1].at(i, j), task.moduli[i].last);
      }
    } else if ((plan.selector & kComplement) == 0) {
      for (i64 i = 0; i < task.rows; ++i) {
        z[i * task.out_stride] = mod_sub(task.x[0].at(i, j), task.x[1].at(i, j), task.moduli[i].last);
      }
    } else {
      for (i64 i = 0; i < task.rows; ++i) {
        z[i * task.out_stride] = mod_sub(task.x[1].at(i, j), task.x[0].at(i, j), task.moduli[i].last);
      }
    }
  }
}

// Algorithm 2: a vector of four numbers a thread, and no branch. Needs rows * 4 bytes of shared memory.
__global__ void __launch_bounds__(256)
    interval_rns_add_complement(Task task, u32 flip, double accuracy, u8* flags) {
  extern __shared__ u32 last[];
  for (i64 i = threadIdx.x; i < task.rows; i += blockDim.x) last[i] = task.moduli[i].last;
  __syncthreads();
  for (i64 v = thread_index(); v < task.vectors; v += thread_count()) {
    u32 selectors[4];
    plan_vector(task, flip, accuracy, v, flags, selectors);
    i64 i = 0;
    for (; i + kRowsAhead <= task.rows; i += kRowsAhead) {
      uint4 x[kRowsAhead], y[kRowsAhead];
#pragma unroll
      for (i32 k = 0; k < kRowsAhead; ++k) {
        x[k] = task.x[0].vector(i + k, v);
        y[k] = task.x[1].vector(i + k, v);
      }
#pragma unroll
      for (i32 k = 0; k < kRowsAhead; ++k) {
        __stcs(task.out_vectors(i + k) + v, sum_of_vectors(x[k], y[k], selectors, last[i + k]));
      }
    }
    for (; i < task.rows; ++i) {
      const uint4 x = task.x[0].vector(i, v), y = task.x[1].vector(i, v);
      __stcs(task.out_vectors(i) + v, sum_of_vectors(x, y, selectors, last[i]));
    }
  }
  for (i64 j = 4 * task.vectors + thread_index(); j < task.count; j += thread_count()) {
    const u32 selector = plan_single(task, flip, accuracy, j, flags);
    for (i64 i = 0; i < task.rows; ++i) add_single(task, i, j, selector);
  }
}

// Digit-parallel: first the headers, a number a thread...
__global__ void interval_rns_plan(Task task, u32 flip, double accuracy, u8* selectors, u8* flags) {
  for (i64 j = thread_index(); j < task.count; j += thread_count()) {
    selectors[j] = static_cast<u8>(plan_single(task, flip, accuracy, j, flags));
  }
}

// ... then all residues, spread over the grid: a block takes one stretch of one row at a time.
__global__ void interval_rns_add_digits(Task task, const u8* selectors) {
  const i64 stretch = static_cast<i64>(blockDim.x) * kDigitVectors;
  const i64 stretches = (task.vectors + stretch - 1) / stretch;
  for (i64 b = blockIdx.x; b < stretches * task.rows; b += gridDim.x) {
    const i64 i = b / stretches;
    const i64 first = (b - i * stretches) * stretch + threadIdx.x;
    const u32 last = task.moduli[i].last;
    uint4 x[kDigitVectors], y[kDigitVectors];
    uchar4 chosen[kDigitVectors];
#pragma unroll
    for (i32 k = 0; k < kDigitVectors; ++k) {
      const i64 v = first + k * blockDim.x;
      if (v >= task.vectors) continue;
      x[k] = task.x[0].vector(i, v);
      y[k] = task.x[1].vector(i, v);
      chosen[k] = __ldg(reinterpret_cast<const uchar4*>(selectors) + v);
    }
#pragma unroll
    for (i32 k = 0; k < kDigitVectors; ++k) {
      const i64 v = first + k * blockDim.x;
      if (v >= task.vectors) continue;
      const u32 four[4] = {chosen[k].x, chosen[k].y, chosen[k].z, chosen[k].w};
      __stcs(task.out_vectors(i) + v, sum_of_vectors(x[k], y[k], four, last));
    }
  }
  const i64 rest = task.count - 4 * task.vectors;
  for (i64 k = thread_index(); k < rest * task.rows; k += thread_count()) {
    const i64 i = k / rest;
    const i64 j = 4 * task.vectors + k % rest;
    add_single(task, i, j, selectors[j]);
  }
}

__global__ void interval_rns_multiply_headers(Task task, ExtendedInterval product, double accuracy,
                                              u8* flags) {
  for (i64 j = thread_index(); j < task.count; j += thread_count()) {
    const Header x = header_at(task.x[0], task.rows, j), y = header_at(task.x[1], task.rows, j);
    const SumPlan plan = plan_product(x, y, product, accuracy);
    store_header(task, plan.header, j);
    flags[j] = static_cast<u8>(plan.flags);
  }
}

__global__ void interval_rns_compare(Task task, i8* order) {
  for (i64 j = thread_index(); j < task.count; j += thread_count()) {
    const Header x = header_at(task.x[0], task.rows, j), y = header_at(task.x[1], task.rows, j);
    order[j] = static_cast<i8>(order_of(x, y));
  }
}

__global__ void interval_arithmetic(i32 operation, i64 count, const double* x_low, const double* x_upp,
                                    const i32* x_exponent, const double* y_low, const double* y_upp,
                                    const i32* y_exponent, ExtendedInterval product, double* low, double* upp,
                                    i32* exponent) {
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    const ExtendedInterval x = normalised({x_low[j], x_upp[j], x_exponent[j]});
    const ExtendedInterval y = normalised({y_low[j], y_upp[j], y_exponent[j]});
    const ExtendedInterval z = fraction_operation(operation, x, y, product);
    low[j] = z.low;
    upp[j] = z.upp;
    exponent[j] = z.exponent;
  }
}

// position = min(position, j) over the numbers j, of so many rows each, whose header no number has
__global__ void interval_rns_first_invalid(const u32* columns, i64 stride, i64 count, i32 all_rows,
                                           i32 least_exponent, double width, u64* position) {
  const i32 rows = all_rows - kHeaderRows;
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    const Header header = header_of_column(columns, stride, rows, j);
    if (follows_rules(header, least_exponent, width)) continue;
    bool zero = is_of_zero(header);
    for (i32 i = 0; zero && i < rows; ++i) zero = columns[i * stride + j] == 0;
    if (zero) continue;
    atomicMin(position, static_cast<u64>(j));
    return;
  }
}

// Lengths in bits of the magnitudes, by headers alone; `product` holds bounds of M.
__global__ void interval_rns_lengths(const u32* columns, i64 stride, i64 count, i32 all_rows,
                                     ExtendedInterval product, i64* lengths, u8* decided) {
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    const Header header = header_of_column(columns, stride, all_rows - kHeaderRows, j);
    const i32 length = length_of_magnitude(header, product);
    lengths[j] = length;
    decided[j] = length != kOpenLength;
  }
}

// found[0] = max(found[0], 2^63 + key) over the order keys of numbers, of so many rows each, or their
// negatives
__global__ void interval_rns_greatest_key(const u32* columns, i64 stride, i64 count, i32 all_rows, i32 bits,
                                          u32 negate, u64* found) {
  u64 mine = 0;
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    const i64 key = key_of_column(columns, stride, all_rows - kHeaderRows, bits, negate, j);
    mine = max(mine, static_cast<u64>(key) ^ 1ull << 63);
  }
  for (i32 offset = 16; offset > 0; offset /= 2) mine = max(mine, __shfl_xor_sync(~0u, mine, offset));
  if (threadIdx.x % 32 == 0) atomicMax(found, mine);
}

// found[1] counts the numbers whose key is at most `slack` below that; behind it are the indices of the first
// `few` that were found, in any order.
__global__ void interval_rns_near_greatest_key(const u32* columns, i64 stride, i64 count, i32 all_rows,
                                               i32 bits, u32 negate, i32 slack, u64 few, u64* found) {
  const i64 least = static_cast<i64>(found[0] ^ 1ull << 63) - slack;
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    if (key_of_column(columns, stride, all_rows - kHeaderRows, bits, negate, j) < least) continue;
    const u64 place = atomicAdd(found + 1, 1);
    if (place < few) found[2 + place] = static_cast<u64>(j);
  }
}

}  // extern "C"
