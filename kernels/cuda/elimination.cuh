// What kernels of elimination in stacks of matrices take.
#pragma once

#include <rns/modular.cuh>

#include "stack.cuh"

namespace rns {

// Results are (n, count, ...), contiguous, and begin as if there were no pivots: ranks before columns `start`
// on are in ranks. Pivots come from columns `start` to `stop`. Of whole matrices echelon forms, and their
// factors P, L and U, are null unless they are wanted.
struct Elimination {
  Stack x;
  u32* out;
  u32* permutation;
  u32* lower;
  u32* upper;
  i32* order;
  i32* pivots;
  u32* products;
  const i32* ranks;
  i32* new_ranks;
  const Modulus* moduli;
  i64 moduli_count;
  i64 count;
  i64 rows;
  i64 columns;
  i64 most;  // pivots there are room for
  i64 start;
  i64 stop;
  i64 reach;       // where the columns end that are changed
  i64 has_panels;  // whether a panel of a great matrix is copied to shared memory
};

}  // namespace rns
