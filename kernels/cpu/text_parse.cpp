// Lines of text, each an integer, into limbs: of 32 bits, or decimal ones.
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "text.hpp"

namespace rns {

namespace {

// Of decimal digits into 32-bit limbs, in a time that grows with the square of their number: GMP does better
// from about this length on.
constexpr i64 kMostDigits = 3000;

using u128 = unsigned __int128;

// ---- digits ---------------------------------------------------------------------------------------------

// Eight decimal digits; `bad` becomes nonzero if a character is none.
RNS_INLINE u32 read_eight(const char* p, u64& bad) {
  u64 x;
  std::memcpy(&x, p, 8);
  bad |= ((x + 0x46 * kOnes) | (x - 0x30 * kOnes) | x) & 0x80 * kOnes;
  x -= 0x30 * kOnes;
  x = x * 10 + (x >> 8);  // pairs of digits, in every second byte
  return static_cast<u32>(((x & 0x000000FF000000FF) * 0x000F424000000064 +
                           ((x >> 16) & 0x000000FF000000FF) * 0x0000271000000001) >>
                          32);
}

// At most nine decimal digits.
RNS_INLINE u32 read_nine(const char* p, i64 digits, u64& bad) {
  u32 value = 0;
  if (digits >= 8) {
    value = read_eight(p, bad);
    p += 8;
    digits -= 8;
  }
  for (; digits > 0; --digits, ++p) {
    const u32 digit = static_cast<u32>(*p) - '0';
    bad |= digit > 9;
    value = value * 10 + digit;
  }
  return value;
}

// Eight hexadecimal digits. A letter has bit 6; a character is a digit if its value is written like it.
RNS_INLINE u32 read_eight_hexadecimal(u64 x, u64& bad) {
  const u64 letters = x >> 6 & kOnes;
  u64 v = (x & 0x0F * kOnes) + 9 * letters;  // less than 25 in each byte
  bad |= (v & 0x10 * kOnes) | (hexadecimal_characters(v) ^ (x | letters << 5));
  v = (v << 4 | v >> 8) & 0x00FF00FF00FF00FF;
  v = (v | v >> 8) & 0x0000FFFF0000FFFF;
  return __builtin_bswap32(static_cast<u32>(v | v >> 16));
}

// Of eight digits in each word.
RNS_VECTORISED u64 read_hexadecimal_words(const u64* words, i64 count, u32* values) {
  u64 bad = 0;
  for (i64 i = 0; i < count; ++i) values[i] = read_eight_hexadecimal(words[i], bad);
  return bad;
}

// ---- limbs ----------------------------------------------------------------------------------------------

// Into `count` limbs; false if they are too few, or a character is no digit. `words` are room to work in.
bool read_hexadecimal(const char* p, const char* end, std::vector<u64>& words, u32* limbs, i64 count) {
  for (; end - p > 8 * count; ++p) {
    if (*p != '0') return false;
  }
  const i64 digits = end - p, size = (digits + 7) / 8;
  words.resize(count);
  words[0] = '0' * kOnes;
  std::memcpy(reinterpret_cast<char*>(words.data()) + 8 * size - digits, p, digits);
  const u64 bad = read_hexadecimal_words(words.data(), size, limbs);
  std::reverse(limbs, limbs + size);
  std::fill(limbs + size, limbs + count, 0u);
  return bad == 0;
}

bool read_decimal(const char* p, const char* end, std::vector<u64>& words, u32* limbs, i64 count) {
  constexpr i64 kDigits = 2 * kDecimalDigits;
  if (end - p > kMostDigits) return false;
  words.resize(kMostDigits / kDigits + 1);
  u64 bad = 0;
  i64 size = 0;
  for (i64 digits = (end - p - 1) % kDigits + 1; p < end; p += digits, digits = kDigits) {
    const i64 lower = std::min(digits, kDecimalDigits);
    u64 carry =
        read_nine(p, digits - lower, bad) * u64{kDecimalBase} + read_nine(p + digits - lower, lower, bad);
    for (i64 i = 0; i < size; ++i) {
      const u128 sum = static_cast<u128>(words[i]) * (u64{kDecimalBase} * kDecimalBase) + carry;
      words[i] = static_cast<u64>(sum);
      carry = static_cast<u64>(sum >> 64);
    }
    if (carry != 0) words[size++] = carry;
  }
  const i64 needed = size == 0 ? 0 : 2 * size - (words[size - 1] >> 32 == 0);
  if (bad != 0 || needed > count) return false;
  for (i64 l = 0; l < count; ++l) limbs[l] = l < needed ? static_cast<u32>(words[l / 2] >> (l % 2 * 32)) : 0;
  return true;
}

// A magnitude becomes the integer, in two's complement if signed; false if it does not fit.
bool apply_sign(bool negative, bool is_signed, u32* limbs, i64 count) {
  const bool below_zero = negative && negate_limbs(limbs, count);
  return is_signed ? limbs[count - 1] >> 31 == below_zero : !below_zero;
}

// Into decimal limbs, of signed integers in ten's complement: the last one is 1 if they are negative.
// Besides, false if a negative one is not to be.
bool read_decimal_limbs(const char* p, const char* end, bool negative, bool is_signed, u32* limbs,
                        i64 limb_count) {
  const i64 count = limb_count - is_signed;
  if (end - p > count * kDecimalDigits) return false;
  u64 bad = 0;
  i64 l = 0;
  for (; end - p >= kDecimalDigits; end -= kDecimalDigits)
    limbs[l++] = read_nine(end - kDecimalDigits, kDecimalDigits, bad);
  if (p < end) limbs[l++] = read_nine(p, end - p, bad);
  std::fill(limbs + l, limbs + limb_count, 0u);
  if (bad != 0) return false;
  if (!negative) return true;
  u32* const first = std::find_if(limbs, limbs + l, [](u32 limb) { return limb != 0; });
  if (first == limbs + l) return true;
  if (!is_signed) return false;
  *first = kDecimalBase - *first;
  for (u32* limb = first + 1; limb < limbs + count; ++limb) *limb = kDecimalBase - 1 - *limb;
  limbs[count] = 1;
  return true;
}

// ---- lines ----------------------------------------------------------------------------------------------

RNS_INLINE bool is_space(char c) { return c == ' ' || c == '\t'; }

// A text, how many characters an integer may have, and how many spaces there may be around it.
struct Text {
  const char* data;
  i64 size;
  i64 longest;
  i64 spaces;

