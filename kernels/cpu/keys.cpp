#include "keys.hpp"

#include <algorithm>

#include "rns/evaluate.cuh"

#ifdef RNS_X86_LEVELS
#include <immintrin.h>
#endif

namespace rns {

namespace {

constexpr i64 kBlock = 16;

// Adds kRows rows to the sums of full blocks. Rows are taken together so that the sums are loaded and stored
// once for all of them.
using AddBlocks = void (*)(const u32* x, i64 stride, const u64* c, i64 width, u64* low, u32* high);

template <int kRows>
void add_blocks(const u32* x, i64 stride, const u64* c, i64 width, u64* __restrict__ low,
                u32* __restrict__ high) {
  for (i64 j = 0; j < width; j += kBlock) {
    for (int r = 0; r < kRows; ++r) {
      for (i64 k = 0; k < kBlock / 2; ++k) {
        const u32* pair = x + r * stride + j + 2 * k;
        key_accumulate(low[j + k], high[j + 2 * k], pair[0], c[r]);
        key_accumulate(low[j + kBlock / 2 + k], high[j + 2 * k + 1], pair[1], c[r]);
      }
    }
  }
}

// The compilers' own vectors widen residues by shuffles before they multiply, at more than twice the cost.
// The multiplication takes the lower half of each 64-bit lane: the even numbers, and after a shift the odd
// ones.
#ifdef RNS_X86_LEVELS

template <int kRows>
__attribute__((target("arch=x86-64-v3"))) void add_blocks_256(const u32* x, i64 stride, const u64* c,
                                                              i64 width, u64* low, u32* high) {
  __m256i c_low[kRows], c_high[kRows];
  for (int r = 0; r < kRows; ++r) {
    c_low[r] = _mm256_set1_epi64x(static_cast<i64>(c[r] & 0xFFFFFFFF));
    c_high[r] = _mm256_set1_epi32(static_cast<i32>(c[r] >> 32));
  }
  for (i64 j = 0; j < width; j += kBlock / 2) {
    const i64 block = j / kBlock * kBlock + j % kBlock / 2;
    auto* even = reinterpret_cast<__m256i*>(low + block);
    auto* odd = reinterpret_cast<__m256i*>(low + block + kBlock / 2);
    auto* upper = reinterpret_cast<__m256i*>(high + j);
    __m256i sum0 = _mm256_loadu_si256(even), sum1 = _mm256_loadu_si256(odd), sum2 = _mm256_loadu_si256(upper);
    for (int r = 0; r < kRows; ++r) {
      const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + r * stride + j));
      sum0 = _mm256_add_epi64(sum0, _mm256_mul_epu32(v, c_low[r]));
      sum1 = _mm256_add_epi64(sum1, _mm256_mul_epu32(_mm256_srli_epi64(v, 32), c_low[r]));
      sum2 = _mm256_add_epi32(sum2, _mm256_mullo_epi32(v, c_high[r]));
    }
    _mm256_storeu_si256(even, sum0);
    _mm256_storeu_si256(odd, sum1);
    _mm256_storeu_si256(upper, sum2);
  }
}

template <int kRows>
__attribute__((target("arch=x86-64-v4"))) void add_blocks_512(const u32* x, i64 stride, const u64* c,
                                                              i64 width, u64* low, u32* high) {
  __m512i c_low[kRows], c_high[kRows];
  for (int r = 0; r < kRows; ++r) {
    c_low[r] = _mm512_set1_epi64(static_cast<i64>(c[r] & 0xFFFFFFFF));
    c_high[r] = _mm512_set1_epi32(static_cast<i32>(c[r] >> 32));
  }
  for (i64 j = 0; j < width; j += kBlock) {
    u64 *even = low + j, *odd = low + j + kBlock / 2;
    __m512i sum0 = _mm512_loadu_si512(even), sum1 = _mm512_loadu_si512(odd),
            sum2 = _mm512_loadu_si512(high + j);
    for (int r = 0; r < kRows; ++r) {
      const __m512i v = _mm512_loadu_si512(x + r * stride + j);
      sum0 = _mm512_add_epi64(sum0, _mm512_mul_epu32(v, c_low[r]));
      sum1 = _mm512_add_epi64(sum1, _mm512_mul_epu32(_mm512_srli_epi64(v, 32), c_low[r]));
      sum2 = _mm512_add_epi32(sum2, _mm512_mullo_epi32(v, c_high[r]));
    }
    _mm512_storeu_si512(even, sum0);
    _mm512_storeu_si512(odd, sum1);
    _mm512_storeu_si512(high + j, sum2);
  }
}

template <int kRows>
AddBlocks best_add_blocks() {
  if (__builtin_cpu_supports("x86-64-v4")) return add_blocks_512<kRows>;
  if (__builtin_cpu_supports("x86-64-v3")) return add_blocks_256<kRows>;
  return add_blocks<kRows>;
}

#else

template <int kRows>
AddBlocks best_add_blocks() {
  return add_blocks<kRows>;
}

#endif

template <int kRows>
void add_rows(const u32* x, i64 stride, const u64* c, i64 width, u64* low, u32* high) {
  static const AddBlocks add_blocks_here = best_add_blocks<kRows>();
  const i64 full = width / kBlock * kBlock;
  add_blocks_here(x, stride, c, full, low, high);
  for (int r = 0; r < kRows; ++r) {
    for (i64 j = full; j < width; ++j) key_accumulate(low[j], high[j], x[r * stride + j], c[r]);
  }
}

}  // namespace

RNS_VECTORISED u64 sum_row(const u32* x, i64 width) {
  u64 total = 0;
  for (i64 j = 0; j < width; ++j) total += x[j];
  return total;
}

void add_to_keys(const u32* x, i64 stride, i64 rows, const u64* c, i64 width, u64* low, u32* high) {
  i64 i = 0;
  for (; i + 4 <= rows; i += 4) add_rows<4>(x + i * stride, stride, c + i, width, low, high);
  for (; i + 2 <= rows; i += 2) add_rows<2>(x + i * stride, stride, c + i, width, low, high);
  for (; i < rows; ++i) add_rows<1>(x + i * stride, stride, c + i, width, low, high);
}

RNS_VECTORISED void finish_keys(const u64* low, const u32* high, u64 start, i64 width,
                                u64* __restrict__ keys) {
  const i64 full = width / kBlock * kBlock;
  for (i64 j = 0; j < full; j += kBlock) {
    for (i64 k = 0; k < kBlock / 2; ++k) {
      keys[j + 2 * k] = start + key_of(low[j + k], high[j + 2 * k]);
      keys[j + 2 * k + 1] = start + key_of(low[j + kBlock / 2 + k], high[j + 2 * k + 1]);
    }
  }
  for (i64 j = full; j < width; ++j) keys[j] = start + key_of(low[j], high[j]);
}

void evaluate_keys(const Residues& residues, const u64* c, u64 start, i64 first, i64 width, u64* keys,
                   u64* row_sums) {
  KeyLanes<kTile> sums;
  std::fill_n(sums.low, width, u64{0});
  std::fill_n(sums.high, width, 0u);
  for (i64 i = 0; i < residues.moduli; i += 4) {
    const i64 end = std::min(i + 4, residues.moduli);
    add_to_keys(residues.row(i) + first, residues.stride, end - i, c + i, width, sums.low, sums.high);
    if (row_sums == nullptr) continue;
    for (i64 k = i; k < end; ++k) row_sums[k] += sum_row(residues.row(k) + first, width);
  }
  finish_keys(sums.low, sums.high, start, width, keys);
}

}  // namespace rns
