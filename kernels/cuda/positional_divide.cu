// Division of positional numbers with floor semantics, one number a thread. Neighbouring threads divide the
// same limbs of neighbouring numbers.
#include <rns/divide.cuh>

#include "grid.cuh"
#include "limb_sums.cuh"

using namespace rns;

extern "C" {

// `width` limbs of quotients and of remainders, as floor_divide takes them.
__global__ void floor_divide_positional(LimbOperand x, LimbOperand divisor, i64 count, i64 width,
                                        i32 is_signed, u32* quotients, u32* remainders) {
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    floor_divide(x.place(j), x.limbs, divisor.place(j), divisor.limbs, is_signed != 0,
                 Place{quotients + j, count}, Place{remainders + j, count}, width);
  }
}

// The workspace has room for two numbers a thread.
__global__ void square_roots_positional(LimbOperand x, i64 count, u32* workspace, u32* out) {
  const Place rest = {workspace + thread_index(), thread_count()}, quotient = rest + x.limbs;
  for (i64 j = thread_index(); j < count; j += thread_count())
    square_root(x.place(j), x.limbs, Place{out + j, count}, rest, quotient);
}

}  // extern "C"
