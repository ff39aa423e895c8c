// Mixed-radix conversion (MRC; Garner's algorithm): X = a_0 + a_1 m_0 + a_2 m_0 m_1 + ...
#pragma once

#include "modular.cuh"

namespace rns {

// One step towards digit i: from |(X - a_0 - ... ) / (m_0 ... m_{j-1})| modulo m_i, removes digit
// a_j and divides by m_j. a_j < m_j may exceed m_i (moduli come in any order), so it is reduced
// first, by the factor 1; `inverse` is |1/m_j| modulo m_i.
RNS_INLINE u32 mixed_radix_step(u32 x, u32 digit, Factor one, Factor inverse, u32 last) {
  return mod_mul(mod_sub(x, mod_mul(digit, one, last), last), inverse, last);
}

// Where the factors for digit i start in the table of the inverses |1/m_j| modulo m_i, j < i.
RNS_INLINE i64 inverse_row(i64 i) { return i * (i - 1) / 2; }

}  // namespace rns
