// The CRC-32C of bytes, one part after the other, at the speed of memory.
//
// x86-64 and ARMv8 have an instruction for eight bytes, whose result comes three cycles later: so three lanes
// of the message go at once, and are put together by products with a power of x (rns/crc32c.cuh; V. Gopal et
// al., "Fast CRC computation for iSCSI polynomial using CRC32 instruction", Intel, 2011). Elsewhere eight
// tables do (M. Kounavis and F. Berry, named there).
#include "crc32c.hpp"

#include <array>
#include <cstring>

#include "bindings.hpp"
#include "rns/crc32c.cuh"

#if defined(__x86_64__)
#include <nmmintrin.h>
#define RNS_CRC_TARGET __attribute__((target("sse4.2")))
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#define RNS_CRC_TARGET
#endif

namespace rns {

namespace {

// Eight bytes, the least significant first.
u64 load(const u8* bytes) {
  u64 word;
  std::memcpy(&word, bytes, sizeof word);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  word = __builtin_bswap64(word);
#endif
  return word;
}

using Tables = std::array<std::array<u32, 256>, 8>;

// Entry b of table i: the sum after byte b and i bytes of zeros.
constexpr Tables make_tables() {
  Tables tables{};
  for (u32 byte = 0; byte < 256; ++byte) {
    u32 sum = byte;
    for (i32 bit = 0; bit < 8; ++bit) sum = sum & 1u ? (sum >> 1) ^ kCrcPolynomial : sum >> 1;
    tables[0][byte] = sum;
  }
  for (u32 i = 1; i < 8; ++i) {
    for (u32 byte = 0; byte < 256; ++byte) {
      const u32 sum = tables[i - 1][byte];
      tables[i][byte] = (sum >> 8) ^ tables[0][sum & 255u];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

u32 sum_by_tables(u32 sum, const u8* bytes, std::size_t count) {
  for (; count >= 8; bytes += 8, count -= 8) {
    const u64 word = load(bytes) ^ sum;
    sum = 0;
    for (u32 i = 0; i < 8; ++i) sum ^= kTables[7 - i][word >> (8 * i) & 255u];
  }
  for (; count > 0; ++bytes, --count) sum = (sum >> 8) ^ kTables[0][(sum ^ *bytes) & 255u];
  return sum;
}

#ifdef RNS_CRC_TARGET
constexpr std::size_t kLane = 1 << 13;  // bytes, many enough that putting lanes together does not matter
constexpr u32 kShift = crc_shift(kLane / 4);

RNS_CRC_TARGET inline u32 step(u32 sum, u64 word) {
#ifdef __x86_64__
  return static_cast<u32>(_mm_crc32_u64(sum, word));
#else
  return __crc32cd(sum, word);
#endif
}

RNS_CRC_TARGET u32 sum_by_instruction(u32 sum, const u8* bytes, std::size_t count) {
  for (; count >= 3 * kLane; bytes += 3 * kLane, count -= 3 * kLane) {
    u32 second = 0, third = 0;
    for (std::size_t i = 0; i < kLane; i += 8) {
      sum = step(sum, load(bytes + i));
      second = step(second, load(bytes + kLane + i));
      third = step(third, load(bytes + 2 * kLane + i));
    }
    sum = crc_multiply(crc_multiply(sum, kShift) ^ second, kShift) ^ third;
  }
  for (; count >= 8; bytes += 8, count -= 8) sum = step(sum, load(bytes));
  return sum_by_tables(sum, bytes, count);
}
#endif

using Sum = u32 (*)(u32, const u8*, std::size_t);

Sum choose() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("sse4.2") ? sum_by_instruction : sum_by_tables;
#elif defined(RNS_CRC_TARGET)
  return sum_by_instruction;
#else
  return sum_by_tables;
#endif
}

const Sum kSum = choose();

}  // namespace

u32 crc32c(u32 checksum, const u8* bytes, std::size_t count) { return ~kSum(~checksum, bytes, count); }

void bind_crc32c(nb::module_& module) {
  using Bytes = nb::ndarray<const u8, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  module.def("crc32c", [](u32 checksum, const Bytes& bytes, bool by_tables) {
    nb::gil_scoped_release release;
    const std::size_t count = bytes.shape(0);
    return by_tables ? ~sum_by_tables(~checksum, bytes.data(), count) : crc32c(checksum, bytes.data(), count);
  });
}

}  // namespace rns
