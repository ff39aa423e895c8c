#include "keys.hpp"

#include <algorithm>

#include "rns/keys.cuh"

#ifdef RNS_X86_LEVELS
#include <immintrin.h>
#endif

namespace rns {

namespace {

constexpr i64 kBlock = 16;

// Adds kRows rows to the sums of full blocks. Rows are taken together so that the sums are loaded and stored
// once for all of them. As many rows from `next` on, which come next, are brought into the second-level
// cache: the processor does not foresee a row's part, which is a page long, before some of it has been read.
using AddBlocks = void (*)(const u32* x, const u32* next, i64 stride, const u64* c, i64 width, u64* low,
                           u32* high);
using AddKeyed = void (*)(const KeyedSum& sum, i64 width);

RNS_INLINE void bring_near(const u32* x) { __builtin_prefetch(x, 0, 2); }

template <int kRows>
void add_blocks(const u32* x, const u32* next, i64 stride, const u64* c, i64 width, u64* __restrict__ low,
                u32* __restrict__ high) {
  for (i64 j = 0; j < width; j += kBlock) {
    for (int r = 0; r < kRows; ++r) {
      bring_near(next + r * stride + j);
      for (i64 k = 0; k < kBlock / 2; ++k) {
        const u32* pair = x + r * stride + j + 2 * k;
        key_accumulate(low[j + k], high[j + 2 * k], pair[0], c[r]);
        key_accumulate(low[j + kBlock / 2 + k], high[j + 2 * k + 1], pair[1], c[r]);
      }
    }
  }
}

template <int kRows, bool kSubtract>
void add_keyed_blocks(const KeyedSum& s, i64 width) {
  add_blocks<kRows>(s.x, s.x, s.x_stride, s.c, width, s.x_low, s.x_high);
  add_blocks<kRows>(s.y, s.y, s.y_stride, s.c, width, s.y_low, s.y_high);
  for (int r = 0; r < kRows; ++r) {
    const u32 *x = s.x + r * s.x_stride, *y = s.y + r * s.y_stride, last = s.moduli[r].last;
    u32* out = s.out + r * s.out_stride;
    for (i64 j = 0; j < width; ++j)
      out[j] = kSubtract ? mod_sub(x[j], y[j], last) : mod_add(x[j], y[j], last);
  }
}

// The compilers' own vectors widen residues by shuffles before they multiply, at more than twice the cost.
// The multiplication takes the lower half of each 64-bit lane: the even numbers, and after a shift the odd
// ones.
#ifdef RNS_X86_LEVELS

#define RNS_LEVEL256 __attribute__((target("arch=x86-64-v3"), always_inline)) inline
#define RNS_LEVEL512 __attribute__((target("arch=x86-64-v4"), always_inline)) inline

// One operand's lanes of 8 numbers.
struct Lanes256 {
  __m256i even, odd, upper;
};

RNS_LEVEL256 void load(Lanes256& lanes, const u64* low, const u32* high, i64 j) {
  const i64 block = j / kBlock * kBlock + j % kBlock / 2;
  lanes.even = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(low + block));
  lanes.odd = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(low + block + kBlock / 2));
  lanes.upper = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(high + j));
}

RNS_LEVEL256 void store(const Lanes256& lanes, u64* low, u32* high, i64 j) {
  const i64 block = j / kBlock * kBlock + j % kBlock / 2;
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(low + block), lanes.even);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(low + block + kBlock / 2), lanes.odd);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(high + j), lanes.upper);
}

RNS_LEVEL256 void accumulate(Lanes256& lanes, __m256i v, u64 c) {
  const __m256i c_low = _mm256_set1_epi64x(static_cast<i64>(c & 0xFFFFFFFF));
  lanes.even = _mm256_add_epi64(lanes.even, _mm256_mul_epu32(v, c_low));
  lanes.odd = _mm256_add_epi64(lanes.odd, _mm256_mul_epu32(_mm256_srli_epi64(v, 32), c_low));
  lanes.upper =
      _mm256_add_epi32(lanes.upper, _mm256_mullo_epi32(v, _mm256_set1_epi32(static_cast<i32>(c >> 32))));
}

