// The CRC-32C of a message of words.
#include "rns/crc32c.cuh"

#include <algorithm>
#include <array>

#include "bindings.hpp"

namespace rns {

namespace {

// Sums of words so many apart, as the threads of a GPU keep them.
constexpr i64 kLanes = 64;

u32 crc32c(const u32* words, i64 count) {
  if (count == 0) return 0;
  std::array<u32, kCrcEntries> tables;
  for (i32 i = 0; i < kCrcEntries; ++i) tables[i] = crc_table_entry(i, crc_shift(kLanes));
  // The last word is the last lane's; the first lanes start with zeros.
  const i64 zeros = (kLanes - count % kLanes) % kLanes;
  std::array<u32, kLanes> sums{};
  for (i64 first = -zeros; first < count; first += kLanes) {
    for (i64 i = std::max(first, i64{0}); i < first + kLanes; ++i) {
      sums[i - first] = crc_multiply(sums[i - first], tables.data(), 1) ^ (i == 0 ? ~words[i] : words[i]);
    }
  }
  u32 crc = 0;
  for (const u32 sum : sums) crc = crc_multiply(crc, crc_shift(1)) ^ sum;
  return ~crc_multiply(crc, crc_shift(1));
}

}  // namespace

void bind_crc32c(nb::module_& module) {
  module.def("crc32c", [](const Vector32& words) {
    nb::gil_scoped_release release;
    return crc32c(words.data(), static_cast<i64>(words.shape(0)));
  });
}

}  // namespace rns
