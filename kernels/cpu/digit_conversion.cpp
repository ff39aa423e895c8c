// Conversion and base extension by digits of 102 bits, for processors that multiply words of 52 bits (AVX-512
// IFMA): the results of convert.cpp from fewer products. Moduli are taken in groups whose products P_k are at
// most 2^96, and numbers in tiles of 16, side by side (docs/mathematics.md, "By digits of 102 bits").
#include <algorithm>
#include <cstring>
#include <vector>

#include "bindings.hpp"
#include "digit_tiles.hpp"

namespace rns {

#ifdef RNS_X86_LEVELS

namespace {

using Limbs = nb::ndarray<const u32, nb::ndim<2>, nb::device::cpu>;

// The digits of a tile of numbers from their bytes.
RNS_IFMA void split_digits(const char* bytes, i64 stride, i64 count, Digits* digits) {
  for (i64 w = 0; w < 2 * count; ++w) {
    const char* source = bytes + kWordBits * w / 8;
    for (i64 j = 0; j < kWide; ++j) {
      u64 word;
      std::memcpy(&word, source + j * stride, 8);
      digits[w / 2].word[w % 2].x[j] = word >> (kWordBits * w % 8) & kWordMask;
    }
  }
}

// The bytes of a tile of numbers: each word with the bits that the one before it had in its first byte.
RNS_IFMA void join_digits(const Digits* digits, i64 count, char* bytes, i64 stride) {
  WordRow joined, before = {};
  for (i64 w = 0; w < 2 * count; ++w) {
    char* target = bytes + kWordBits * w / 8;
    const i64 next = kWordBits * (w + 1) / 8 - kWordBits * w / 8;
    for (i64 j = 0; j < kWide; ++j) {
      joined.x[j] = digits[w / 2].word[w % 2].x[j] << (kWordBits * w % 8) | before.x[j];
      before.x[j] = joined.x[j] >> (8 * next);
    }
    for (i64 j = 0; j < kWide; ++j) std::memcpy(target + j * stride, joined.x + j, 8);
  }
}

// Bytes of a buffer for a number of so many digits, read and written by 8.
i64 buffer_bytes(i64 digits) { return (2 * kWordBits * digits / 8 + 8 + 7) / 8 * 8; }

struct ForwardDigits {
  const u32* limbs;
  i64 stride;
  i64 limb_count;
  bool is_signed;
  DigitTable table;
  Targets targets;

  // The digits of a tile; of signed numbers the sign is extended to all digits, and a term of its own.
  RNS_IFMA void load_tile(i64 first, i64 width, char* bytes, i64 size, Digits* terms) const {
    const i64 digits = table.rows - is_signed;
    for (i64 j = 0; j < width; ++j) {
      const u32* number = limbs + (first + j) * stride;
      const bool negative = is_signed && number[limb_count - 1] >> 31 == 1;
      std::memcpy(bytes + j * size, number, 4 * limb_count);
      std::memset(bytes + j * size + 4 * limb_count, negative ? 0xFF : 0, size - 4 * limb_count);
      if (is_signed) terms[digits].word[0].x[j] = negative;
    }
    split_digits(bytes, size, digits, terms);
  }

  RNS_IFMA void convert(i64 count, u32* residues, i64 residue_stride) const {
    const i64 size = buffer_bytes(table.rows - is_signed);
    std::vector<Digits> terms(kTiles * table.rows);
    std::vector<char> bytes(kWide * size);
    for (i64 first = 0; first < count; first += kWide * kTiles) {
      const i64 width = std::min(kWide * kTiles, count - first);
      for (i64 t = 0; kWide * t < width; ++t)
        load_tile(first + kWide * t, std::min(kWide, width - kWide * t), bytes.data(), size,
                  terms.data() + t * table.rows);
      write_residues(terms.data(), table.rows, table.rows, table, targets, width, Finish{}, residues + first,
                     residue_stride);
    }
  }
};

RNS_IFMA void write_limbs(const ReverseDigits& numbers, u32* limbs, i64 limb_count) {
  const i64 digits = numbers.digits, size = buffer_bytes(digits), count = numbers.residues.count;
  std::vector<Digits> terms(kTiles * numbers.table.rows), result(kTiles * digits);
  std::vector<char> bytes(kWide * size);
  for (i64 first = 0; first < count; first += kTiles * kWide) {
    const i64 width = std::min(kTiles * kWide, count - first), tiles = (width + kWide - 1) / kWide;
    numbers.load(first, tiles, terms.data(), result.data());
    for (i64 t = 0; t < tiles; ++t) {
      join_digits(result.data() + t * digits, digits, bytes.data(), size);
      u32* number = limbs + (first + kWide * t) * limb_count;
      for (i64 j = 0; j < std::min(kWide, width - kWide * t); ++j, number += limb_count)
        std::memcpy(number, bytes.data() + j * size, 4 * limb_count);
    }
  }
}

struct ExtensionDigits {
  Residues residues;
  Sources sources;
  DigitTable table;  // the last row is -M, for the term q
  u32 start;
  u32 ambiguous_below;
  Targets targets;

