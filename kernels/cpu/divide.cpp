// Division of numbers of 32-bit limbs.
#include "rns/divide.cuh"

#include "bindings.hpp"
#include "long_division.hpp"

namespace rns {

namespace {

// Numbers, and one divisor for all or one for each; both results have the same width.
struct Division {
  const Table32& limbs;
  const Table32& divisors;
  bool is_signed;
  const MutableMatrix32& quotients;
  const MutableMatrix32& remainders;

  i64 count() const { return static_cast<i64>(limbs.shape(0)); }
  i64 limb_count() const { return static_cast<i64>(limbs.shape(1)); }
  i64 divisor_limbs() const { return static_cast<i64>(divisors.shape(1)); }
  i64 width() const { return static_cast<i64>(quotients.shape(1)); }
  bool has_one_divisor() const { return divisors.shape(0) == 1; }
  const u32* number(i64 j) const { return limbs.data() + j * limb_count(); }
  const u32* divisor(i64 j) const { return divisors.data() + (has_one_divisor() ? 0 : j * divisor_limbs()); }
  u32* quotient(i64 j) const { return quotients.data() + j * width(); }
  u32* remainder(i64 j) const { return remainders.data() + j * width(); }

  void check() const {
    require(has_one_divisor() || divisors.shape(0) == limbs.shape(0),
            "one divisor for all or each is needed");
    require(limb_count() > 0 && divisor_limbs() > 0, "a number has at least one limb");
    require(quotients.shape(0) == limbs.shape(0) && remainders.shape(0) == limbs.shape(0) &&
                remainders.shape(1) == quotients.shape(1) && width() >= limb_count() + is_signed &&
                width() >= divisor_limbs(),
            "the results need room for quotient and remainder of each number");
  }
};

}  // namespace

void bind_divide(nb::module_& module) {
  // Returns how many limbs hold the magnitude of each quotient.
  module.def("floor_divide_limbs", [](const Table32& limbs, const Table32& divisors, bool is_signed,
                                      const MutableMatrix32& quotients, const MutableMatrix32& remainders) {
    const Division task = {limbs, divisors, is_signed, quotients, remainders};
    task.check();
    nb::gil_scoped_release release;
    LongDivision division;
    for (i64 j = 0; j < task.count(); ++j) {
      if (j == 0 || !task.has_one_divisor())
        division.set_divisor(task.divisor(j), task.divisor_limbs(), is_signed);
      division.divide(task.number(j), task.limb_count(), task.quotient(j), task.remainder(j), task.width());
    }
    return division.quotient_limbs();
  });
  // The same by the GPU's scalar code, for tests only.
  module.def("floor_divide_limbs_as_cuda",
             [](const Table32& limbs, const Table32& divisors, bool is_signed,
                const MutableMatrix32& quotients, const MutableMatrix32& remainders) {
               const Division task = {limbs, divisors, is_signed, quotients, remainders};
               task.check();
               nb::gil_scoped_release release;
               for (i64 j = 0; j < task.count(); ++j) {
                 floor_divide(task.number(j), task.limb_count(), task.divisor(j), task.divisor_limbs(),
                              is_signed, task.quotient(j), task.remainder(j), task.width());
               }
             });
}

}  // namespace rns
