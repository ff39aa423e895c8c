// The numbers that a pass could not decide: candidates of MAX or MIN are marked, a few flags that are not set
// are found, numbers are gathered, and what is found of them is put into its places.
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

// found[0] counts the flags that are not set, up to more than `few`; behind it are the indices of so many, in
// any order. Flags are 0 or 1, and aligned as words of eight.
__global__ void find_unset(const u8* flags, i64 count, u64 few, u64* found) {
  constexpr i64 kTogether = 8;
  constexpr u64 kAllSet = 0x0101010101010101;
  for (i64 first = thread_index() * kTogether; first < count; first += thread_count() * kTogether) {
    const i64 left = count - first;
    if (left >= kTogether && *reinterpret_cast<const u64*>(flags + first) == kAllSet) continue;
    for (i64 j = first; j < first + min(left, kTogether); ++j) {
      if (flags[j] || *static_cast<volatile u64*>(found) > few) continue;
      const u64 place = atomicAdd(found, 1);
      if (place < few) found[1 + place] = static_cast<u64>(j);
    }
  }
}

// out[i * chosen + k] = residue i of number indices[k]; of each number, `parts` threads take every parts-th i
__global__ void gather(const u32* residues, i64 stride, i32 moduli, const i64* indices, i64 chosen, i32 parts,
                       u32* out) {
  for (i64 t = thread_index(); t < chosen * parts; t += thread_count()) {
    const i64 first = t / chosen, k = t - first * chosen, index = indices[k];
    for (i64 i = first; i < moduli; i += parts) out[i * chosen + k] = residues[i * stride + index];
  }
}

// out[indices[k]] = values[k]
__global__ void put(const i64* values, const i64* indices, i64 chosen, i64* out) {
  for (i64 k = thread_index(); k < chosen; k += thread_count()) out[indices[k]] = values[k];
}

}  // extern "C"
