#include "keys.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "rns/keys.cuh"

#ifdef RNS_X86_LEVELS
#include <immintrin.h>
#endif

namespace rns {

namespace {

constexpr i64 kBlock = 16;

// From so many on, rows are read in longer pieces.
constexpr i64 kManyModuli = 32;

// Rows that are taken together, at most.
constexpr i64 kMostRows = 8;

// Blocks of a row that are added before those of the next row where rows are read in long pieces.
constexpr i64 kBlocksInTurn = 4;

// Where several blocks are, all of those so many numbers on are brought into the cache: memory
// gives them together sooner than one of each row.
constexpr i64 kFarOn = 1024;

// Adds kRows rows to the sums of full blocks. Rows are taken together so that the sums are loaded and stored
// once for all of them, and the sums of the rows themselves, if they are wanted, stay in registers. The
// processor does not foresee a row's part, of a page or a few, before some of it has been read: so what comes
// `ahead` is brought into the cache; where that is past the array's end, nothing is.
using AddBlocks = void (*)(const KeyRows& rows, i64 width, u64* keys);
using AddKeyed = void (*)(const KeyedSum& sum, i64 width);

RNS_INLINE void bring_near(const u32* x) { __builtin_prefetch(x); }

template <int kRows, bool kSums>
void add_blocks(const KeyRows& rows, i64 width, u64* __restrict__ keys) {
  for (i64 j = 0; j < width; j += kBlock) {
    u32 upper[kBlock] = {};
    for (int r = 0; r < kRows; ++r) {
      const u32* x = rows.x + r * rows.stride + j;
      bring_near(x + rows.ahead);
      for (i64 k = 0; k < kBlock / 2; ++k) {
        key_accumulate(keys[j + k], upper[2 * k], x[2 * k], rows.c[r]);
        key_accumulate(keys[j + kBlock / 2 + k], upper[2 * k + 1], x[2 * k + 1], rows.c[r]);
      }
      if (kSums) rows.sums[r] += std::accumulate(x, x + kBlock, u64{0});
    }
    for (i64 k = 0; k < kBlock / 2; ++k) {
      keys[j + k] = key_of(keys[j + k], upper[2 * k]);
      keys[j + kBlock / 2 + k] = key_of(keys[j + kBlock / 2 + k], upper[2 * k + 1]);
    }
  }
}

template <int kRows, bool kSubtract>
void add_keyed_blocks(const KeyedSum& s, i64 width) {
  add_blocks<kRows, false>({s.x, s.x_stride, s.c}, width, s.x_keys);
  add_blocks<kRows, false>({s.y, s.y_stride, s.c}, width, s.y_keys);
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

// Adds the sums of kRows rows, of which `pairs` has those of each lane's 64 bits, low + 2^32 odd, and `odd`
// those of their upper halves alone.
template <int kRows, int kLanes>
RNS_INLINE void add_sums(const u64* pairs, const u64* odd, u64* sums) {
  for (int r = 0; r < kRows; ++r) {
    for (int k = r * kLanes; k < (r + 1) * kLanes; ++k) sums[r] += pairs[k] - (odd[k] << 32) + odd[k];
  }
}

// The keys of 8 numbers while rows are added: of each, low + 2^32 upper.
struct Lanes256 {
  __m256i even, odd, upper;
};

RNS_LEVEL256 void load(Lanes256& lanes, const u64* keys, i64 j) {
  const i64 block = j / kBlock * kBlock + j % kBlock / 2;
  lanes.even = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(keys + block));
  lanes.odd = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(keys + block + kBlock / 2));
  lanes.upper = _mm256_setzero_si256();
}

RNS_LEVEL256 void store(const Lanes256& lanes, u64* keys, i64 j) {
  const i64 block = j / kBlock * kBlock + j % kBlock / 2;
  const __m256i even = _mm256_add_epi64(lanes.even, _mm256_slli_epi64(lanes.upper, 32));
  const __m256i odd_upper = _mm256_blend_epi32(_mm256_setzero_si256(), lanes.upper, 0xAA);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(keys + block), even);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(keys + block + kBlock / 2),
                      _mm256_add_epi64(lanes.odd, odd_upper));
}

