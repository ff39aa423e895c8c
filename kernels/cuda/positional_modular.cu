// Sums and differences modulo positional numbers, one number a thread. The limbs are gone through twice: to
// find what is to be done, and to do it.
#include "grid.cuh"
#include "montgomery.cuh"

using namespace rns;

extern "C" {

// `unreduced` becomes 1 if an operand is not below its modulus; the result means nothing then.
__global__ void add_modular(ModularTask task, i32 subtract, u32* unreduced) {
  const i64 limbs = task.modulus.limbs;
  const i64 sign = subtract != 0 ? -1 : 1;
  bool are_reduced = true;
  for (i64 j = thread_index(); j < task.count; j += thread_count()) {
    // Carries of x + y and of that less m, or of x - y and of that and m; borrows of x - m and y - m.
    i64 carry = 0, other = 0, x_borrow = 0, y_borrow = 0;
    const auto limbs_at = [&](i64 i, i64& x, i64& y, i64& m) {
      x = task.x.at_or_zero(i, j);
      y = task.y.at_or_zero(i, j);
      m = task.modulus.at(i, j);
    };
    for (i64 i = 0; i < limbs; ++i) {
      i64 x, y, m;
      limbs_at(i, x, y, m);
      carry += x + sign * y;
      other += static_cast<u32>(carry) - sign * m;
      carry >>= 32;
      other >>= 32;
      x_borrow = (x_borrow + x - m) >> 32;
      y_borrow = (y_borrow + y - m) >> 32;
    }
    are_reduced = are_reduced && x_borrow != 0 && y_borrow != 0;
    const bool takes_modulus = subtract != 0 ? carry != 0 : carry + other >= 0;
    carry = 0;
    for (i64 i = 0; i < limbs; ++i) {
      i64 x, y, m;
      limbs_at(i, x, y, m);
      carry += x + sign * y - (takes_modulus ? sign * m : 0);
      __stcs(task.out + i * task.count + j, static_cast<u32>(carry));
      carry >>= 32;
    }
  }
  if (!are_reduced) *unreduced = 1;
}

}  // extern "C"
