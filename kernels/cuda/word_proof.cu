// Proof that numbers of few moduli are within a bound, by one fixed-point evaluation each in words of up to
// 31 bits. A thread takes four numbers.
#include <rns/word_proof.cuh>

using namespace rns;

namespace {

constexpr i32 kNumbers = 4;
constexpr i32 kThreads = 256;

struct WordProof {
  const u32* residues;
  i64 stride;
  i64 count;
  i64 is_aligned;  // for vectors of 16 bytes
  u8* proved;
  i32 moduli;
  i32 words;
  WordWindow window;
  u32 coefficients[kMostProofCoefficients];  // those of a modulus one after the other, the lowest word first
};

// Residues of four numbers at an address; of the numbers there are `count`, of others the residues are 0.
template <bool kAsVector>
__device__ void load(const u32* from, i64 count, u32 (&x)[kNumbers]) {
  if (kAsVector) {
    const uint4 vector = __ldcs(reinterpret_cast<const uint4*>(from));
    x[0] = vector.x, x[1] = vector.y, x[2] = vector.z, x[3] = vector.w;
  } else {
#pragma unroll
    for (i32 c = 0; c < kNumbers; ++c) x[c] = c < count ? __ldcs(from + c) : 0;
  }
}

template <i32 kWords, bool kAsVectors>
__device__ void add_products(const WordProof& p, i64 first, u64 (&sums)[kNumbers][kWords]) {
  const u32* from = p.residues + first;
#pragma unroll(kAsVectors ? 4 : 1)
  for (i32 i = 0; i < p.moduli; ++i, from += p.stride) {
    u32 x[kNumbers];
    load<kAsVectors>(from, p.count - first, x);
#pragma unroll
    for (i32 k = 0; k < kWords; ++k) {
      const u32 coefficient = p.coefficients[i * kWords + k];
#pragma unroll
      for (i32 c = 0; c < kNumbers; ++c) sums[c][k] += static_cast<u64>(x[c]) * coefficient;
    }
  }
}

template <i32 kWords>
__device__ void prove(const WordProof& p) {
  const i64 step = static_cast<i64>(gridDim.x) * blockDim.x * kNumbers;
  i64 first = (static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x) * kNumbers;
  for (; first < p.count; first += step) {
    u64 sums[kNumbers][kWords];
#pragma unroll
    for (i32 c = 0; c < kNumbers; ++c) {
#pragma unroll
      for (i32 k = 0; k < kWords; ++k) sums[c][k] = p.window.start[k];
    }
    if (p.is_aligned && first + kNumbers <= p.count) {
      add_products<kWords, true>(p, first, sums);
    } else {
      add_products<kWords, false>(p, first, sums);
    }
#pragma unroll
    for (i32 c = 0; c < kNumbers; ++c) {
      if (first + c < p.count) p.proved[first + c] = is_in_window<kWords>(sums[c], p.window);
    }
  }
}

}  // namespace

extern "C" {

__global__ __launch_bounds__(kThreads) void prove_by_words(const __grid_constant__ WordProof p) {
  switch (p.words) {
    case 4:
      return prove<4>(p);
    case 5:
      return prove<5>(p);
    case 6:
      return prove<6>(p);
    case 7:
      return prove<7>(p);
    case 8:
      return prove<8>(p);
  }
}

}  // extern "C"