template <int kRows>
__attribute__((target("arch=x86-64-v3"))) void add_blocks_256(const u32* x, const u32* next, i64 stride,
                                                              const u64* c, i64 width, u64* low, u32* high) {
  for (i64 j = 0; j < width; j += 8) {
    Lanes256 lanes;
    load(lanes, low, high, j);
    for (int r = 0; r < kRows; ++r) {
      if (j % kBlock == 0) bring_near(next + r * stride + j);
      accumulate(lanes, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + r * stride + j)), c[r]);
    }
    store(lanes, low, high, j);
  }
}

template <int kRows, bool kSubtract>
__attribute__((target("arch=x86-64-v3"))) void add_keyed_256(const KeyedSum& s, i64 width) {
  using Vector = u32 __attribute__((vector_size(32)));
  u64 c[kRows];
  Vector last[kRows];
  for (int r = 0; r < kRows; ++r) {
    c[r] = s.c[r];
    last[r] = Vector{} + s.moduli[r].last;
  }
  for (i64 j = 0; j < width; j += 8) {
    Lanes256 x_lanes, y_lanes;
    load(x_lanes, s.x_low, s.x_high, j);
    load(y_lanes, s.y_low, s.y_high, j);
    for (int r = 0; r < kRows; ++r) {
      const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(s.x + r * s.x_stride + j));
      const __m256i y = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(s.y + r * s.y_stride + j));
      accumulate(x_lanes, x, c[r]);
      accumulate(y_lanes, y, c[r]);
      const Vector a = reinterpret_cast<Vector>(x), b = reinterpret_cast<Vector>(y);
      const Vector t = kSubtract ? mod_sub(a, b, last[r]) : mod_add(a, b, last[r]);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(s.out + r * s.out_stride + j),
                          reinterpret_cast<__m256i>(t));
    }
    store(x_lanes, s.x_low, s.x_high, j);
    store(y_lanes, s.y_low, s.y_high, j);
  }
}

// One operand's lanes of 16 numbers.
struct Lanes512 {
  __m512i even, odd, upper;
};

RNS_LEVEL512 void load(Lanes512& lanes, const u64* low, const u32* high, i64 j) {
  const i64 block = j;
  lanes.even = _mm512_loadu_si512(low + block);
  lanes.odd = _mm512_loadu_si512(low + block + kBlock / 2);
  lanes.upper = _mm512_loadu_si512(high + j);
}

RNS_LEVEL512 void store(const Lanes512& lanes, u64* low, u32* high, i64 j) {
  const i64 block = j;
  _mm512_storeu_si512(low + block, lanes.even);
  _mm512_storeu_si512(low + block + kBlock / 2, lanes.odd);
  _mm512_storeu_si512(high + j, lanes.upper);
}

RNS_LEVEL512 void accumulate(Lanes512& lanes, __m512i v, u64 c) {
  const __m512i c_low = _mm512_set1_epi64(static_cast<i64>(c & 0xFFFFFFFF));
  lanes.even = _mm512_add_epi64(lanes.even, _mm512_mul_epu32(v, c_low));
  lanes.odd = _mm512_add_epi64(lanes.odd, _mm512_mul_epu32(_mm512_srli_epi64(v, 32), c_low));
  lanes.upper =
      _mm512_add_epi32(lanes.upper, _mm512_mullo_epi32(v, _mm512_set1_epi32(static_cast<i32>(c >> 32))));
}

