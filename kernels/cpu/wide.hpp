// Arrays of residues modulo m_i < 2^64, and the table of these.
#pragma once

#include <string>
#include <vector>

#include "residues.hpp"
#include "rns/wide_modular.cuh"

namespace rns {

using Matrix64 = nb::ndarray<const u64, nb::ndim<2>, nb::device::cpu>;
using Table64 = nb::ndarray<const u64, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using MutableMatrix64 = Written<u64, nb::ndim<2>, nb::c_contig>;

// A modulus for each row.
inline const WideModulus* wide_moduli(const Table64& table, i64 rows) {
  require(static_cast<i64>(table.shape(0)) == rows && table.shape(1) == 4,
          "one modulus for each row is needed");
  return reinterpret_cast<const WideModulus*>(table.data());
}

// The sets of instructions by which this processor computes with words of 64 bits, the best last: all give
// the same. Moduli too long for a set are left to the one before it.
std::vector<std::string> wide_methods();

// A method of these, of which the best has that name too; ValueError for another.
const std::string& checked_wide(const std::string& method);

}  // namespace rns
