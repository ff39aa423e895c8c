// The element-wise operations: name, number of operands, and the residue of the result, given those of the
// operands, a, b, c and d, modulo m. The loops and entry points of both processors expand from these lists;
// rnsdask/core/operations.py says the same of integers.
#pragma once

#include "modular.cuh"

#define RNS_OPERATIONS(X)                 \
  X(add, 2, mod_add(a, b, m.last))        \
  X(subtract, 2, mod_sub(a, b, m.last))   \
  X(multiply, 2, mod_mul(a, b, m))        \
  X(fma, 3, mod_fma(a, b, c, m))          \
  X(mulsub, 4, mod_mulsub(a, b, c, d, m)) \
  X(muladd, 4, mod_muladd(a, b, c, d, m))

// Those whose operands' keys tell together whether the result fits, and whether the second is subtracted.
#define RNS_SUMS(X) \
  X(add, false)     \
  X(subtract, true)

namespace rns {

constexpr i32 kMaxOperands = 4;

}  // namespace rns
