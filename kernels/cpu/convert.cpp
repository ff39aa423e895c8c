// Conversion between residues and limbs and base extension, a tile of numbers at a time with the numbers
// side by side.
#include <algorithm>
#include <vector>

#include "bindings.hpp"
#include "crt_terms.hpp"

namespace rns {

namespace {

using Limbs = nb::ndarray<const u32, nb::ndim<2>, nb::device::cpu>;
using MutableResidues = Written<u32, nb::ndim<2>>;

struct alignas(64) ChainRow {
  u64 carry[kNumbers];
  u64 borrow[kNumbers];
  u32 above[kNumbers];

  RNS_INLINE LimbChain at(i64 j) const { return {carry[j], borrow[j], above[j]}; }
};

RNS_VECTORISED void reduce_sums(const SumRow& sums, const WordFactors& factors, u32 last, i64 width,
                                u32* residues) {
  for (i64 j = 0; j < width; ++j) residues[j] = mod_reduce(sums.at(j), factors, last);
}

RNS_VECTORISED void next_limbs(ChainRow& chains, const SumRow& sums, const Row& q, u32 product, u32 highest,
                               i64 width, Row& limbs) {
  for (i64 j = 0; j < width; ++j) {
    LimbChain chain = chains.at(j);
    limbs.x[j] = crt_limb(chain, sums.at(j), q.x[j], product, highest);
    chains.carry[j] = chain.carry;
    chains.borrow[j] = chain.borrow;
    chains.above[j] = chain.above;
  }
}

struct Forward {
  const u32* limbs;
  i64 stride;
  i64 limb_count;
  Table table;
  const u32* last;
  const WordFactors* factors;
  i64 moduli;

  // A number's limbs become a column of the tile. Two's complement has one term more, the sign bit.
  void load_tile(i64 first, i64 width, std::vector<Row>& terms) const {
    for (i64 j = 0; j < width; ++j) {
      const u32* number = limbs + (first + j) * stride;
      for (i64 l = 0; l < limb_count; ++l) terms[l].x[j] = number[l];
      if (table.rows() > limb_count) terms[limb_count].x[j] = number[limb_count - 1] >> 31;
    }
  }

  void convert(i64 count, u32* residues, i64 residue_stride) const {
    std::vector<Row> terms(table.rows());
    SumRow sums[kResults];
    for (i64 first = 0; first < count; first += kNumbers) {
      const i64 width = std::min(kNumbers, count - first);
      load_tile(first, width, terms);
      for (i64 i = 0; i < moduli; i += kResults) {
        const i64 results = std::min(kResults, moduli - i);
        table.sum(terms, i, results, width, sums);
        for (i64 k = 0; k < results; ++k)
          reduce_sums(sums[k], factors[i + k], last[i + k], width,
                      residues + (i + k) * residue_stride + first);
      }
    }
  }
};

struct Reverse {
  Residues residues;
  Table table;
  const u32* last;
  const Factor* inverses;
  const u32* product;
  const u32* highest;
  i64 limb_count;

  // Results 0 and 1 of the table are the fraction's words, the others the limbs.
  void convert_tile(const std::vector<Row>& terms, i64 width, std::vector<Row>& limbs, Row& q,
                    ChainRow& chains) const {
    SumRow sums[kResults];
    table.sum(terms, 0, 2, width, sums);
    u8 ambiguous[kNumbers];  // of no interest: X' may be X + M
    find_quotients(sums, 0, 0, width, q, ambiguous);
    chains = {};
    for (i64 l = 0; l < limb_count; l += kResults) {
      const i64 results = std::min(kResults, limb_count - l);
      table.sum(terms, l + 2, results, width, sums);
      for (i64 k = 0; k < results; ++k)
        next_limbs(chains, sums[k], q, product[l + k], highest[l + k], width, limbs[l + k]);
    }
  }

  void convert(u32* result) const {
    std::vector<Row> terms(residues.moduli), limbs(limb_count);
    Row q;
    ChainRow chains;
    for (i64 first = 0; first < residues.count; first += kNumbers) {
      const i64 width = std::min(kNumbers, residues.count - first);
      load_terms(residues, last, inverses, first, width, terms);
      convert_tile(terms, width, limbs, q, chains);
      for (i64 j = 0; j < width; ++j) {
        u32* number = result + (first + j) * limb_count;
        for (i64 l = 0; l < limb_count; ++l) number[l] = limbs[l].x[j];
        if (crt_above(chains.at(j))) subtract_limbs(number, product, limb_count);
      }
    }
  }
};

struct Extension {
  Residues residues;
  Table table;  // one row more than moduli: -M, for the term q
  const u32* last;
  const Factor* inverses;
  u32 start;
  u32 ambiguous_below;
  const u32* target_last;
  const WordFactors* factors;
  i64 targets;

  void load_tile(i64 first, i64 width, std::vector<Row>& terms, u8* ambiguous) const {
    load_terms(residues, last, inverses, first, width, terms);
    Row& q = terms[residues.moduli];
    std::fill_n(q.x, width, 0);
    SumRow fractions[2];
    table.sum(terms, 0, 2, width, fractions);
    find_quotients(fractions, start, ambiguous_below, width, q, ambiguous);
  }

