// Residues modulo up to 2^64, one number a thread: their mixed-radix digits, and those of numbers of limbs.
#include <rns/wide_modular.cuh>

#include "grid.cuh"

using namespace rns;

extern "C" {

// Residue i of number j is residues[i * stride + j * step].
__global__ void wide_digits(const u64* residues, i64 stride, i64 step, i64 count, i32 moduli, const u64* last,
                            const WideFactor* inverses, const u64* highest, u64* digits) {
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    garner_digits(residues + j * step, stride, moduli, last, inverses, highest, digits + j * (moduli + 1));
  }
}

// The table of weights has a row for each limb and, of two's complement numbers, one for the sign bit.
__global__ void limbs_to_wide_residues(const u32* limbs, i64 count, i32 limb_count, i32 is_signed,
                                       const u64* weights, const u64* last, const WideWordFactors* factors,
                                       i32 moduli, u64* residues) {
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    for (i32 i = 0; i < moduli; ++i) {
      residues[i * count + j] = wide_residue(limbs + j * limb_count, limb_count, is_signed != 0, weights + i,
                                             moduli, factors[i], last[i]);
    }
  }
}

}  // extern "C"
