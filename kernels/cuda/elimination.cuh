// What kernels of elimination in stacks of matrices take.
#pragma once

#include "stack.cuh"

namespace rns {

// Results are (n, count, ...), contiguous, and begin as if there were no pivots: ranks before columns `start`
// on are in ranks. Pivots come from columns `start` to `stop`.
struct Elimination {
  Stack x;
  u32* out;
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
