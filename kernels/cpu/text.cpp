// Integers as lines of text, decimal or hexadecimal, from and to 32-bit limbs.
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "bindings.hpp"

namespace rns {

namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "eight characters are taken as one word");

using u128 = unsigned __int128;

constexpr u64 kChunk = 10'000'000'000'000'000'000u;  // 10**19, the greatest power of ten in a word
constexpr i64 kChunkDigits = 19;
constexpr u64 kReciprocal = static_cast<u64>(~u128{0} / kChunk);  // less 2**64
constexpr u64 kOnes = 0x0101010101010101;

// Numbers divided side by side: a division waits for the one before it of the same number.
constexpr i64 kGroup = 4;

// ---- reading --------------------------------------------------------------------------------------------

// Eight decimal digits; `bad` becomes nonzero if a character is none.
RNS_INLINE u64 read_eight(const char* p, u64& bad) {
  u64 x;
  std::memcpy(&x, p, 8);
  bad |= ((x + 0x46 * kOnes) | (x - 0x30 * kOnes) | x) & 0x80 * kOnes;
  x -= 0x30 * kOnes;
  x = x * 10 + (x >> 8);  // pairs of digits, in every second byte
  return ((x & 0x000000FF000000FF) * 0x000F424000000064 +
          ((x >> 16) & 0x000000FF000000FF) * 0x0000271000000001) >>
         32;
}

RNS_INLINE u64 read_chunk(const char* p, i64 digits, u64& bad) {
  u64 value = 0;
  for (; digits >= 8; digits -= 8, p += 8) value = value * 100'000'000 + read_eight(p, bad);
  for (; digits > 0; --digits, ++p) {
    const u64 digit = static_cast<u64>(*p) - '0';
    bad |= digit > 9;
    value = value * 10 + digit;
  }
  return value;
}

constexpr u8 kNoDigit = 255;

constexpr std::array<u8, 256> hexadecimal_values() {
  std::array<u8, 256> values{};
  for (int c = 0; c < 256; ++c) {
    values[c] = static_cast<u8>(c >= '0' && c <= '9'   ? c - '0'
                                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                       : kNoDigit);
  }
  return values;
}

constexpr std::array<u8, 256> kHexadecimal = hexadecimal_values();

// The magnitude of an integer, without leading zeros.
struct Magnitude {
  std::vector<u64> words;
  i64 size = 0;

  // Each chunk of digits adds a word at most.
  bool read_decimal(const char* p, const char* end) {
    size = 0;
    u64 bad = 0;
    for (i64 digits = (end - p - 1) % kChunkDigits + 1; p < end; p += digits, digits = kChunkDigits) {
      u64 carry = read_chunk(p, digits, bad);
      for (i64 i = 0; i < size; ++i) {
        const u128 sum = static_cast<u128>(words[i]) * kChunk + carry;
        words[i] = static_cast<u64>(sum);
        carry = static_cast<u64>(sum >> 64);
      }
      if (carry != 0) words[size++] = carry;
    }
    return bad == 0;
  }

  bool read_hexadecimal(const char* p, const char* end) {
    size = 0;
    while (p < end) {
      u64 word = 0;
      for (int shift = 0; shift < 64 && p < end; shift += 4) {
        const u64 digit = kHexadecimal[static_cast<u8>(*--end)];
        if (digit == kNoDigit) return false;
        word |= digit << shift;
      }
      words[size++] = word;
    }
    while (size > 0 && words[size - 1] == 0) --size;
    return true;
  }

  // Writes limbs, in two's complement if signed; false if they are too few.
  bool store(bool negative, bool is_signed, u32* limbs, i64 limb_count) const {
    const i64 needed = size == 0 ? 0 : 2 * size - (words[size - 1] >> 32 == 0);
    if (needed > limb_count || (negative && size > 0 && !is_signed)) return false;
    for (i64 l = 0; l < limb_count; ++l) {
      limbs[l] = l < needed ? static_cast<u32>(words[l / 2] >> (l % 2 * 32)) : 0;
    }
    if (!is_signed) return true;
    if (negative) {
      u32 carry = 1;
      for (i64 l = 0; l < limb_count; ++l) {
        limbs[l] = ~limbs[l] + carry;
        carry = carry && limbs[l] == 0;
      }
    }
    return limbs[limb_count - 1] >> 31 == (negative && size > 0);
  }
};