template <int kRows>
__attribute__((target("arch=x86-64-v4"))) void add_blocks_512(const u32* x, const u32* next, i64 stride,
                                                              const u64* c, i64 width, u64* low, u32* high) {
  for (i64 j = 0; j < width; j += 16) {
    Lanes512 lanes;
    load(lanes, low, high, j);
    for (int r = 0; r < kRows; ++r) {
      bring_near(next + r * stride + j);
      accumulate(lanes, _mm512_loadu_si512(x + r * stride + j), c[r]);
    }
    store(lanes, low, high, j);
  }
}

// The same by whole 64-bit products, which leave nothing for the upper lane: two instructions a row fewer,
// where such a multiplication is no slower than that of 32 bits. AMD's are not; Intel's take three times as
// long.
template <int kRows>
__attribute__((target("arch=x86-64-v4"))) void add_blocks_by_whole_products(const u32* x, const u32* next,
                                                                            i64 stride, const u64* c,
                                                                            i64 width, u64* low, u32*) {
  const __m512i lower_half = _mm512_set1_epi64(0xFFFFFFFF);
  for (i64 j = 0; j < width; j += 16) {
    __m512i even = _mm512_loadu_si512(low + j), odd = _mm512_loadu_si512(low + j + kBlock / 2);
    for (int r = 0; r < kRows; ++r) {
      bring_near(next + r * stride + j);
      const __m512i v = _mm512_loadu_si512(x + r * stride + j);
      const __m512i factor = _mm512_set1_epi64(static_cast<i64>(c[r]));
      even = _mm512_add_epi64(even, _mm512_mullo_epi64(_mm512_and_si512(v, lower_half), factor));
      odd = _mm512_add_epi64(odd, _mm512_mullo_epi64(_mm512_srli_epi64(v, 32), factor));
    }
    _mm512_storeu_si512(low + j, even);
    _mm512_storeu_si512(low + j + kBlock / 2, odd);
  }
}

template <int kRows, bool kSubtract>
__attribute__((target("arch=x86-64-v4"))) void add_keyed_512(const KeyedSum& s, i64 width) {
  using Vector = u32 __attribute__((vector_size(64)));
  u64 c[kRows];
  Vector last[kRows];
  for (int r = 0; r < kRows; ++r) {
    c[r] = s.c[r];
    last[r] = Vector{} + s.moduli[r].last;
  }
  for (i64 j = 0; j < width; j += 16) {
    Lanes512 x_lanes, y_lanes;
    load(x_lanes, s.x_low, s.x_high, j);
    load(y_lanes, s.y_low, s.y_high, j);
    for (int r = 0; r < kRows; ++r) {
      const __m512i x = _mm512_loadu_si512(s.x + r * s.x_stride + j);
      const __m512i y = _mm512_loadu_si512(s.y + r * s.y_stride + j);
      accumulate(x_lanes, x, c[r]);
      accumulate(y_lanes, y, c[r]);
      const Vector a = reinterpret_cast<Vector>(x), b = reinterpret_cast<Vector>(y);
      const Vector t = kSubtract ? mod_sub(a, b, last[r]) : mod_add(a, b, last[r]);
      _mm512_storeu_si512(s.out + r * s.out_stride + j, reinterpret_cast<__m512i>(t));
    }
    store(x_lanes, s.x_low, s.x_high, j);
    store(y_lanes, s.y_low, s.y_high, j);
  }
}

template <int kRows>
AddBlocks best_add_blocks() {
  if (__builtin_cpu_supports("x86-64-v4"))
    return __builtin_cpu_is("amd") ? add_blocks_by_whole_products<kRows> : add_blocks_512<kRows>;
  if (__builtin_cpu_supports("x86-64-v3")) return add_blocks_256<kRows>;
  return add_blocks<kRows>;
}

template <int kRows, bool kSubtract>
AddKeyed best_add_keyed() {
  if (__builtin_cpu_supports("x86-64-v4")) return add_keyed_512<kRows, kSubtract>;
  if (__builtin_cpu_supports("x86-64-v3")) return add_keyed_256<kRows, kSubtract>;
  return add_keyed_blocks<kRows, kSubtract>;
}

