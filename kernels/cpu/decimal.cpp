// Residues to decimal limbs by the Chinese remainder theorem, as convert.cpp to 32-bit limbs.
#include <algorithm>
#include <vector>

#include "bindings.hpp"
#include "crt_terms.hpp"
#include "text.hpp"

namespace rns {

namespace {

// Replaces x, below 2**62, by its remainder modulo 10**9 and returns the quotient. With at most three
// roundings, each of a factor up to 1 + 2**-53, the estimate is not above x / 10**9, and less than 2**33
// 2**-49 below: the quotient or one less. (Vectors have no upper halves of products of 64 bits, by which
// compilers divide.)
RNS_INLINE u64 divide_by_base(u64& x) {
  constexpr double kInverse = 1e-9 * (1 - 0x1p-50);
  const i64 estimate = static_cast<i64>(static_cast<double>(static_cast<i64>(x)) * kInverse);
  x -= static_cast<u64>(estimate) * kDecimalBase;
  const bool is_less = x >= kDecimalBase;
  x -= is_less ? kDecimalBase : 0;
  return static_cast<u64>(estimate) + is_less;
}

// The next limb of sums of products and of the carries of those before, which become those for the next. A
// sum of n terms is less than n 2**62, and its carry n 2**33: nothing exceeds 62 bits for n up to 2**28.
RNS_VECTORISED void next_limbs(u64* carries, const SumRow& sums, i64 width, Row& limbs) {
  for (i64 j = 0; j < width; ++j) {
    const ProductSum sum = sums.at(j);
    const u64 lower = sum.lower_half() + carries[j];
    u64 upper = sum.high + (lower >> 32);
    const u64 quotient = divide_by_base(upper);
    u64 rest = upper << 32 | static_cast<u32>(lower);
    carries[j] = (quotient << 32) + divide_by_base(rest);
    limbs.x[j] = static_cast<u32>(rest);
  }
}

struct Decimal {
  Residues residues;
  Table table;  // one row more than moduli: -M, for the term q
  const u32* last;
  const Factor* inverses;
  const u32* product;
  const u32* highest;
  i64 limb_count;

  // X', which is X or X + M (rns/convert.cuh), modulo 10**(9 limb_count), which is more than 2 M.
  void convert_tile(i64 first, i64 width, std::vector<Row>& terms, std::vector<Row>& limbs) const {
    load_terms(residues, last, inverses, first, width, terms);
    // Its contributions to the fraction, results 0 and 1, are 0.
    SumRow sums[kResults];
    table.sum(terms, 0, 2, width, sums);
    u8 ambiguous[kNumbers];  // of no interest: X' may be X + M
    find_quotients(sums, 0, 0, width, terms[residues.moduli], ambiguous);
    u64 carries[kNumbers] = {};
    for (i64 l = 0; l < limb_count; l += kResults) {
      const i64 results = std::min(kResults, limb_count - l);
      table.sum(terms, l + 2, results, width, sums);
      for (i64 k = 0; k < results; ++k) next_limbs(carries, sums[k], width, limbs[l + k]);
    }
  }

  bool is_less(const u32* a, const u32* b) const {
    i64 l = limb_count - 1;
    while (l > 0 && a[l] == b[l]) --l;
    return a[l] < b[l];
  }

  // X' becomes the magnitude of the number, which is X' - M if X' is above the highest; returns whether it is
  // negative.
  bool finish(u32* number) const {
    if (!is_less(highest, number)) return false;
    const bool negative = is_less(number, product);
    const u32* minuend = negative ? product : number;
    const u32* subtrahend = negative ? number : product;
    u32 borrow = 0;
    for (i64 l = 0; l < limb_count; ++l) {
      const u32 difference = minuend[l] - subtrahend[l] - borrow;
      borrow = difference >> 31;
      number[l] = difference + (borrow != 0 ? kDecimalBase : 0);
    }
    return negative;
  }

  void convert(u32* result, u8* negative) const {
    std::vector<Row> terms(residues.moduli + 1), limbs(limb_count);
    for (i64 first = 0; first < residues.count; first += kNumbers) {
      const i64 width = std::min(kNumbers, residues.count - first);
      convert_tile(first, width, terms, limbs);
      for (i64 j = 0; j < width; ++j) {
        u32* number = result + (first + j) * limb_count;
        for (i64 l = 0; l < limb_count; ++l) number[l] = limbs[l].x[j];
        negative[first + j] = finish(number);
      }
    }
  }
};

}  // namespace

void bind_decimal(nb::module_& module) {
  module.def("residues_to_decimal", [](const Matrix32& array, const Table32& table, const Vector32& last,
                                       const Table32& inverses, const Vector32& product,
                                       const Vector32& highest, const MutableMatrix32& limbs,
                                       const Vector8& negative) {
    const Residues residues(array);
    const size_t n = array.shape(0), limb_count = limbs.shape(1);
    require(table.shape(0) == n + 1 && last.shape(0) == n && inverses.shape(0) == n && inverses.shape(1) == 2,
            "one row of constants for each modulus is needed");
    require(limb_count > 0 && table.shape(1) >= limb_count + 2 && product.shape(0) == limb_count &&
                highest.shape(0) == limb_count,
            "the constants must have as many limbs as a number");
    require(limbs.shape(0) == array.shape(1) && negative.shape(0) == array.shape(1),
            "limbs and signs must have one row for each number");
    nb::gil_scoped_release release;
    const Decimal decimal = {residues,
                             Table(table),
                             last.data(),
                             reinterpret_cast<const Factor*>(inverses.data()),
                             product.data(),
                             highest.data(),
                             static_cast<i64>(limb_count)};
    decimal.convert(limbs.data(), negative.data());
  });
}

}  // namespace rns
