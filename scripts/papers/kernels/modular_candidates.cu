// Loops over the candidates on a GPU.
#include "grid.cuh"
#include "modular_candidates.cuh"

using namespace rns;

namespace {

// x[j] = x[j] y[j] mod m, with the product taken `repeat` times: many times a bare loop of products, once a
// pass over memory. A thread takes 16 bytes at once; `count` is a multiple of 4.
template <class Candidate>
__device__ void multiply_rows(u64 m, i64 count, i32 repeat, u32* x, const u32* y) {
  const Candidate candidate = Candidate::of(m);
  uint4* vectors = reinterpret_cast<uint4*>(x);
  for (i64 j = thread_index(); j < count / 4; j += thread_count()) {
    uint4 a = __ldcs(vectors + j);
    const uint4 b = __ldcs(reinterpret_cast<const uint4*>(y) + j);
    for (i32 k = 0; k < repeat; ++k) {
      a = {candidate.multiply(a.x, b.x), candidate.multiply(a.y, b.y), candidate.multiply(a.z, b.z),
           candidate.multiply(a.w, b.w)};
    }
    __stcs(vectors + j, a);
  }
}

}  // namespace

extern "C" {

__global__ void division(u64 m, i64 count, i32 repeat, u32* x, const u32* y) {
  multiply_rows<Division>(m, count, repeat, x, y);
}

__global__ void barrett64(u64 m, i64 count, i32 repeat, u32* x, const u32* y) {
  multiply_rows<Barrett64>(m, count, repeat, x, y);
}

__global__ void montgomery(u64 m, i64 count, i32 repeat, u32* x, const u32* y) {
  multiply_rows<Montgomery>(m, count, repeat, x, y);
}

__global__ void floating_point(u64 m, i64 count, i32 repeat, u32* x, const u32* y) {
  multiply_rows<FloatingPoint>(m, count, repeat, x, y);
}

__global__ void normalised_reciprocal(u64 m, i64 count, i32 repeat, u32* x, const u32* y) {
  multiply_rows<NormalisedReciprocal>(m, count, repeat, x, y);
}

}  // extern "C"