  RNS_IFMA void extend(u32* result, i64 result_stride, u8* ambiguous) const {
    std::vector<Digits> terms(kTiles * table.rows);
    u32 fraction[kTiles * kWide];
    for (i64 first = 0; first < residues.count; first += kTiles * kWide) {
      const i64 width = std::min(kTiles * kWide, residues.count - first);
      load_terms(residues, first, sources, start, table.rows, terms.data(), fraction);
      for (i64 j = 0; j < width; ++j) ambiguous[first + j] = fraction[j] < ambiguous_below;
      write_residues(terms.data(), table.rows, table.rows, table, targets, width, Finish{}, result + first,
                     result_stride);
    }
  }
};

void limbs_to_residues(const Limbs& limbs, bool is_signed, const Blocks64& table, const Vector32& starts,
                       const Table64& factors, MutableResidues residues) {
  const i64 count = static_cast<i64>(limbs.shape(0)), limb_count = static_cast<i64>(limbs.shape(1));
  require(limb_count >= 1 && (count == 0 || limb_count == 1 || limbs.stride(1) == 1),
          "limbs: the limbs' axis must be contiguous");
  const ForwardDigits forward = {limbs.data(), limbs.stride(0),   limb_count,
                                 is_signed,    DigitTable(table), Targets(starts, factors)};
  require(forward.table.rows == (32 * limb_count + 2 * kWordBits - 1) / (2 * kWordBits) + is_signed,
          "the table must have a row a digit");
  require(forward.targets.count <= kColumns * forward.table.blocks, "a group has a column");
  check_result(residues, forward.targets.size(), count);
  nb::gil_scoped_release release;
  forward.convert(count, residues.data(), residues.stride(0));
}

void residues_to_limbs(const Matrix32& array, const Vector32& starts, const Table64& factors,
                       const Blocks64& table, const Vector64& product, const Vector64& highest,
                       MutableMatrix32 limbs) {
  const ReverseDigits reverse(array, starts, factors, table, product, highest);
  const i64 limb_count = static_cast<i64>(limbs.shape(1));
  require(limbs.shape(0) == array.shape(1) && 2 * kWordBits * reverse.digits >= 32 * limb_count,
          "one row of no more limbs than the digits have for each number is needed");
  nb::gil_scoped_release release;
  write_limbs(reverse, limbs.data(), limb_count);
}

void base_extend(const Matrix32& array, const Vector32& starts, const Table64& factors, const Blocks64& table,
                 u32 start, u32 ambiguous_below, const Vector32& target_starts, const Table64& target_factors,
                 MutableResidues result, Vector8 ambiguous) {
  const ExtensionDigits extension = {Residues(array),   Sources(starts, factors),
                                     DigitTable(table), start,
                                     ambiguous_below,   Targets(target_starts, target_factors)};
  require(extension.residues.moduli == extension.sources.size() &&
              extension.table.rows == extension.sources.count + 1 && ambiguous.shape(0) == array.shape(1),
          "one row of constants for each modulus, and one flag for each number is needed");
  require(extension.targets.count <= kColumns * extension.table.blocks, "a group has a column");
  check_result(result, extension.targets.size(), extension.residues.count);
  nb::gil_scoped_release release;
  extension.extend(result.data(), result.stride(0), ambiguous.data());
}

}  // namespace

void bind_digit_conversion(nb::module_& module) {
  module.def("multiplies_words",
             [] { return __builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512ifma"); });
  module.def("limbs_to_residues_by_digits", limbs_to_residues);
  module.def("residues_to_limbs_by_digits", residues_to_limbs);
  module.def("base_extend_by_digits", base_extend);
}

#else

void bind_digit_conversion(nb::module_& module) {
  module.def("multiplies_words", [] { return false; });
}

#endif

}  // namespace rns