RNS_LEVEL256 void accumulate(Lanes256& lanes, __m256i v, u64 c) {
  const __m256i c_low = _mm256_set1_epi64x(static_cast<i64>(c & 0xFFFFFFFF));
  lanes.even = _mm256_add_epi64(lanes.even, _mm256_mul_epu32(v, c_low));
  lanes.odd = _mm256_add_epi64(lanes.odd, _mm256_mul_epu32(_mm256_srli_epi64(v, 32), c_low));
  lanes.upper =
      _mm256_add_epi32(lanes.upper, _mm256_mullo_epi32(v, _mm256_set1_epi32(static_cast<i32>(c >> 32))));
}

template <int kRows, bool kSums>
__attribute__((target("arch=x86-64-v3"))) void add_blocks_256(const KeyRows& rows, i64 width, u64* keys) {
  u64 c[kRows];
  std::copy_n(rows.c, kRows, c);
  __m256i pairs[kRows] = {}, odd[kRows] = {};
  for (i64 j = 0; j < width; j += 8) {
    Lanes256 lanes;
    load(lanes, keys, j);
    for (int r = 0; r < kRows; ++r) {
      const u32* x = rows.x + r * rows.stride + j;
      if (j % kBlock == 0) bring_near(x + rows.ahead);
      const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
      accumulate(lanes, v, c[r]);
      if (kSums) {
        pairs[r] = _mm256_add_epi64(pairs[r], v);
        odd[r] = _mm256_add_epi64(odd[r], _mm256_srli_epi64(v, 32));
      }
    }
    store(lanes, keys, j);
  }
  if (kSums)
    add_sums<kRows, 4>(reinterpret_cast<const u64*>(pairs), reinterpret_cast<const u64*>(odd), rows.sums);
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
    load(x_lanes, s.x_keys, j);
    load(y_lanes, s.y_keys, j);
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
    store(x_lanes, s.x_keys, j);
    store(y_lanes, s.y_keys, j);
  }
}

// The keys of 16 numbers while rows are added.
struct Lanes512 {
  __m512i even, odd, upper;
};

RNS_AVX512_INLINE void load(Lanes512& lanes, const u64* keys, i64 j) {
  lanes.even = _mm512_loadu_si512(keys + j);
  lanes.odd = _mm512_loadu_si512(keys + j + kBlock / 2);
  lanes.upper = _mm512_setzero_si512();
}

RNS_AVX512_INLINE void store(const Lanes512& lanes, u64* keys, i64 j) {
  const __m512i even = _mm512_add_epi64(lanes.even, _mm512_slli_epi64(lanes.upper, 32));
  const __m512i odd_upper = _mm512_maskz_mov_epi32(0xAAAA, lanes.upper);
  _mm512_storeu_si512(keys + j, even);
  _mm512_storeu_si512(keys + j + kBlock / 2, _mm512_add_epi64(lanes.odd, odd_upper));
}

RNS_AVX512_INLINE void accumulate(Lanes512& lanes, __m512i v, u64 c) {
  const __m512i c_low = _mm512_set1_epi64(static_cast<i64>(c & 0xFFFFFFFF));
  lanes.even = _mm512_add_epi64(lanes.even, _mm512_mul_epu32(v, c_low));
  lanes.odd = _mm512_add_epi64(lanes.odd, _mm512_mul_epu32(_mm512_srli_epi64(v, 32), c_low));
  lanes.upper =
      _mm512_add_epi32(lanes.upper, _mm512_mullo_epi32(v, _mm512_set1_epi32(static_cast<i32>(c >> 32))));
}

// The same by whole 64-bit products: two instructions a row fewer, where such a multiplication is no slower
// than that of 32 bits. AMD's are not; Intel's take three times as long. The pairs are even + 2^32 odd, so
// their products exceed those of the even ones by 2^32 times those of the odd ones, taken off at last.
struct WholeProducts {
  __m512i pairs, odd;
};

RNS_AVX512_INLINE void load(WholeProducts& lanes, const u64* keys, i64 j) {
  lanes.pairs = _mm512_loadu_si512(keys + j);
  lanes.odd = _mm512_setzero_si512();
}

