// Conversion between residues and limbs and base extension, one number a thread.
#include <rns/convert.cuh>

#include "grid.cuh"
#include "table_product.cuh"

using namespace rns;

namespace {

// Limbs of a block's numbers that lie in shared memory at a time.
constexpr i32 kTileLimbs = 32;

// Rows of limbs as read from memory become columns of the tile, so that both sides are contiguous for a
// warp. The tile's rows are one element longer than the block, to spread a column over the banks.
__device__ void load_tile(u32* tile, const u32* limbs, i64 stride, i64 numbers, i32 limb_count) {
  __syncthreads();
  const i32 warps = blockDim.x / kTileLimbs;
  const i32 l = threadIdx.x % kTileLimbs;
  for (i32 j = threadIdx.x / kTileLimbs; j < numbers && l < limb_count; j += warps) {
    tile[l * (blockDim.x + 1) + j] = limbs[j * stride + l];
  }
  __syncthreads();
}

}  // namespace

extern "C" {

// position = min(position, index of a number outside the bounds)
__global__ void first_outside(const u32* limbs, i64 stride, i64 count, i32 limb_count, const u32* bounds,
                              u32 flip, u64* position) {
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    if (is_outside(limbs + j * stride, bounds, limb_count, flip)) {
      atomicMin(position, static_cast<u64>(j));
      return;
    }
  }
}

// Needs (blockDim.x + 1) * kTileLimbs words of shared memory, blockDim.x a multiple of kTileLimbs. The
// table has a row of `padded` results for each term: the limbs and, of two's complement numbers, the sign
// bit.
__global__ void limbs_to_residues(const u32* limbs, i64 stride, i64 count, i32 limb_count, i32 terms,
                                  const u32* table, i32 padded, const u32* last, const WordFactors* factors,
                                  i32 moduli, u32* residues, i64 residue_stride) {
  extern __shared__ u32 tile[];
  const Table contributions = {table, padded};
  const bool has_sign = terms > limb_count;
  for (i64 first = thread_index() - threadIdx.x; first < count; first += thread_count()) {
    const i64 numbers = min(static_cast<i64>(blockDim.x), count - first);
    const bool active = threadIdx.x < numbers;
    const u32* number = limbs + (first + threadIdx.x) * stride;
    const u32 sign = active && has_sign ? number[limb_count - 1] >> 31 : 0;
    for (i32 i = 0; i < moduli; i += kResults) {
      Sums sums = {};
      for (i32 l0 = 0; l0 < limb_count; l0 += kTileLimbs) {
        const i32 limbs_here = min(kTileLimbs, limb_count - l0);
        load_tile(tile, limbs + first * stride + l0, stride, numbers, limbs_here);
        contributions.add(sums, l0, limbs_here, i,
                          [&](i32 l) { return tile[l * (blockDim.x + 1) + threadIdx.x]; });
      }
      if (has_sign) contributions.add(sums, sign, limb_count, i);
      u32* result = residues + i * residue_stride + first + threadIdx.x;
#pragma unroll
      for (i32 k = 0; k < kResults; ++k) {
        if (active && i + k < moduli)
          result[k * residue_stride] = mod_reduce(sums.of[k], factors[i + k], last[i + k]);
      }
    }
  }
}

// The table has `padded` results a row: the two words of the fraction, then the limbs.
__global__ void residues_to_limbs(const u32* residues, i64 stride, i64 count, i32 moduli, const u32* table,
                                  i32 padded, const u32* last, const Factor* inverses, const u32* product,
                                  const u32* highest, i32 limb_count, u32* limbs) {
  const Table contributions = {table, padded};
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    const auto term = [&](i32 i) { return mod_mul(residues[i * stride + j], inverses[i], last[i]); };
    u32* number = limbs + j * limb_count;
    u32 q = 0;
    LimbChain chain = {};
    for (i32 first = -2; first < limb_count; first += kResults) {
      Sums sums = {};
      contributions.add(sums, 0, moduli, first + 2, term);
      if (first < 0) q = crt_quotient(sums.of[0], sums.of[1], 0).q;
#pragma unroll
      for (i32 k = 0; k < kResults; ++k) {
        const i32 l = first + k;
        if (l >= 0 && l < limb_count) number[l] = crt_limb(chain, sums.of[k], q, product[l], highest[l]);
      }
    }
    if (crt_above(chain)) subtract_limbs(number, product, limb_count);
  }
}

// The same of few numbers of many moduli in two kernels. The first has a thread for each number and each
// kResults columns of the table, whose sums are stored number by number; the second one for each number.
__global__ void reverse_sums(const u32* residues, i64 stride, i64 count, i32 moduli, const u32* table,
                             i32 padded, const u32* last, const Factor* inverses, ProductSum* stored) {
  const Table contributions = {table, padded};
  for (i64 t = thread_index(); t < count * (padded / kResults); t += thread_count()) {
    const i64 j = t % count;
    const i32 first = static_cast<i32>(t / count) * kResults;
    Sums sums = {};
    contributions.add(sums, 0, moduli, first,
                      [&](i32 i) { return mod_mul(residues[i * stride + j], inverses[i], last[i]); });
#pragma unroll
    for (i32 k = 0; k < kResults; ++k) stored[(first + k) * count + j] = sums.of[k];
  }
}

__global__ void limbs_of_sums(const ProductSum* stored, i64 count, const u32* product, const u32* highest,
                              i32 limb_count, u32* limbs) {
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    u32* number = limbs + j * limb_count;
    const u32 q = crt_quotient(stored[j], stored[count + j], 0).q;
    LimbChain chain = {};
#pragma unroll 8  // sums are read before the chain comes to them
    for (i32 l = 0; l < limb_count; ++l) {
      number[l] = crt_limb(chain, stored[(l + 2) * count + j], q, product[l], highest[l]);
    }
    if (crt_above(chain)) subtract_limbs(number, product, limb_count);
  }
}

// The table has `padded` results a row: the two words of the fraction, then the new moduli. Its last row
// is -M, for the term q.
__global__ void base_extend(const u32* residues, i64 stride, i64 count, i32 moduli, const u32* table,
                            i32 padded, const u32* last, const Factor* inverses, u32 start,
                            u32 ambiguous_below, const u32* target_last, const WordFactors* factors,
                            i32 targets, u32* result, i64 result_stride, u8* ambiguous) {
  const Table contributions = {table, padded};
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    const auto term = [&](i32 i) { return mod_mul(residues[i * stride + j], inverses[i], last[i]); };
    u32 q = 0;
    for (i32 first = -2; first < targets; first += kResults) {
      Sums sums = {};
      contributions.add(sums, 0, moduli, first + 2, term);
      if (first < 0) {
        const CrtQuotient quotient = crt_quotient(sums.of[0], sums.of[1], start);
        q = quotient.q;
        ambiguous[j] = quotient.fraction < ambiguous_below;
      }
      contributions.add(sums, q, moduli, first + 2);
#pragma unroll
      for (i32 r = 0; r < kResults; ++r) {
        const i32 k = first + r;
        if (k >= 0 && k < targets) {
          result[k * result_stride + j] = mod_reduce(sums.of[r], factors[k], target_last[k]);
        }
      }
    }
  }
}

}  // extern "C"
