// Division of numbers of 32-bit limbs.
#include "rns/divide.cuh"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

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

// How multiples of a divisor are subtracted: all ways give the same.
constexpr std::pair<const char*, SubtractMultiple> kMethods[] = {
    {"portable", subtract_multiple_portably},
#ifdef RNS_X86_LEVELS
    {"adx", subtract_multiple_adx},
#endif
};

bool is_supported(SubtractMultiple method) {
#ifdef RNS_X86_LEVELS
  if (method == subtract_multiple_adx) return __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("adx");
#endif
  return method == subtract_multiple_portably;
}

// The method of that name, or the quickest of those that this processor supports: the last one.
SubtractMultiple find_method(const std::string& name) {
  SubtractMultiple found = nullptr;
  for (const auto& [known, method] : kMethods) {
    if ((name == known || name == "best") && is_supported(method)) found = method;
  }
  require(found != nullptr, "no such method on this processor");
  return found;
}

// Returns how many limbs hold the magnitude of each quotient.
i64 divide_all(const Division& task, SubtractMultiple method) {
  LongDivision division(method);
  for (i64 j = 0; j < task.count(); ++j) {
    if (j == 0 || !task.has_one_divisor())
      division.set_divisor(task.divisor(j), task.divisor_limbs(), task.is_signed);
    division.divide(task.number(j), task.limb_count(), task.quotient(j), task.remainder(j), task.width());
  }
  return division.quotient_limbs();
}

// The same by the scalar code of the GPU's kernel.
i64 divide_all_as_cuda(const Division& task) {
  for (i64 j = 0; j < task.count(); ++j) {
    floor_divide(task.number(j), task.limb_count(), task.divisor(j), task.divisor_limbs(), task.is_signed,
                 task.quotient(j), task.remainder(j), task.width());
  }
  return task.width();
}

}  // namespace

void bind_divide(nb::module_& module) {
  module.def("floor_divide_limbs", [](const Table32& limbs, const Table32& divisors, bool is_signed,
                                      const MutableMatrix32& quotients, const MutableMatrix32& remainders,
                                      const std::string& name) {
    const Division task = {limbs, divisors, is_signed, quotients, remainders};
    task.check();
    if (name == "cuda") return divide_all_as_cuda(task);
    const SubtractMultiple method = find_method(name);
    nb::gil_scoped_release release;
    return divide_all(task, method);
  });
  // For tests only: division takes the best method.
  module.def("division_methods", [] {
    std::vector<std::string> names = {"cuda"};
    for (const auto& [name, method] : kMethods) {
      if (is_supported(method)) names.emplace_back(name);
    }
    return names;
  });
}

}  // namespace rns
