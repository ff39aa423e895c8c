// The candidates that a pass for MAX or MIN could not tell apart: marked, and gathered.
#include "reduce.cuh"

using namespace rns;

namespace {

template <class Coefficients>
__device__ __forceinline__ void candidates(const Numbers& a, const Coefficients& c, u64 flip, u64 threshold,
                                           u8* flags) {
  for_each_key(a, c,
               [&](i64 j, u64 key) { flags[j] = key < a.ambiguous_below || (key ^ flip) >= threshold; });
}

}  // namespace

extern "C" {

__global__ void __launch_bounds__(kBlock)
    candidates_shared(Numbers a, const u64* table, u64 flip, u64 threshold, u8* flags) {
  extern __shared__ u64 shared[];
  candidates(a, load_shared_table(table, a.moduli, shared), flip, threshold, flags);
}

// out[i * chosen + k] = residue i of number indices[k]
__global__ void gather(const u32* residues, i64 stride, i32 moduli, const i64* indices, i64 chosen,
                       u32* out) {
  for (i64 k = thread_index(); k < chosen; k += thread_count()) {
    for (i32 i = 0; i < moduli; ++i) out[i * chosen + k] = residues[i * stride + indices[k]];
  }
}

}  // extern "C"
