// Residues modulo up to 2^64: their mixed-radix digits, and those of numbers of limbs.
#include "bindings.hpp"
#include "wide.hpp"

namespace rns {

void bind_wide_residues(nb::module_& module) {
  module.def("wide_digits", [](const Matrix64& residues, const Vector64& last, const Table64& inverses,
                               const Vector64& highest, MutableMatrix64 digits) {
    const size_t n = residues.shape(0), count = residues.shape(1);
    require(last.shape(0) == n && highest.shape(0) == n && inverses.shape(0) == n * (n - 1) / 2,
            "the tables do not fit the number of moduli");
    require(digits.shape(0) == count && digits.shape(1) == n + 1,
            "digits must have a row for each number, and a column more than moduli");
    const WideFactor* factors = reinterpret_cast<const WideFactor*>(inverses.data());
    nb::gil_scoped_release release;
    for (size_t j = 0; j < count; ++j) {
      garner_digits(residues.data() + static_cast<i64>(j) * residues.stride(1), residues.stride(0),
                    static_cast<i64>(n), last.data(), factors, highest.data(), digits.data() + j * (n + 1));
    }
  });
  module.def("limbs_to_wide_residues", [](const Table32& limbs, const Table64& weights, const Vector64& last,
                                          const Table64& factors, MutableMatrix64 residues) {
    const size_t n = last.shape(0), count = limbs.shape(0), limb_count = limbs.shape(1);
    require(limb_count > 0, "a number has at least one limb");
    require(weights.shape(0) == limb_count || weights.shape(0) == limb_count + 1,
            "the table must have a row a limb");
    require(weights.shape(1) == n && factors.shape(0) == n && factors.shape(1) == 4 && residues.shape(0) == n,
            "one column of constants and a row of residues for each modulus is needed");
    require(residues.shape(1) == count, "residues must have one column for each number");
    const bool is_signed = weights.shape(0) > limb_count;
    const WideWordFactors* words = reinterpret_cast<const WideWordFactors*>(factors.data());
    nb::gil_scoped_release release;
    for (size_t j = 0; j < count; ++j) {
      const u32* number = limbs.data() + j * limb_count;
      for (size_t i = 0; i < n; ++i) {
        residues.data()[i * count + j] =
            wide_residue(number, static_cast<i64>(limb_count), is_signed, weights.data() + i,
                         static_cast<i64>(n), words[i], last.data()[i]);
      }
    }
  });
}

}  // namespace rns