RNS_INLINE bool is_space(char c) { return c == ' ' || c == '\t'; }

// Reads lines of at most `longest` characters into rows of limbs, up to the first that does not end, is no
// integer or does not fit. As many as `spaces` spaces around an integer do not count. Returns how many were
// read, and where they end.
std::pair<i64, i64> parse_lines(const char* text, i64 start, i64 size, i64 longest, i64 spaces,
                                bool is_signed, const MutableMatrix32& limbs) {
  const i64 rows = static_cast<i64>(limbs.shape(0)), limb_count = static_cast<i64>(limbs.shape(1));
  Magnitude magnitude;
  magnitude.words.resize(longest / 16 + 1);
  for (i64 row = 0; row < rows; ++row) {
    const char* p = text + start;
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
    const bool hexadecimal = end - p >= 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X');
    if (hexadecimal) p += 2;
    if (p == end || !(hexadecimal ? magnitude.read_hexadecimal(p, end) : magnitude.read_decimal(p, end)) ||
        !magnitude.store(negative, is_signed, limbs.data() + row * limb_count, limb_count))
      return {row, start};
    start = line_end + 1 - text;
  }
  return {rows, start};
}

// ---- writing --------------------------------------------------------------------------------------------

void write_eight(char* p, u64 value) {
  u64 x = value / 10000 | value % 10000 << 32;  // the first digits come first in memory
  u64 quotients = (x * 10486 >> 20) & 0x0000007F0000007F;
  x = (x - 100 * quotients) << 16 | quotients;
  quotients = (x * 103 >> 10) & 0x000F000F000F000F;
  x = ((x - 10 * quotients) << 8 | quotients) + 0x30 * kOnes;
  std::memcpy(p, &x, 8);
}

void write_chunk(char* p, u64 value) {
  const u64 upper = value / 10'000'000'000'000'000, lower = value % 10'000'000'000'000'000;
  for (int i = 2, rest = static_cast<int>(upper); i >= 0; --i, rest /= 10)
    p[i] = static_cast<char>('0' + rest % 10);
  write_eight(p + 3, lower / 100'000'000);
  write_eight(p + 11, lower % 100'000'000);
}

// Replaces `upper` * 2**64 + `word`, where upper < 10**19, by its remainder; returns the quotient. By
// Moeller and Granlund, "Improved division by invariant integers", algorithm 4.
RNS_INLINE u64 divide_word(u64& upper, u64 word) {
  const u128 q = static_cast<u128>(kReciprocal) * upper + (static_cast<u128>(upper) << 64 | word);
  u64 quotient = static_cast<u64>(q >> 64) + 1;
  u64 remainder = word - quotient * kChunk;
  const bool above = remainder > static_cast<u64>(q);
  quotient -= above;
  remainder += above ? kChunk : 0;
  if (__builtin_expect(remainder >= kChunk, 0)) {
    ++quotient;
    remainder -= kChunk;
  }
  upper = remainder;
  return quotient;
}

// The magnitudes of a group of numbers, and then their digits in chunks, numbers side by side.
struct Group {
  i64 limb_count;
  bool is_signed;
  std::vector<std::array<u64, kGroup>> words, chunks;
  std::array<bool, kGroup> negative{};

  Group(i64 limbs, bool has_sign)
      : limb_count(limbs), is_signed(has_sign), words((limbs + 1) / 2), chunks(words.size() * 2) {}

  // What lacks in a group are zeros.
  void load(const u32* limbs, i64 numbers) {
    for (auto& word : words) word.fill(0);
    for (i64 g = 0; g < numbers; ++g) {
      const u32* number = limbs + g * limb_count;
      negative[g] = is_signed && number[limb_count - 1] >> 31;
      u32 carry = negative[g];
      for (i64 l = 0; l < limb_count; ++l) {
        const u32 limb = negative[g] ? ~number[l] + carry : number[l];
        carry = carry && limb == 0;
        words[l / 2][g] |= static_cast<u64>(limb) << (l % 2 * 32);
      }
    }
  }