RNS_AVX512_INLINE void store(const WholeProducts& lanes, u64* keys, i64 j) {
  u64* odd_keys = keys + j + kBlock / 2;
  _mm512_storeu_si512(keys + j, _mm512_sub_epi64(lanes.pairs, _mm512_slli_epi64(lanes.odd, 32)));
  _mm512_storeu_si512(odd_keys, _mm512_add_epi64(_mm512_loadu_si512(odd_keys), lanes.odd));
}

RNS_AVX512_INLINE void accumulate(WholeProducts& lanes, __m512i v, u64 c) {
  const __m512i factor = _mm512_set1_epi64(static_cast<i64>(c));
  lanes.pairs = _mm512_add_epi64(lanes.pairs, _mm512_mullo_epi64(v, factor));
  lanes.odd = _mm512_add_epi64(lanes.odd, _mm512_mullo_epi64(_mm512_srli_epi64(v, 32), factor));
}

// Adds a row's part, from x on, to the keys of kBlocks blocks and to the row's sum.
template <class Lanes, bool kSums, int kBlocks>
RNS_AVX512_INLINE void add_part_512(const u32* x, u64 c, Lanes* lanes, __m512i& pairs, __m512i& odd) {
  for (int block = 0; block < kBlocks; ++block) {
    __m512i v = _mm512_loadu_si512(x + kBlock * block);
    asm("" : "+v"(v));  // GCC would load it anew for each use
    accumulate(lanes[block], v, c);
    if (!kSums) continue;
    pairs = _mm512_add_epi64(pairs, v);
    odd = _mm512_add_epi64(odd, _mm512_srli_epi64(v, 32));
  }
}

// Adds kRows rows to the keys of kBlocks blocks from j on, and to the rows' own sums. Of several blocks, the
// loop stays one: unrolled, GCC loads all rows before it uses any, and runs out of registers.
template <class Lanes, int kRows, bool kSums, int kBlocks>
RNS_AVX512_INLINE void add_parts_512(const KeyRows& rows, const u64* c, i64 j, u64* keys, __m512i* pairs,
                                     __m512i* odd) {
  Lanes lanes[kBlocks];
  for (int block = 0; block < kBlocks; ++block) load(lanes[block], keys, j + kBlock * block);
  const u32* x = rows.x + j;
  if (kBlocks == 1) {
    for (int r = 0; r < kRows; ++r, x += rows.stride) {
      bring_near(x + rows.ahead);
      add_part_512<Lanes, kSums, kBlocks>(x, c[r], lanes, pairs[r], odd[r]);
    }
  } else {
#pragma GCC unroll 1
    for (int r = 0; r < kRows; ++r, x += rows.stride) {
      for (int block = 0; block < kBlocks; ++block) bring_near(x + kFarOn + kBlock * block);
      add_part_512<Lanes, kSums, kBlocks>(x, c[r], lanes, pairs[r], odd[r]);
    }
  }
  for (int block = 0; block < kBlocks; ++block) store(lanes[block], keys, j + kBlock * block);
}

template <class Lanes, int kRows, bool kSums>
RNS_AVX512 void add_blocks_512(const KeyRows& rows, i64 width, u64* keys) {
  constexpr i64 kInTurn = kBlocksInTurn * kBlock;
  u64 c[kRows];
  std::copy_n(rows.c, kRows, c);
  __m512i pairs[kRows] = {}, odd[kRows] = {};
  i64 j = 0;
  if (rows.ahead == 0) {
    for (; j + kInTurn <= width; j += kInTurn)
      add_parts_512<Lanes, kRows, kSums, kBlocksInTurn>(rows, c, j, keys, pairs, odd);
  }
  for (; j < width; j += kBlock) add_parts_512<Lanes, kRows, kSums, 1>(rows, c, j, keys, pairs, odd);
  if (kSums)
    add_sums<kRows, 8>(reinterpret_cast<const u64*>(pairs), reinterpret_cast<const u64*>(odd), rows.sums);
}

