// Loops over the candidates on the CPU, as a library with a plain C interface.
#include "modular_candidates.cuh"

using namespace rns;

namespace {

// x[j] = x[j] y[j] mod m, over and over: with short arrays a bare loop of products, with long ones a pass
// over memory.
template <class Candidate>
void multiply_rows(u64 m, i64 count, i32 repeat, u32* __restrict__ x, const u32* __restrict__ y) {
  const Candidate candidate = Candidate::of(m);
  for (i32 k = 0; k < repeat; ++k) {
    for (i64 j = 0; j < count; ++j) x[j] = candidate.multiply(x[j], y[j]);
  }
}

}  // namespace

extern "C" {

void division(u64 m, i64 count, i32 repeat, u32* x, const u32* y) {
  multiply_rows<Division>(m, count, repeat, x, y);
}

void barrett64(u64 m, i64 count, i32 repeat, u32* x, const u32* y) {
  multiply_rows<Barrett64>(m, count, repeat, x, y);
}

void montgomery(u64 m, i64 count, i32 repeat, u32* x, const u32* y) {
  multiply_rows<Montgomery>(m, count, repeat, x, y);
}

void floating_point(u64 m, i64 count, i32 repeat, u32* x, const u32* y) {
  multiply_rows<FloatingPoint>(m, count, repeat, x, y);
}

void normalised_reciprocal(u64 m, i64 count, i32 repeat, u32* x, const u32* y) {
  multiply_rows<NormalisedReciprocal>(m, count, repeat, x, y);
}

}  // extern "C"
