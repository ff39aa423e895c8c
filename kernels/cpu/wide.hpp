// Arrays of residues modulo m_i < 2^64, and the table of these.
#pragma once

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

}  // namespace rns