  void extend(u32* result, i64 result_stride, u8* ambiguous) const {
    std::vector<Row> terms(table.rows());
    SumRow sums[kResults];
    for (i64 first = 0; first < residues.count; first += kNumbers) {
      const i64 width = std::min(kNumbers, residues.count - first);
      load_tile(first, width, terms, ambiguous + first);
      for (i64 i = 0; i < targets; i += kResults) {
        const i64 results = std::min(kResults, targets - i);
        table.sum(terms, i + 2, results, width, sums);
        for (i64 k = 0; k < results; ++k) {
          reduce_sums(sums[k], factors[i + k], target_last[i + k], width,
                      result + (i + k) * result_stride + first);
        }
      }
    }
  }
};

// The first number outside the bounds; -1 if there is none.
i64 first_outside(const Limbs& limbs, const u32* bounds, u32 flip) {
  const i64 limb_count = static_cast<i64>(limbs.shape(1));
  for (i64 j = 0; j < static_cast<i64>(limbs.shape(0)); ++j) {
    if (is_outside(limbs.data() + j * limbs.stride(0), bounds, limb_count, flip)) return j;
  }
  return -1;
}

void check_limbs(const Limbs& limbs) {
  require(limbs.shape(0) == 0 || limbs.shape(1) == 1 || limbs.stride(1) == 1,
          "limbs: the limbs' axis must be contiguous");
}

}  // namespace

void bind_convert(nb::module_& module) {
  module.def("first_outside", [](const Limbs& limbs, const Table32& bounds, u32 flip) {
    check_limbs(limbs);
    require(bounds.shape(0) == 2 && bounds.shape(1) == limbs.shape(1),
            "bounds must have as many limbs as a number");
    nb::gil_scoped_release release;
    return first_outside(limbs, bounds.data(), flip);
  });
  module.def("limbs_to_residues", [](const Limbs& limbs, const Table32& table, const Vector32& last,
                                     const Table32& factors, MutableResidues residues) {
    check_limbs(limbs);
    const size_t n = last.shape(0), limb_count = limbs.shape(1);
    require(factors.shape(0) == n && factors.shape(1) == 6 && residues.shape(0) == n && table.shape(1) >= n,
            "one row of constants and of residues for each modulus is needed");
    require(table.shape(0) == limb_count || table.shape(0) == limb_count + 1,
            "the table must have a row a limb");
    require(residues.shape(1) == limbs.shape(0) && (residues.shape(1) <= 1 || residues.stride(1) == 1),
            "residues must have one column for each number, and contiguous rows");
    nb::gil_scoped_release release;
    const Forward forward = {
        limbs.data(),       limbs.stride(0), static_cast<i64>(limb_count),
        Table(table),       last.data(),     reinterpret_cast<const WordFactors*>(factors.data()),
        static_cast<i64>(n)};
    forward.convert(static_cast<i64>(limbs.shape(0)), residues.data(), residues.stride(0));
  });
  module.def("residues_to_limbs", [](const Matrix32& array, const Table32& table, const Vector32& last,
                                     const Table32& inverses, const Vector32& product,
                                     const Vector32& highest, MutableMatrix32 limbs) {
    const Residues residues(array);
    const size_t n = array.shape(0), limb_count = limbs.shape(1);
    require(table.shape(0) == n && last.shape(0) == n && inverses.shape(0) == n && inverses.shape(1) == 2,
            "one row of constants for each modulus is needed");
    require(
        table.shape(1) >= limb_count + 2 && product.shape(0) == limb_count && highest.shape(0) == limb_count,
        "the constants must have as many limbs as a number");
    require(limbs.shape(0) == array.shape(1), "limbs must have one row for each number");
    nb::gil_scoped_release release;
    const Reverse reverse = {residues,
                             Table(table),
                             last.data(),
                             reinterpret_cast<const Factor*>(inverses.data()),
                             product.data(),
                             highest.data(),
                             static_cast<i64>(limb_count)};
    reverse.convert(limbs.data());
  });
  module.def("base_extend", [](const Matrix32& array, const Table32& table, const Vector32& last,
                               const Table32& inverses, u32 start, u32 ambiguous_below,
                               const Vector32& target_last, const Table32& factors, MutableResidues result,
                               Vector8 ambiguous) {
    const Residues residues(array);
    const size_t n = array.shape(0), targets = target_last.shape(0);
    require(table.shape(0) == n + 1 && last.shape(0) == n && inverses.shape(0) == n && inverses.shape(1) == 2,
            "one row of constants for each modulus is needed");
    require(table.shape(1) >= targets + 2 && factors.shape(0) == targets && factors.shape(1) == 6,
            "one column of constants for each new modulus is needed");
    require(result.shape(0) == targets && result.shape(1) == array.shape(1) &&
                ambiguous.shape(0) == array.shape(1) && (result.shape(1) <= 1 || result.stride(1) == 1),
            "the result must have one column for each number, and contiguous rows");
    nb::gil_scoped_release release;
    const Extension extension = {residues,
                                 Table(table),
                                 last.data(),
                                 reinterpret_cast<const Factor*>(inverses.data()),
                                 start,
                                 ambiguous_below,
                                 target_last.data(),
                                 reinterpret_cast<const WordFactors*>(factors.data()),
                                 static_cast<i64>(targets)};
    extension.extend(result.data(), result.stride(0), ambiguous.data());
  });
}

}  // namespace rns