template <int kRows, bool kSubtract>
RNS_AVX512 void add_keyed_512(const KeyedSum& s, i64 width) {
  using Vector = u32 __attribute__((vector_size(64)));
  u64 c[kRows];
  Vector last[kRows];
  for (int r = 0; r < kRows; ++r) {
    c[r] = s.c[r];
    last[r] = Vector{} + s.moduli[r].last;
  }
  for (i64 j = 0; j < width; j += 16) {
    Lanes512 x_lanes, y_lanes;
    load(x_lanes, s.x_keys, j);
    load(y_lanes, s.y_keys, j);
    for (int r = 0; r < kRows; ++r) {
      const __m512i x = _mm512_loadu_si512(s.x + r * s.x_stride + j);
      const __m512i y = _mm512_loadu_si512(s.y + r * s.y_stride + j);
      accumulate(x_lanes, x, c[r]);
      accumulate(y_lanes, y, c[r]);
      const Vector a = reinterpret_cast<Vector>(x), b = reinterpret_cast<Vector>(y);
      const Vector t = kSubtract ? mod_sub(a, b, last[r]) : mod_add(a, b, last[r]);
      _mm512_storeu_si512(s.out + r * s.out_stride + j, reinterpret_cast<__m512i>(t));
    }
    store(x_lanes, s.x_keys, j);
    store(y_lanes, s.y_keys, j);
  }
}

template <int kRows, bool kSums>
AddBlocks add_blocks_by(KeyMethod method) {
  if (method == KeyMethod::kWholeProducts) return add_blocks_512<WholeProducts, kRows, kSums>;
  if (method == KeyMethod::kAvx512) return add_blocks_512<Lanes512, kRows, kSums>;
  if (method == KeyMethod::kAvx2) return add_blocks_256<kRows, kSums>;
  return add_blocks<kRows, kSums>;
}

template <int kRows, bool kSubtract>
AddKeyed best_add_keyed() {
  if (__builtin_cpu_supports("x86-64-v4")) return add_keyed_512<kRows, kSubtract>;
  if (__builtin_cpu_supports("x86-64-v3")) return add_keyed_256<kRows, kSubtract>;
  return add_keyed_blocks<kRows, kSubtract>;
}

#else

template <int kRows, bool kSums>
AddBlocks add_blocks_by(KeyMethod) {
  return add_blocks<kRows, kSums>;
}

template <int kRows, bool kSubtract>
AddKeyed best_add_keyed() {
  return add_keyed_blocks<kRows, kSubtract>;
}

#endif

template <int kRows, bool kSums>
void add_rows(const KeyRows& rows, i64 width, u64* keys, KeyMethod method) {
  const i64 full = width / kBlock * kBlock;
  add_blocks_by<kRows, kSums>(method)(rows, full, keys);
  for (int r = 0; r < kRows; ++r) {
    for (i64 j = full; j < width; ++j) {
      const u32 x = rows.x[r * rows.stride + j];
      keys[j] += x * rows.c[r];
      if (kSums) rows.sums[r] += x;
    }
  }
}

