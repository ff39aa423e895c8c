// Integers as lines of text: in hexadecimal from 32-bit limbs, in decimal from decimal limbs.
#include <algorithm>
#include <cstring>

#include "bindings.hpp"
#include "text.hpp"

namespace rns {

namespace {

// ---- decimal --------------------------------------------------------------------------------------------

RNS_INLINE void write_nine(char* p, u32 value) {
  *p = static_cast<char>('0' + value / 100'000'000);
  value %= 100'000'000;
  u64 x = value / 10000 | static_cast<u64>(value % 10000) << 32;  // the first digits come first in memory
  u64 quotients = (x * 10486 >> 20) & 0x0000007F0000007F;
  x = (x - 100 * quotients) << 16 | quotients;
  quotients = (x * 103 >> 10) & 0x000F000F000F000F;
  x = ((x - 10 * quotients) << 8 | quotients) + '0' * kOnes;
  std::memcpy(p + 1, &x, 8);
}

char* write_decimal(char* p, bool negative, const u32* limbs, i64 count) {
  while (count > 1 && limbs[count - 1] == 0) --count;
  const u32 top = limbs[--count];
  if (negative && (count > 0 || top > 0)) *p++ = '-';
  char first[kDecimalDigits];
  write_nine(first, top);
  const char* digit = first;
  while (digit < first + kDecimalDigits - 1 && *digit == '0') ++digit;
  p = std::copy(digit, static_cast<const char*>(first) + kDecimalDigits, p);
  for (; count > 0; p += kDecimalDigits) write_nine(p, limbs[--count]);
  return p;
}

i64 format_decimal(const Table32& limbs, const u8* negative, char* text) {
  const i64 count = static_cast<i64>(limbs.shape(1));
  char* p = text;
  for (i64 row = 0; row < static_cast<i64>(limbs.shape(0)); ++row) {
    p = write_decimal(p, negative[row] != 0, limbs.data() + row * count, count);
    *p++ = '\n';
  }
  return p - text;
}

// ---- hexadecimal ----------------------------------------------------------------------------------------

RNS_INLINE void write_eight_hexadecimal(char* p, u32 value) {
  u64 x = __builtin_bswap32(value);  // the first digits come first in memory
  x = (x | x << 16) & 0x0000FFFF0000FFFF;
  x = (x | x << 8) & 0x00FF00FF00FF00FF;
  x = (x >> 4 | x << 8) & 0x0F * kOnes;
  x = hexadecimal_characters(x);
  std::memcpy(p, &x, 8);
}

char* write_hexadecimal(char* p, bool is_signed, const u32* limbs, i64 count) {
  const u32 flip = is_signed && limbs[count - 1] >> 31 ? ~0u : 0;
  if (flip != 0) *p++ = '-';
  *p++ = '0';
  *p++ = 'x';
  // Negative, the magnitude's limbs are the complements, and that of the lowest which is not 0 one more:
  // those below it stay 0.
  i64 lowest = 0;
  while (lowest < count - 1 && limbs[lowest] == 0) ++lowest;
  const auto limb = [=](i64 l) { return l < lowest ? 0 : (limbs[l] ^ flip) + (l == lowest ? flip & 1 : 0); };
  while (count > 1 && limb(count - 1) == 0) --count;
  const u32 top = limb(count - 1);
  const i64 digits = top == 0 ? 1 : (35 - __builtin_clz(top)) / 4;
  char first[8];
  write_eight_hexadecimal(first, top);
  p = std::copy(first + 8 - digits, first + 8, p);
  for (i64 l = count - 2; l >= 0; --l, p += 8) write_eight_hexadecimal(p, limb(l));
  return p;
}

i64 format_hexadecimal(const Table32& limbs, bool is_signed, char* text) {
  const i64 count = static_cast<i64>(limbs.shape(1));
  char* p = text;
  for (i64 row = 0; row < static_cast<i64>(limbs.shape(0)); ++row) {
    p = write_hexadecimal(p, is_signed, limbs.data() + row * count, count);
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
