// The sum of numbers that overlap: what makes one long integer of the coefficients of a product of
// polynomials.
#include "bindings.hpp"

namespace rns {

namespace {

// Adds `width` limbs at `out`, and their carry as far as it goes before `end`.
void add_limbs(const u32* x, i64 width, u32* out, const u32* end) {
  u64 carry = 0;
  for (i64 j = 0; j < width; ++j) {
    const u64 sum = carry + out[j] + x[j];
    out[j] = static_cast<u32>(sum);
    carry = sum >> 32;
  }
  for (out += width; carry != 0 && out != end; ++out) carry = ++*out == 0;
}

}  // namespace

void bind_overlap_add(nb::module_& module) {
  module.def("overlap_add", [](const Table32& numbers, i64 step, MutableVector32 out) {
    const i64 count = static_cast<i64>(numbers.shape(0)), width = static_cast<i64>(numbers.shape(1));
    const i64 size = static_cast<i64>(out.shape(0));
    require(count > 0 && step > 0 && size >= (count - 1) * step + width, "the sum must have all places");
    nb::gil_scoped_release release;
    for (i64 k = 0; k < count; ++k) {
      add_limbs(numbers.data() + k * width, width, out.data() + k * step, out.data() + size);
    }
  });
}

}  // namespace rns
