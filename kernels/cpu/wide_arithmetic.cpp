// Element-wise arithmetic modulo m_i < 2^64, row by row. An operand is an array of numbers, or one number for
// all.
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "bindings.hpp"
#include "rns/operations.cuh"
#include "wide.hpp"

namespace rns {

namespace {

// Number j of operand o is x[o][j * step[o]].
using WideOperation = void (*)(const u64* const* x, const i64* step, WideModulus m, i64 count, u64* out);

#define DEFINE(name, operands, expression)                                                                   \
  void name##_words(const u64* const* x, const i64* step, WideModulus m, i64 count, u64* __restrict__ out) { \
    const u64 *x0 = x[0], *x1 = x[1 % operands], *x2 = x[2 % operands], *x3 = x[3 % operands];               \
    const i64 s0 = step[0], s1 = step[1 % operands], s2 = step[2 % operands], s3 = step[3 % operands];       \
    for (i64 j = 0; j < count; ++j) {                                                                        \
      [[maybe_unused]] const u64 a = x0[j * s0], b = x1[j * s1], c = x2[j * s2], d = x3[j * s3];             \
      out[j] = expression;                                                                                   \
    }                                                                                                        \
  }
RNS_OPERATIONS(DEFINE)

struct Operation {
  std::string_view name;
  size_t operands;
  WideOperation words;
};
#define OPERATION(name, operands, expression) {#name, operands, name##_words},
constexpr Operation kOperations[] = {RNS_OPERATIONS(OPERATION)};

void check(const Matrix64& x, const MutableMatrix64& out) {
  require(x.shape(0) == out.shape(0), "operands and result must have the same number of rows");
  require(x.shape(1) == out.shape(1) || x.shape(1) == 1,
          "an operand must have the result's columns, or one column");
  require(x.shape(1) <= 1 || x.stride(1) == 1, "residues: the numbers' axis must be contiguous");
}

void apply(const Operation& operation, const std::vector<Matrix64>& x, const WideModulus* moduli,
           const MutableMatrix64& out) {
  const i64 rows = static_cast<i64>(out.shape(0)), count = static_cast<i64>(out.shape(1));
  for (i64 i = 0; i < rows; ++i) {
    const u64* data[kMaxOperands] = {};
    i64 step[kMaxOperands] = {};
    for (size_t o = 0; o < x.size(); ++o) {
      data[o] = x[o].data() + i * x[o].stride(0);
      step[o] = x[o].shape(1) == 1 ? 0 : 1;
    }
    operation.words(data, step, moduli[i], count, out.data() + i * count);
  }
}

// function(number, modulus) of each number.
template <class Function>
void for_each(const Matrix64& x, const Table64& table, const MutableMatrix64& out, Function function) {
  check(x, out);
  const WideModulus* moduli = wide_moduli(table, static_cast<i64>(out.shape(0)));
  nb::gil_scoped_release release;
  const i64 count = static_cast<i64>(out.shape(1)), step = x.shape(1) == 1 ? 0 : 1;
  for (i64 i = 0; i < static_cast<i64>(out.shape(0)); ++i) {
    const u64* row = x.data() + i * x.stride(0);
    for (i64 j = 0; j < count; ++j) out.data()[i * count + j] = function(row[j * step], moduli[i]);
  }
}

}  // namespace

void bind_wide_arithmetic(nb::module_& module) {
  module.def("wide_apply", [](std::string_view name, const std::vector<Matrix64>& arrays,
                              const Table64& table, MutableMatrix64 out) {
    const Operation* operation = std::find_if(std::begin(kOperations), std::end(kOperations),
                                              [&](const Operation& e) { return e.name == name; });
    require(operation != std::end(kOperations), "there is no such operation");
    require(arrays.size() == operation->operands, "another number of operands is needed");
    for (const Matrix64& x : arrays) check(x, out);
    const WideModulus* moduli = wide_moduli(table, static_cast<i64>(out.shape(0)));
    nb::gil_scoped_release release;
    apply(*operation, arrays, moduli, out);
  });
  module.def("wide_power", [](const Matrix64& x, u64 exponent, const Table64& table, MutableMatrix64 out) {
    for_each(x, table, out, [exponent](u64 a, WideModulus m) { return mod_pow(a, exponent, m); });
  });
  module.def("wide_inverse", [](const Matrix64& x, const Table64& table, MutableMatrix64 out) {
    for_each(x, table, out, [](u64 a, WideModulus m) { return prime_inverse(a, m.last); });
  });
}

}  // namespace rns
