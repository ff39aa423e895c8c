// The loops over tiles of ntt_tile.hpp, for each instruction set.
#include "ntt_tile.hpp"

#include <algorithm>

#ifdef RNS_X86_LEVELS
#include <immintrin.h>
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 12 says it of its own _mm512_undefined_epi32
#endif

namespace rns {

Prime::Prime(u32 p) : value(p), inverse(p), reciprocal(~u64{0} / p) {
  for (int k = 0; k < 4; ++k) inverse *= 2 - p * inverse;  // Newton: 3 bits are right, then 6, 12, 24, 48
}

Factor Prime::factor(u32 w) const {
  const u64 x = static_cast<u64>(w) << 32;
  u64 quotient = static_cast<u64>((static_cast<unsigned __int128>(x) * reciprocal) >> 64);
  u64 remainder = x - quotient * value;  // the quotient is exact or one too small
  if (remainder >= value) {
    ++quotient;
    remainder -= value;
  }
  if (is_narrow()) return {w, static_cast<u32>(quotient)};
  return {static_cast<u32>(remainder), static_cast<u32>(remainder) * inverse};
}

namespace {

// Lines shorter than a vector.
void gather_few(const u32* const* lines, i64 length, u32* tile) {
  for (i64 k = 0; k < kLanes; ++k) {
    for (i64 r = 0; r < length; ++r) tile[r * kLanes + k] = lines[k][r];
  }
}

void scatter_few(const u32* tile, i64 length, const i64* order, i64 width, u32* const* lines) {
  for (i64 k = 0; k < width; ++k) {
    for (i64 r = 0; r < length; ++r) {
      lines[k][r] = tile[(order != nullptr ? order[r] : r) * kLanes + k];
    }
  }
}

namespace portable {

struct V {
  using Type = u32;
  static constexpr int kWidth = 1;

  static RNS_INLINE u32 load(const u32* x) { return *x; }
  static RNS_INLINE void store(u32* x, u32 a) { *x = a; }
  static RNS_INLINE u32 broadcast(u32 a) { return a; }
  static RNS_INLINE u32 add(u32 a, u32 b) { return a + b; }
  static RNS_INLINE u32 sub(u32 a, u32 b) { return a - b; }
  static RNS_INLINE u32 min(u32 a, u32 b) { return a < b ? a : b; }
  static RNS_INLINE u32 mul_low(u32 a, u32 b) { return a * b; }
  template <bool kSame>
  static RNS_INLINE u32 mul_high(u32 a, u32 b) {
    return static_cast<u32>((static_cast<u64>(a) * b) >> 32);
  }
  // r, or r + c where a < b.
  static RNS_INLINE u32 add_if_less(u32 a, u32 b, u32 r, u32 c) { return r + (a < b ? c : 0); }
  static RNS_INLINE void transpose(u32*) {}
};

#define RNS_LEVEL
#define RNS_LEVEL_INLINE RNS_INLINE
constexpr int kMost = 2;
#include "ntt_loops.hpp"
#undef RNS_LEVEL
#undef RNS_LEVEL_INLINE

}  // namespace portable

#ifdef RNS_X86_LEVELS

namespace avx2 {

#define RNS_LEVEL __attribute__((target("arch=x86-64-v3")))
#define RNS_LEVEL_INLINE __attribute__((target("arch=x86-64-v3"), always_inline)) inline

struct V {
  using Type = __m256i;
  static constexpr int kWidth = 8;

  static RNS_LEVEL_INLINE Type load(const u32* x) {
    return _mm256_loadu_si256(reinterpret_cast<const Type*>(x));
  }
  static RNS_LEVEL_INLINE void store(u32* x, Type a) { _mm256_storeu_si256(reinterpret_cast<Type*>(x), a); }
  static RNS_LEVEL_INLINE Type broadcast(u32 a) { return _mm256_set1_epi32(static_cast<i32>(a)); }
  static RNS_LEVEL_INLINE Type add(Type a, Type b) { return _mm256_add_epi32(a, b); }
  static RNS_LEVEL_INLINE Type sub(Type a, Type b) { return _mm256_sub_epi32(a, b); }
  static RNS_LEVEL_INLINE Type min(Type a, Type b) { return _mm256_min_epu32(a, b); }
  static RNS_LEVEL_INLINE Type mul_low(Type a, Type b) { return _mm256_mullo_epi32(a, b); }
  template <bool kSame>
  static RNS_LEVEL_INLINE Type mul_high(Type a, Type b) {
    const Type even = _mm256_mul_epu32(a, b);
    const Type odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), kSame ? b : _mm256_srli_epi64(b, 32));
    return _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
  }
  static RNS_LEVEL_INLINE Type add_if_less(Type a, Type b, Type r, Type c) {
    const Type not_less = _mm256_cmpeq_epi32(_mm256_max_epu32(a, b), a);
    return _mm256_add_epi32(r, _mm256_andnot_si256(not_less, c));
  }
  static RNS_LEVEL_INLINE void transpose(Type* x) {
    Type y[8];
    for (int k = 0; k < 8; k += 2) {
      y[k] = _mm256_unpacklo_epi32(x[k], x[k + 1]);
      y[k + 1] = _mm256_unpackhi_epi32(x[k], x[k + 1]);
    }
    for (int k = 0; k < 8; k += 4) {
      for (int h = 0; h < 2; ++h) {
        x[k + 2 * h] = _mm256_unpacklo_epi64(y[k + h], y[k + 2 + h]);
        x[k + 2 * h + 1] = _mm256_unpackhi_epi64(y[k + h], y[k + 2 + h]);
      }
    }
    for (int k = 0; k < 4; ++k) {
      y[k] = _mm256_permute2x128_si256(x[k], x[k + 4], 0x20);
      y[k + 4] = _mm256_permute2x128_si256(x[k], x[k + 4], 0x31);
    }
    for (int k = 0; k < 8; ++k) x[k] = y[k];
  }
};

constexpr int kMost = 2;
#include "ntt_loops.hpp"
#undef RNS_LEVEL
#undef RNS_LEVEL_INLINE

}  // namespace avx2

