// The order of numbers of two arrays, or of an array and one number, in one pass over the residues of both.
#include <rns/compare.cuh>

#include "keyed.cuh"

using namespace rns;

namespace {

// Vectors of each operand that a thread takes at once, and rows that it reads ahead: the fastest of those
// tried on an H200.
constexpr i32 kPairVectors = 1;
constexpr i32 kPairRows = 8;

struct ScalarTable {
  u32 x[kTableSize];
};

// The second operand, a group of vectors at a time: those of another array...
class ArrayGroup {
 public:
  using Operand = Numbers;

  __device__ ArrayGroup(const Numbers& b, i64 first)
      : vectors_(b, first), stride_(b.stride), keys_(b.start) {}
  __device__ void read(uint4 (&row)[kPairVectors], i32) { vectors_.read(row, stride_); }
  __device__ void accumulate(const uint4 (&row)[kPairVectors], u64 c) { keys_.accumulate(row, c); }
  __device__ u64 key(i32 k, i32 m) const { return keys_(k, m); }

 private:
  VectorGroup<kPairVectors> vectors_;
  i64 stride_;
  Keys<kPairVectors> keys_;
};

// ... or the same number everywhere, whose key is known.
struct Scalar {
  const u32* x;
  u64 known_key;
};

class ScalarGroup {
 public:
  using Operand = Scalar;

  __device__ ScalarGroup(const Scalar& b, i64) : b_(b) {}
  __device__ void read(uint4 (&row)[kPairVectors], i32 i) {
#pragma unroll
    for (i32 k = 0; k < kPairVectors; ++k) row[k] = {b_.x[i], b_.x[i], b_.x[i], b_.x[i]};
  }
  __device__ void accumulate(const uint4 (&)[kPairVectors], u64) {}
  __device__ u64 key(i32, i32) const { return b_.known_key; }

 private:
  const Scalar& b_;
};

__device__ u32 residue(const Numbers& b, i32 i, i64 j) { return __ldcs(b.residues + i * b.stride + j); }
__device__ u32 residue(const Scalar& b, i32 i, i64) { return b.x[i]; }

template <class Coefficients>
__device__ u64 key_at(const Numbers& b, const Coefficients& c, i64 j) {
  return single_key(b, c, j);
}
template <class Coefficients>
__device__ u64 key_at(const Scalar& b, const Coefficients&, i64) {
  return b.known_key;
}

// Whether the numbers of a group differ from those of the other: any bit set in any row.
struct Differences {
  u32 bits[kPairVectors][4] = {};

  __device__ void add(const uint4 (&x)[kPairVectors], const uint4 (&y)[kPairVectors]) {
#pragma unroll
    for (i32 k = 0; k < kPairVectors; ++k) {
      bits[k][0] |= x[k].x ^ y[k].x;
      bits[k][1] |= x[k].y ^ y[k].y;
      bits[k][2] |= x[k].z ^ y[k].z;
      bits[k][3] |= x[k].w ^ y[k].w;
    }
  }
};

// The numbers outside of vectors: at most three, or all of arrays that are not aligned to 16 bytes.
template <class Coefficients, class Operand>
__device__ i32 compare_single(const Numbers& a, const Operand& b, const Coefficients& c, u64 slack, i64 j) {
  u32 bits = 0;
  for (i32 i = 0; i < a.moduli; ++i) bits |= residue(a, i, j) ^ residue(b, i, j);
  return compare_keys(single_key(a, c, j), key_at(b, c, j), bits, slack, a.ambiguous_below);
}

// Writes the order of each number and adds how many are undecided to *undecided.
template <class Group, class Coefficients>
__device__ __forceinline__ void compare(const Numbers& a, const typename Group::Operand& b,
                                        const Coefficients& c, u64 slack, i8* order, u64* counts) {
  u64 mine = 0;
  const i64 step = static_cast<i64>(gridDim.x) * blockDim.x * kPairVectors;
  i64 first = static_cast<i64>(blockIdx.x) * blockDim.x * kPairVectors + threadIdx.x;
  for (; first < a.vectors; first += step) {
    VectorGroup<kPairVectors> left(a, first);
    Keys<kPairVectors> keys(a.start);
    Group right(b, first);
    Differences differences;
#pragma unroll kPairRows
    for (i32 i = 0; i < a.moduli; ++i) {
      uint4 x[kPairVectors], y[kPairVectors];
      left.read(x, a.stride);
      right.read(y, i);
      keys.accumulate(x, c[i]);
      right.accumulate(y, c[i]);
      differences.add(x, y);
    }
#pragma unroll
    for (i32 k = 0; k < kPairVectors; ++k) {
      if (!left.inside[k]) continue;
      i32 four[4];
#pragma unroll
      for (i32 m = 0; m < 4; ++m) {
        const u32 bits = differences.bits[k][m];
        four[m] = compare_keys(keys(k, m), right.key(k, m), bits, slack, a.ambiguous_below);
        mine += four[m] == kUndecided;
      }
      reinterpret_cast<char4*>(order)[first + k * blockDim.x] = {
          static_cast<i8>(four[0]), static_cast<i8>(four[1]), static_cast<i8>(four[2]),
          static_cast<i8>(four[3])};
    }
  }
  for (i64 j = 4 * a.vectors + thread_index(); j < a.count; j += thread_count()) {
    const i32 one = compare_single(a, b, c, slack, j);
    order[j] = static_cast<i8>(one);
    mine += one == kUndecided;
  }
  write_block_sum(mine, counts);
}

}  // namespace

extern "C" {

#ifdef RNS_SHARED_TABLE
__global__ void __launch_bounds__(kBlock)
    compare_arrays(Numbers a, Numbers b, const u64* table, u64 slack, i8* order, u64* counts) {
  extern __shared__ u64 shared[];
  compare<ArrayGroup>(a, b, load_shared_table(table, a.moduli, shared), slack, order, counts);
}

__global__ void __launch_bounds__(kBlock)
    compare_scalar(Numbers a, const u32* b, u64 key, const u64* table, u64 slack, i8* order, u64* counts) {
  extern __shared__ u64 shared[];
  compare<ScalarGroup>(a, {b, key}, load_shared_table(table, a.moduli, shared), slack, order, counts);
}
#else
__global__ void __launch_bounds__(kBlock)
    compare_arrays(Numbers a, Numbers b, const __grid_constant__ KeyTable table, u64 slack, i8* order,
                   u64* counts) {
  compare<ArrayGroup>(a, b, table.c, slack, order, counts);
}

__global__ void __launch_bounds__(kBlock)
    compare_scalar(Numbers a, const __grid_constant__ ScalarTable b, u64 key,
                   const __grid_constant__ KeyTable table, u64 slack, i8* order, u64* counts) {
  compare<ScalarGroup>(a, {b.x, key}, table.c, slack, order, counts);
}
#endif

}  // extern "C"
