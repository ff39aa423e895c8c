// Products of positional numbers by digits of 52 bits, for each level of instructions.
#include "positional_digits.hpp"

#include <algorithm>

#ifdef RNS_X86_LEVELS
#include <immintrin.h>
#endif

// Vectors are passed by reference, so that no call depends on the level.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace rns {

namespace {

typedef i64 SignedLanes __attribute__((vector_size(64), aligned(64)));

constexpr u64 kDigitMask = (u64{1} << kDigitBits) - 1;
constexpr u64 kLimbMask = 0xffffffff;
constexpr i64 kTilesBeforeCarry = 256;  // of 8 summands below 2^52 each

namespace portable {

#define RNS_LEVEL
#define RNS_LEVEL_INLINE RNS_INLINE

RNS_INLINE void add_product(Lanes& low, Lanes& high, const Lanes& a, const Lanes& b) {
  for (i64 j = 0; j < kPositionalLanes; ++j) {
    const unsigned __int128 product = static_cast<unsigned __int128>(a[j]) * b[j];
    low[j] += static_cast<u64>(product) & kDigitMask;
    high[j] += static_cast<u64>(product >> kDigitBits);
  }
}

#include "positional_loops.hpp"
#undef RNS_LEVEL
#undef RNS_LEVEL_INLINE

}  // namespace portable

#ifdef RNS_X86_LEVELS

namespace ifma {

#define RNS_LEVEL __attribute__((target("arch=x86-64-v4,avx512ifma")))
#define RNS_LEVEL_INLINE __attribute__((target("arch=x86-64-v4,avx512ifma"), always_inline)) inline

RNS_LEVEL_INLINE void add_product(Lanes& low, Lanes& high, const Lanes& a, const Lanes& b) {
  low = (Lanes)_mm512_madd52lo_epu64((__m512i)low, (__m512i)a, (__m512i)b);
  high = (Lanes)_mm512_madd52hi_epu64((__m512i)high, (__m512i)a, (__m512i)b);
}

#include "positional_loops.hpp"
#undef RNS_LEVEL
#undef RNS_LEVEL_INLINE

}  // namespace ifma

#endif

}  // namespace

std::vector<std::string> positional_methods() {
  std::vector<std::string> methods = {"portable"};
#ifdef RNS_X86_LEVELS
  if (__builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512ifma")) methods.push_back("ifma");
#endif
  return methods;
}

const PositionalLoops& positional_loops([[maybe_unused]] const std::string& method) {
#ifdef RNS_X86_LEVELS
  if (method == "ifma") return ifma::kLoops;
#endif
  return portable::kLoops;
}

}  // namespace rns