#else

template <int kRows>
AddBlocks best_add_blocks() {
  return add_blocks<kRows>;
}

template <int kRows, bool kSubtract>
AddKeyed best_add_keyed() {
  return add_keyed_blocks<kRows, kSubtract>;
}

#endif

template <int kRows>
void add_rows(const u32* x, const u32* next, i64 stride, const u64* c, i64 width, u64* low, u32* high) {
  static const AddBlocks add_blocks_here = best_add_blocks<kRows>();
  const i64 full = width / kBlock * kBlock;
  add_blocks_here(x, next, stride, c, full, low, high);
  for (int r = 0; r < kRows; ++r) {
    for (i64 j = full; j < width; ++j) key_accumulate(low[j], high[j], x[r * stride + j], c[r]);
  }
}

template <int kRows, bool kSubtract>
void add_keyed_rows(const KeyedSum& s, i64 width) {
  static const AddKeyed add_keyed_here = best_add_keyed<kRows, kSubtract>();
  const i64 full = width / kBlock * kBlock;
  add_keyed_here(s, full);
  for (int r = 0; r < kRows; ++r) {
    for (i64 j = full; j < width; ++j) {
      const u32 x = s.x[r * s.x_stride + j], y = s.y[r * s.y_stride + j], last = s.moduli[r].last;
      key_accumulate(s.x_low[j], s.x_high[j], x, s.c[r]);
      key_accumulate(s.y_low[j], s.y_high[j], y, s.c[r]);
      s.out[r * s.out_stride + j] = kSubtract ? mod_sub(x, y, last) : mod_add(x, y, last);
    }
  }
}

}  // namespace

RNS_VECTORISED u64 sum_row(const u32* x, i64 width) {
  u64 total = 0;
  for (i64 j = 0; j < width; ++j) total += x[j];
  return total;
}

void add_to_keys(const u32* x, const u32* next, i64 stride, i64 rows, const u64* c, i64 width, u64* low,
                 u32* high) {
  i64 i = 0;
  for (; i + 4 <= rows; i += 4)
    add_rows<4>(x + i * stride, next + i * stride, stride, c + i, width, low, high);
  for (; i + 2 <= rows; i += 2)
    add_rows<2>(x + i * stride, next + i * stride, stride, c + i, width, low, high);
  for (; i < rows; ++i) add_rows<1>(x + i * stride, next + i * stride, stride, c + i, width, low, high);
}

void add_keyed(const KeyedSum& sum, i64 rows, i64 width) {
  KeyedSum s = sum;
  for (i64 i = 0; i < rows;) {
    const i64 taken = std::min<i64>(2, rows - i);
    if (taken == 2) {
      s.subtract ? add_keyed_rows<2, true>(s, width) : add_keyed_rows<2, false>(s, width);
    } else {
      s.subtract ? add_keyed_rows<1, true>(s, width) : add_keyed_rows<1, false>(s, width);
    }
    i += taken;
    s.x += taken * s.x_stride;
    s.y += taken * s.y_stride;
    s.out += taken * s.out_stride;
    s.c += taken;
    s.moduli += taken;
  }
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
    // The next rows, of which there may be fewer than these, or the first ones of the next tile.
    const bool is_last = end == residues.moduli;
    const i64 row = is_last ? 0 : std::min(end, residues.moduli - (end - i));
    const i64 column = is_last ? std::min(first + width, residues.count - width) : first;
    add_to_keys(residues.row(i) + first, residues.row(row) + column, residues.stride, end - i, c + i, width,
                sums.low, sums.high);
    if (row_sums == nullptr) continue;
    for (i64 k = i; k < end; ++k) row_sums[k] += sum_row(residues.row(k) + first, width);
  }
  finish_keys(sums.low, sums.high, start, width, keys);
}

}  // namespace rns