namespace avx512 {

#define RNS_LEVEL RNS_AVX512
#define RNS_LEVEL_INLINE RNS_AVX512_INLINE

struct V {
  using Type = __m512i;
  static constexpr int kWidth = 16;

  static RNS_LEVEL_INLINE Type load(const u32* x) { return _mm512_loadu_si512(x); }
  static RNS_LEVEL_INLINE void store(u32* x, Type a) { _mm512_storeu_si512(x, a); }
  static RNS_LEVEL_INLINE Type broadcast(u32 a) { return _mm512_set1_epi32(static_cast<i32>(a)); }
  static RNS_LEVEL_INLINE Type add(Type a, Type b) { return _mm512_add_epi32(a, b); }
  static RNS_LEVEL_INLINE Type sub(Type a, Type b) { return _mm512_sub_epi32(a, b); }
  static RNS_LEVEL_INLINE Type min(Type a, Type b) { return _mm512_min_epu32(a, b); }
  static RNS_LEVEL_INLINE Type mul_low(Type a, Type b) { return _mm512_mullo_epi32(a, b); }
  template <bool kSame>
  static RNS_LEVEL_INLINE Type mul_high(Type a, Type b) {
    const Type even = _mm512_mul_epu32(a, b);
    const Type odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), kSame ? b : _mm512_srli_epi64(b, 32));
    return _mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB);
  }
  static RNS_LEVEL_INLINE Type add_if_less(Type a, Type b, Type r, Type c) {
    return _mm512_mask_add_epi32(r, _mm512_cmplt_epu32_mask(a, b), r, c);
  }
  static RNS_LEVEL_INLINE void transpose(Type* x) {
    Type y[16];
    for (int k = 0; k < 16; k += 2) {
      y[k] = _mm512_unpacklo_epi32(x[k], x[k + 1]);
      y[k + 1] = _mm512_unpackhi_epi32(x[k], x[k + 1]);
    }
    for (int k = 0; k < 16; k += 4) {
      for (int h = 0; h < 2; ++h) {
        x[k + 2 * h] = _mm512_unpacklo_epi64(y[k + h], y[k + 2 + h]);
        x[k + 2 * h + 1] = _mm512_unpackhi_epi64(y[k + h], y[k + 2 + h]);
      }
    }
    // Quarters of 128 bits: of rows 4 apart, then 8 apart.
    for (int k = 0; k < 16; k += 8) {
      for (int h = 0; h < 4; ++h) {
        y[k + h] = _mm512_shuffle_i32x4(x[k + h], x[k + 4 + h], 0x88);
        y[k + 4 + h] = _mm512_shuffle_i32x4(x[k + h], x[k + 4 + h], 0xDD);
      }
    }
    for (int k = 0; k < 8; ++k) {
      x[k] = _mm512_shuffle_i32x4(y[k], y[k + 8], 0x88);
      x[k + 8] = _mm512_shuffle_i32x4(y[k], y[k + 8], 0xDD);
    }
  }
};

constexpr int kMost = 3;
#include "ntt_loops.hpp"
#undef RNS_LEVEL
#undef RNS_LEVEL_INLINE

}  // namespace avx512

#endif

}  // namespace

std::vector<std::string> transform_methods() {
  std::vector<std::string> methods = {"portable"};
#ifdef RNS_X86_LEVELS
  if (__builtin_cpu_supports("x86-64-v3")) methods.push_back("avx2");
  if (__builtin_cpu_supports("x86-64-v4")) methods.push_back("avx512");
#endif
  return methods;
}

const TileLoops& tile_loops([[maybe_unused]] const std::string& method, bool narrow) {
#ifdef RNS_X86_LEVELS
  if (method == "avx512") return narrow ? avx512::kLoops<avx512::Narrow> : avx512::kLoops<avx512::Wide>;
  if (method == "avx2") return narrow ? avx2::kLoops<avx2::Narrow> : avx2::kLoops<avx2::Wide>;
#endif
  return narrow ? portable::kLoops<portable::Narrow> : portable::kLoops<portable::Wide>;
}

}  // namespace rns
