// Division of numbers of 32-bit limbs.
#include "rns/divide.cuh"

#include "bindings.hpp"

namespace rns {

void bind_divide(nb::module_& module) {
  module.def("floor_divide_limbs", [](const Table32& limbs, const Table32& divisors, bool is_signed,
                                      MutableMatrix32 quotients, MutableMatrix32 remainders) {
    const size_t count = limbs.shape(0), width = quotients.shape(1);
    const i64 limb_count = static_cast<i64>(limbs.shape(1)),
              divisor_count = static_cast<i64>(divisors.shape(1));
    require(divisors.shape(0) == 1 || divisors.shape(0) == count, "one divisor for all or each is needed");
    require(limb_count > 0 && divisor_count > 0, "a number has at least one limb");
    require(quotients.shape(0) == count && remainders.shape(0) == count && remainders.shape(1) == width &&
                width >= limbs.shape(1) + is_signed && width >= divisors.shape(1),
            "the results need room for quotient and remainder of each number");
    nb::gil_scoped_release release;
    for (size_t j = 0; j < count; ++j) {
      const u32* divisor = divisors.data() + (divisors.shape(0) == 1 ? 0 : j * divisors.shape(1));
      floor_divide(limbs.data() + j * limbs.shape(1), limb_count, divisor, divisor_count, is_signed,
                   quotients.data() + j * width, remainders.data() + j * width, static_cast<i64>(width));
    }
  });
}

}  // namespace rns