  // Divides until nothing is left; returns how many chunks there are, the least significant first.
  i64 divide() {
    i64 size = static_cast<i64>(words.size()), count = 0;
    const auto is_zero = [](const std::array<u64, kGroup>& word) {
      return std::all_of(word.begin(), word.end(), [](u64 x) { return x == 0; });
    };
    while (size > 0 && is_zero(words[size - 1])) --size;
    while (size > 0) {
      std::array<u64, kGroup> remainders{};
      for (i64 i = size - 1; i >= 0; --i) {
        for (i64 g = 0; g < kGroup; ++g) words[i][g] = divide_word(remainders[g], words[i][g]);
      }
      chunks[count++] = remainders;
      if (is_zero(words[size - 1])) --size;
    }
    return count;
  }

  char* write_decimal(char* p, i64 g, i64 count) const {
    while (count > 1 && chunks[count - 1][g] == 0) --count;
    char first[kChunkDigits];
    write_chunk(first, count > 0 ? chunks[count - 1][g] : 0);
    const char* digit = first;
    while (digit < first + kChunkDigits - 1 && *digit == '0') ++digit;
    p = std::copy(digit, static_cast<const char*>(first) + kChunkDigits, p);
    for (i64 i = count - 2; i >= 0; --i, p += kChunkDigits) write_chunk(p, chunks[i][g]);
    return p;
  }

  char* write_hexadecimal(char* p, i64 g) const {
    *p++ = '0';
    *p++ = 'x';
    i64 digit = static_cast<i64>(words.size()) * 16 - 1;
    const auto value = [&](i64 i) { return words[i / 16][g] >> (i % 16 * 4) & 15; };
    while (digit > 0 && value(digit) == 0) --digit;
    for (; digit >= 0; --digit) *p++ = "0123456789abcdef"[value(digit)];
    return p;
  }
};

// A limb has 9.6 decimal and 8 hexadecimal digits; a line has besides a digit begun, a sign, 0x and its end.
i64 longest_line(i64 limb_count) { return 10 * limb_count + 4; }

i64 format_lines(const Table32& limbs, bool is_signed, bool hexadecimal, char* text) {
  const i64 rows = static_cast<i64>(limbs.shape(0)), limb_count = static_cast<i64>(limbs.shape(1));
  Group group(limb_count, is_signed);
  char* p = text;
  for (i64 row = 0; row < rows; row += kGroup) {
    const i64 numbers = std::min(kGroup, rows - row);
    group.load(limbs.data() + row * limb_count, numbers);
    const i64 count = hexadecimal ? 0 : group.divide();
    for (i64 g = 0; g < numbers; ++g) {
      if (group.negative[g]) *p++ = '-';
      p = hexadecimal ? group.write_hexadecimal(p, g) : group.write_decimal(p, g, count);
      *p++ = '\n';
    }
  }
  return p - text;
}

}  // namespace

void bind_text(nb::module_& module) {
  module.def("parse_lines", [](const nb::bytes& text, i64 start, i64 longest, i64 spaces, bool is_signed,
                               MutableMatrix32 limbs) {
    const i64 size = static_cast<i64>(text.size());
    require(0 <= start && start <= size, "start must be a position in the text");
    require(longest > 0 && limbs.shape(1) > 0, "a number has at least one limb and one character");
    const char* data = text.c_str();
    nb::gil_scoped_release release;
    return parse_lines(data, start, size, longest, spaces, is_signed, limbs);
  });
  module.def("format_lines", [](const Table32& limbs, bool is_signed, bool hexadecimal, Vector8 text) {
    const i64 limb_count = static_cast<i64>(limbs.shape(1));
    require(limb_count > 0, "a number has at least one limb");
    require(text.shape(0) >= limbs.shape(0) * static_cast<size_t>(longest_line(limb_count)),
            "the text must have room for every line");
    nb::gil_scoped_release release;
    return format_lines(limbs, is_signed, hexadecimal, reinterpret_cast<char*>(text.data()));
  });
}

}  // namespace rns
