// Products of sparse matrices with blocks of vectors modulo each m_i, by some threads for a row and a vector.
#include <rns/sparse.cuh>

#include "grid.cuh"

using namespace rns;

namespace {

constexpr i32 kWarp = 32;
constexpr u32 kAll = ~0u;

// Row r has the entries from starts[r] to starts[r + 1]. x is (planes, terms, width), out (planes, rows,
// width), both of words of 32 bits or of 64. `parts` threads share the entries of a row for each of `lanes`
// vectors, powers of two with a product of at most a warp. Values are signed words of 32 bits, or residues
// (planes, entries).
struct SparseTask {
  const i64* starts;
  const i32* columns;
  const void* values;
  const void* x;
  void* out;
  const void* moduli;
  i64 moduli_count;
  i64 planes;
  i64 rows;
  i64 terms;
  i64 width;
  i64 entries;
  i64 lanes;
  i64 parts;
};

template <class Sum, class Value, class Word, class Mod>
__device__ Word part_of_row(const SparseTask& s, const Value* values, const Word* x, i64 row, i64 part,
                            Mod m) {
  Sum sum;
  const i64 end = s.starts[row + 1];
  for (i64 k = s.starts[row] + part; k < end; k += s.parts) {
    sum.add(values[k], x[s.columns[k] * s.width]);
  }
  return sum.reduce(m);
}

template <class Sum, class Value, class Word, class Mod>
__device__ void multiply(const SparseTask& s, i64 plane_entries) {
  const i64 lane = threadIdx.x % s.lanes, part = threadIdx.x / s.lanes % s.parts;
  const i64 group = s.lanes * s.parts, across = (s.width + s.lanes - 1) / s.lanes;
  const i64 count = s.planes * s.rows * across, in_warp = kWarp / group;
  const i64 place = threadIdx.x % kWarp / group;
  const Mod* moduli = static_cast<const Mod*>(s.moduli);
  // All threads of a warp go on together, for they pass their sums on.
  for (i64 first = thread_index() / kWarp * in_warp; first < count;
       first += thread_count() / kWarp * in_warp) {
    const i64 w = first + place, j = w % across * s.lanes + lane, row = w / across % s.rows;
    const i64 i = w / across / s.rows;
    const bool inside = w < count && j < s.width;
    Word sum = 0;
    Mod m = moduli[0];
    if (inside) {
      m = moduli[s.planes == 1 ? j % s.moduli_count : i];
      const Value* values = static_cast<const Value*>(s.values) + i * plane_entries;
      const Word* x = static_cast<const Word*>(s.x) + i * s.terms * s.width + j;
      sum = part_of_row<Sum>(s, values, x, row, part, m);
    }
    for (i64 offset = s.lanes; offset < group; offset *= 2) {
      sum = mod_add(sum, __shfl_xor_sync(kAll, sum, static_cast<i32>(offset)), m.last);
    }
    if (inside && part == 0) static_cast<Word*>(s.out)[(i * s.rows + row) * s.width + j] = sum;
  }
}

}  // namespace

extern "C" {

__global__ void __launch_bounds__(256) sparse_signed(SparseTask s) {
  multiply<SignedSum, i32, u32, Modulus>(s, 0);
}

__global__ void __launch_bounds__(256) sparse_residues(SparseTask s) {
  multiply<ProductSum, u32, u32, Modulus>(s, s.entries);
}

__global__ void __launch_bounds__(256) wide_sparse_signed(SparseTask s) {
  multiply<WideSignedSum, i32, u64, WideModulus>(s, 0);
}

__global__ void __launch_bounds__(256) wide_sparse_residues(SparseTask s) {
  multiply<WideSum, u64, u64, WideModulus>(s, s.entries);
}

}  // extern "C"