// Adds as many of the rows as are multiples of kRows; the rest are left in `rows` and `count`.
template <int kRows>
void add_most_rows(KeyRows& rows, i64& count, i64 width, u64* keys, KeyMethod method) {
  for (; count >= kRows; count -= kRows) {
    if (rows.sums == nullptr) {
      add_rows<kRows, false>(rows, width, keys, method);
    } else {
      add_rows<kRows, true>(rows, width, keys, method);
      rows.sums += kRows;
    }
    rows.x += kRows * rows.stride;
    rows.c += kRows;
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
      s.x_keys[j] += x * s.c[r];
      s.y_keys[j] += y * s.c[r];
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

bool is_supported(KeyMethod method) {
#ifdef RNS_X86_LEVELS
  if (method == KeyMethod::kWholeProducts || method == KeyMethod::kAvx512)
    return __builtin_cpu_supports("x86-64-v4");
  if (method == KeyMethod::kAvx2) return __builtin_cpu_supports("x86-64-v3");
#endif
  return method == KeyMethod::kPortable;
}

KeyMethod best_key_method() {
#ifdef RNS_X86_LEVELS
  static const KeyMethod best = !is_supported(KeyMethod::kAvx2)     ? KeyMethod::kPortable
                                : !is_supported(KeyMethod::kAvx512) ? KeyMethod::kAvx2
                                : __builtin_cpu_is("amd")           ? KeyMethod::kWholeProducts
                                                                    : KeyMethod::kAvx512;
  return best;
#else
  return KeyMethod::kPortable;
#endif
}

void add_to_keys(KeyRows rows, i64 count, i64 width, u64* keys, KeyMethod method) {
  add_most_rows<kMostRows>(rows, count, width, keys, method);
  add_most_rows<4>(rows, count, width, keys, method);
  add_most_rows<2>(rows, count, width, keys, method);
  add_most_rows<1>(rows, count, width, keys, method);
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

RNS_VECTORISED void finish_keys(const u64* sums, u64 start, i64 width, u64* __restrict__ keys) {
  const i64 full = width / kBlock * kBlock;
  for (i64 j = 0; j < full; j += kBlock) {
    for (i64 k = 0; k < kBlock / 2; ++k) {
      keys[j + 2 * k] = start + sums[j + k];
      keys[j + 2 * k + 1] = start + sums[j + kBlock / 2 + k];
    }
  }
  for (i64 j = full; j < width; ++j) keys[j] = start + sums[j];
}

// Of few moduli, the sums stay in the first-level cache. Of many, they are few beside the rows, and these are
// read in longer pieces. By AVX-512 the pieces are so long, of 48 pages, that the processor foresees much of
// what comes, as long as it finds some lines of a row at a time, and what is brought near beyond their ends
// is little; and the sums take less than half of a second-level cache of 1 MiB.
KeyTiles key_tiles(i64 moduli) {
  if (moduli < kManyModuli) return {kTile, kTile / 2};
  const KeyMethod method = best_key_method();
  const bool by_512 = method == KeyMethod::kWholeProducts || method == KeyMethod::kAvx512;
  return by_512 ? KeyTiles{48 * kTile, 0} : KeyTiles{4 * kTile, kTile};
}

void sum_keys(const Residues& residues, const u64* c, i64 first, i64 width, u64* sums, u64* row_sums) {
  std::fill_n(sums, width, u64{0});
  const i64 ahead = key_tiles(residues.moduli).ahead;
  add_to_keys({residues.data + first, residues.stride, c, ahead, row_sums}, residues.moduli, width, sums);
}

void evaluate_keys(const Residues& residues, const u64* c, u64 start, i64 first, i64 width, u64* keys) {
  alignas(64) u64 sums[kTile] = {};
  const i64 ahead = residues.moduli < kManyModuli ? kTile / 2 : kTile;
  add_to_keys({residues.data + first, residues.stride, c, ahead}, residues.moduli, width, sums);
  finish_keys(sums, start, width, keys);
}

namespace {

constexpr std::pair<const char*, KeyMethod> kMethods[] = {{"portable", KeyMethod::kPortable},
                                                          {"avx2", KeyMethod::kAvx2},
                                                          {"avx512", KeyMethod::kAvx512},
                                                          {"whole products", KeyMethod::kWholeProducts}};

}  // namespace

// For tests only: reductions take the best method.
void bind_keys(nb::module_& module) {
  module.def("key_methods", [] {
    std::vector<std::string> names;
    for (const auto& [name, method] : kMethods) {
      if (is_supported(method)) names.emplace_back(name);
    }
    return names;
  });
  module.def("keys_by", [](const std::string& name, const Matrix32& array, const Vector64& c, i64 ahead,
                           MutableVector64 keys, MutableVector64 row_sums) {
    const Residues residues(array);
    require(static_cast<i64>(c.shape(0)) == residues.moduli && row_sums.shape(0) == c.shape(0),
            "one coefficient and one sum for each modulus are needed");
    require(static_cast<i64>(keys.shape(0)) == residues.count, "one key for each number is needed");
    for (const auto& [known, method] : kMethods) {
      if (name != known || !is_supported(method)) continue;
      std::vector<u64> sums(residues.count);
      const KeyRows rows = {residues.data, residues.stride, c.data(), ahead, row_sums.data()};
      add_to_keys(rows, residues.moduli, residues.count, sums.data(), method);
      finish_keys(sums.data(), 0, residues.count, keys.data());
      return;
    }
    throw nb::value_error("no such method on this processor");
  });
}

}  // namespace rns