  Text(const nb::bytes& text, i64 longest_integer, i64 most_spaces)
      : data(text.c_str()),
        size(static_cast<i64>(text.size())),
        longest(longest_integer),
        spaces(most_spaces) {}

  // Has lines read, each into a row of limbs, up to the first that does not end, is too long, or of which
  // `read` says no. Returns how many were read, and where they end.
  template <typename Read>
  std::pair<i64, i64> read_lines(i64 start, const MutableMatrix32& limbs, Read read) const {
    const i64 rows = static_cast<i64>(limbs.shape(0)), count = static_cast<i64>(limbs.shape(1));
    for (i64 row = 0; row < rows; ++row) {
      const char* p = data + start;
      const char* line_end = static_cast<const char*>(std::memchr(p, '\n', size - start));
      if (line_end == nullptr) return {row, start};
      const char* end = line_end > p && line_end[-1] == '\r' ? line_end - 1 : line_end;
      if (end - p > longest + spaces) return {row, start};
      if (spaces > 0) {
        while (p < end && is_space(*p)) ++p;
        while (p < end && is_space(end[-1])) --end;
      }
      if (p == end || end - p > longest) return {row, start};
      const bool negative = *p == '-';
      p += *p == '-' || *p == '+';
      if (p == end || !read(p, end, negative, limbs.data() + row * count, count)) return {row, start};
      start = line_end + 1 - data;
    }
    return {rows, start};
  }
};

}  // namespace

void bind_text_parse(nb::module_& module) {
  module.def("parse_lines", [](const nb::bytes& bytes, i64 start, i64 longest, i64 spaces, bool is_signed,
                               const MutableMatrix32& limbs) {
    const Text text(bytes, longest, spaces);
    require(0 <= start && start <= text.size, "start must be a position in the text");
    require(limbs.shape(1) > 0, "a number has at least one limb");
    nb::gil_scoped_release release;
    std::vector<u64> words;
    return text.read_lines(
        start, limbs, [&](const char* p, const char* end, bool negative, u32* row, i64 count) {
          const bool hexadecimal = end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X');
          return (hexadecimal ? read_hexadecimal(p + 2, end, words, row, count)
                              : read_decimal(p, end, words, row, count)) &&
                 apply_sign(negative, is_signed, row, count);
        });
  });
  module.def("parse_decimal_lines", [](const nb::bytes& bytes, i64 start, i64 longest, i64 spaces,
                                       bool is_signed, const MutableMatrix32& limbs) {
    const Text text(bytes, longest, spaces);
    require(0 <= start && start <= text.size, "start must be a position in the text");
    require(limbs.shape(1) > is_signed, "a number has at least one limb besides its sign");
    nb::gil_scoped_release release;
    return text.read_lines(start, limbs,
                           [=](const char* p, const char* end, bool negative, u32* row, i64 count) {
                             return read_decimal_limbs(p, end, negative, is_signed, row, count);
                           });
  });
}

}  // namespace rns
