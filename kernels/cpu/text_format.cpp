// Integers as lines of text: in hexadecimal from 32-bit limbs, in decimal from decimal limbs.
#include <algorithm>
#include <cstring>
#include <vector>

#include "bindings.hpp"
#include "text.hpp"

namespace rns {

namespace {

// ---- decimal --------------------------------------------------------------------------------------------

// The nine digits of limbs: the first one, and eight characters of which the first comes first in memory.
RNS_VECTORISED void find_digits(const u32* limbs, i64 count, u8* first, u64* others) {
  for (i64 l = 0; l < count; ++l) {
    const u32 top = limbs[l] / 100'000'000;
    const u32 rest = limbs[l] - top * 100'000'000;
    const u32 upper = rest / 10000;
    u64 x = upper | static_cast<u64>(rest - upper * 10000) << 32;
    u64 quotients = (x * 10486 >> 20) & 0x0000007F0000007F;
    x = (x - 100 * quotients) << 16 | quotients;
    quotients = (x * 103 >> 10) & 0x000F000F000F000F;
    others[l] = ((x - 10 * quotients) << 8 | quotients) + '0' * kOnes;
    first[l] = static_cast<u8>('0' + top);
  }
}

// The characters of the limbs of some numbers.
struct Digits {
  std::vector<u8> first;
  std::vector<u64> others;

  explicit Digits(i64 limbs) : first(limbs), others(limbs) {}

  RNS_INLINE void write(char* p, i64 l) const {
    *p = static_cast<char>(first[l]);
    std::memcpy(p + 1, &others[l], 8);
  }

  // Those of limbs `begin` to `top`, without leading zeros. What is written after them is written over by
  // what follows.
  char* write_number(char* p, i64 begin, i64 top) const {
    char leading[2 * kDecimalDigits] = {};
    write(leading, top);
    i64 zeros = 0;
    while (zeros < kDecimalDigits - 1 && leading[zeros] == '0') ++zeros;
    std::memcpy(p, leading + zeros, kDecimalDigits);
    p += kDecimalDigits - zeros;
    for (i64 l = top - 1; l >= begin; --l, p += kDecimalDigits) write(p, l);
    return p;
  }
};

i64 format_decimal(const Table32& array, const u8* negative, char* text) {
  const i64 rows = static_cast<i64>(array.shape(0)), count = static_cast<i64>(array.shape(1));
  const i64 block = std::max(i64{1}, 256 / count);  // rows whose limbs are turned into characters together
  Digits digits(block * count);
  char* p = text;
  for (i64 row = 0; row < rows; ++row) {
    const i64 begin = row % block * count;
    const u32* limbs = array.data() + row * count;
    if (begin == 0)
      find_digits(limbs, std::min(block, rows - row) * count, digits.first.data(), digits.others.data());
    i64 top = count - 1;
    while (top > 0 && limbs[top] == 0) --top;
    if (negative[row] != 0 && limbs[top] != 0) *p++ = '-';
    p = digits.write_number(p, begin, begin + top);
    *p++ = '\n';
  }
  return p - text;
}

// ---- hexadecimal ----------------------------------------------------------------------------------------

// The eight digits of limbs, of which the first comes first in memory.
RNS_VECTORISED void find_hexadecimal_digits(const u32* limbs, i64 count, u64* digits) {
  for (i64 l = 0; l < count; ++l) {
    u64 x = __builtin_bswap32(limbs[l]);
    x = (x | x << 16) & 0x0000FFFF0000FFFF;
    x = (x | x << 8) & 0x00FF00FF00FF00FF;
    digits[l] = hexadecimal_characters((x >> 4 | x << 8) & 0x0F * kOnes);
  }
}

i64 format_hexadecimal(const Table32& array, bool is_signed, char* text) {
  const i64 rows = static_cast<i64>(array.shape(0)), count = static_cast<i64>(array.shape(1));
  std::vector<u32> magnitude(count);
  std::vector<u64> digits(count);
  char* p = text;
  for (i64 row = 0; row < rows; ++row) {
    const u32* limbs = array.data() + row * count;
    if (is_signed && limbs[count - 1] >> 31) {
      *p++ = '-';
      std::copy_n(limbs, count, magnitude.data());
      negate_limbs(magnitude.data(), count);
      limbs = magnitude.data();
    }
    i64 top = count - 1;
    while (top > 0 && limbs[top] == 0) --top;
    find_hexadecimal_digits(limbs, top + 1, digits.data());
    *p++ = '0';
    *p++ = 'x';
    const i64 zeros = limbs[top] == 0 ? 7 : __builtin_clz(limbs[top]) / 4;
    const u64 leading = digits[top] >> 8 * zeros;  // what is written after them is written over
    std::memcpy(p, &leading, 8);
    p += 8 - zeros;
    for (i64 l = top - 1; l >= 0; --l, p += 8) std::memcpy(p, &digits[l], 8);
    *p++ = '\n';
  }
  return p - text;
}

}  // namespace

void bind_text_format(nb::module_& module) {
  // A line has besides its digits a sign and its end, in hexadecimal 0x too.
  module.def("format_decimal", [](const Table32& limbs, const Vector8& negative, const Vector8& text) {
    require(limbs.shape(1) > 0, "a number has at least one limb");
    require(negative.shape(0) == limbs.shape(0), "one sign for each number is needed");
    require(text.shape(0) >= limbs.shape(0) * (kDecimalDigits * limbs.shape(1) + 2),
            "the text must have room for every line");
    nb::gil_scoped_release release;
    return format_decimal(limbs, negative.data(), reinterpret_cast<char*>(text.data()));
  });
  module.def("format_hexadecimal", [](const Table32& limbs, bool is_signed, const Vector8& text) {
    require(limbs.shape(1) > 0, "a number has at least one limb");
    require(text.shape(0) >= limbs.shape(0) * (8 * limbs.shape(1) + 4),
            "the text must have room for every line");
    nb::gil_scoped_release release;
    return format_hexadecimal(limbs, is_signed, reinterpret_cast<char*>(text.data()));
  });
}

}  // namespace rns
