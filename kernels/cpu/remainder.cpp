// Remainders by a long integer, straight from residues: half of the work of a division of limbs or less, for
// only the divisor's limbs are calculated. A tile of numbers at a time, with the numbers side by side.
//
// With the u_i and q of rns/convert.cuh, X = sum of u_i M_i - q M, so that R' = sum of u_i |M_i| + q |-M|,
// taken modulo d each, is congruent to X modulo d. The remainder is R' - k d for k = floor(R' / d), which is
// found as q is: the table gives each of the t = n + 1 terms the fraction floor(2^64 |M_i| / d) in two words
// besides. A sum of these, times 2^-64, falls short of R' / d by less than t 2^-32 < 1/8, so that its floor
// is k or one less, and R' minus d times it is below 2 d. It is calculated modulo a power of 2^32 that is at
// least 2 d, where -d and -2^32 d are two rows more for the two words of k.
#include <algorithm>
#include <vector>

#include "bindings.hpp"
#include "crt_terms.hpp"

namespace rns {

namespace {

// The columns of the table: the fractions for q and for k, then limbs.
constexpr i64 kFractionsOfK = 2, kLimbs = 4;

// As crt_quotient, but of two words: k is below t 2^32.
RNS_VECTORISED void find_k(const SumRow* fractions, i64 width, Row& low, Row& high) {
  for (i64 j = 0; j < width; ++j) {
    const ProductSum sum0 = fractions[0].at(j), sum1 = fractions[1].at(j);
    const u64 lower = sum1.lower_half() + sum0.high + (sum0.lower_half() >> 32);
    const u64 k = sum1.high + (lower >> 32);
    low.x[j] = static_cast<u32>(k);
    high.x[j] = static_cast<u32>(k >> 32);
  }
}

// What one limb of the remainder hands to the next: the sum's carry, and the borrow of d - 1 minus the
// result.
struct alignas(64) Chains {
  u64 carry[kNumbers];
  u32 above[kNumbers];
};

RNS_VECTORISED void next_limbs(Chains& chains, const SumRow& sums, u32 highest, i64 width, Row& limbs) {
  for (i64 j = 0; j < width; ++j) {
    const ProductSum sum = sums.at(j);
    const u64 total = sum.lower_half() + chains.carry[j];
    limbs.x[j] = static_cast<u32>(total);
    chains.carry[j] = sum.high + (total >> 32);
    chains.above[j] =
        static_cast<u32>((static_cast<u64>(highest) - static_cast<u32>(total) - chains.above[j]) >> 63);
  }
}

struct Remainders {
  Residues residues;
  Table table;
  const u32* last;
  const Factor* inverses;
  u32 start;
  u32 ambiguous_below;
  const u32* divisor;
  const u32* highest;  // d - 1
  i64 limb_count;

  // The rows of the table after those of the u_i.
  i64 q() const { return residues.moduli; }
  i64 k() const { return residues.moduli + 1; }

  void load_tile(i64 first, i64 width, std::vector<Row>& terms, u8* ambiguous) const {
    load_terms(residues, last, inverses, first, width, terms);
    // Terms that are not known yet have zeros in the columns that are summed before.
    SumRow fractions[2];
    table.sum(terms, 0, 2, width, fractions);
    find_quotients(fractions, start, ambiguous_below, width, terms[q()], ambiguous);
    table.sum(terms, kFractionsOfK, 2, width, fractions);
    find_k(fractions, width, terms[k()], terms[k() + 1]);
  }

  void find_tile(const std::vector<Row>& terms, i64 width, std::vector<Row>& limbs, Chains& chains) const {
    SumRow sums[kResults];
    chains = {};
    for (i64 l = 0; l < limb_count; l += kResults) {
      const i64 results = std::min(kResults, limb_count - l);
      table.sum(terms, kLimbs + l, results, width, sums);
      for (i64 k = 0; k < results; ++k) next_limbs(chains, sums[k], highest[l + k], width, limbs[l + k]);
    }
  }

  void find(u32* result, u8* ambiguous) const {
    std::vector<Row> terms(table.rows()), limbs(limb_count);
    Chains chains;
    for (i64 first = 0; first < residues.count; first += kNumbers) {
      const i64 width = std::min(kNumbers, residues.count - first);
      load_tile(first, width, terms, ambiguous + first);
      find_tile(terms, width, limbs, chains);
      for (i64 j = 0; j < width; ++j) {
        u32* number = result + (first + j) * limb_count;
        for (i64 l = 0; l < limb_count; ++l) number[l] = limbs[l].x[j];
        if (chains.above[j] != 0) subtract_limbs(number, divisor, limb_count);
      }
    }
  }
};

}  // namespace

void bind_remainder(nb::module_& module) {
  module.def("remainder_limbs", [](const Matrix32& array, const Table32& table, const Vector32& last,
                                   const Table32& inverses, u32 start, u32 ambiguous_below,
                                   const Table32& divisor, MutableMatrix32 limbs, Vector8 ambiguous) {
    const Residues residues(array);
    const size_t n = array.shape(0), limb_count = limbs.shape(1);
    require(table.shape(0) == n + 3 && last.shape(0) == n && inverses.shape(0) == n && inverses.shape(1) == 2,
            "one row of constants for each modulus is needed");
    require(table.shape(1) >= kLimbs + limb_count && divisor.shape(0) == 2 && divisor.shape(1) == limb_count,
            "one column of constants for each limb is needed");
    require(limbs.shape(0) == array.shape(1) && ambiguous.shape(0) == array.shape(1),
            "one result for each number is needed");
    nb::gil_scoped_release release;
    const Remainders remainders = {residues,
                                   Table(table),
                                   last.data(),
                                   reinterpret_cast<const Factor*>(inverses.data()),
                                   start,
                                   ambiguous_below,
                                   divisor.data(),
                                   divisor.data() + limb_count,
                                   static_cast<i64>(limb_count)};
    remainders.find(limbs.data(), ambiguous.data());
  });
}

}  // namespace rns
