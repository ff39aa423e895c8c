// Element-wise arithmetic modulo m_i < 2^64, row by row. An operand is an array of numbers, or one number for
// all.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "bindings.hpp"
#include "rns/operations.cuh"
#include "wide_vectors.hpp"

namespace rns {

std::vector<std::string> wide_methods() {
  std::vector<std::string> methods = {"portable"};
#ifdef RNS_X86_LEVELS
  if (__builtin_cpu_supports("x86-64-v4")) methods.push_back("avx512");
  if (__builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512ifma")) methods.push_back("ifma");
#endif
  return methods;
}

const std::string& checked_wide(const std::string& method) {
  static const std::vector<std::string> methods = wide_methods();
  if (method == "best") return methods.back();
  require(std::find(methods.begin(), methods.end(), method) != methods.end(), "no such method");
  return method;
}

namespace {

// Number j of operand o is x[o][j * step[o]].
using WideOperation = void (*)(const u64* const* x, const i64* step, WideModulus m, i64 count, u64* out);

using WidePower = void (*)(const u64* x, i64 step, u64 exponent, WideModulus m, i64 count, u64* out);

namespace portable {

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

#undef DEFINE

void power_words(const u64* x, i64 step, u64 exponent, WideModulus m, i64 count, u64* out) {
  for (i64 j = 0; j < count; ++j) out[j] = mod_pow(x[j * step], exponent, m);
}

}  // namespace portable

}  // namespace

#ifdef RNS_X86_LEVELS

namespace avx512 {
namespace {
#define RNS_LEVEL RNS_AVX512
#define RNS_LEVEL_INLINE RNS_AVX512_INLINE
#include "wide_arithmetic_loops.hpp"
#undef RNS_LEVEL
#undef RNS_LEVEL_INLINE
}  // namespace
}  // namespace avx512

namespace ifma {
namespace {
#define RNS_LEVEL RNS_IFMA
#define RNS_LEVEL_INLINE RNS_IFMA_INLINE
#include "wide_arithmetic_loops.hpp"
#undef RNS_LEVEL
#undef RNS_LEVEL_INLINE
}  // namespace
}  // namespace ifma

#endif

namespace {

#ifdef RNS_X86_LEVELS

#define LEVELS(function) {portable::function, avx512::function, ifma::function}

// By which loops numbers modulo m are computed.
int level_of(const std::string& method, WideModulus m) {
  const int bits = 64 - static_cast<int>(m.shift);
  if (method == "ifma" && bits <= ifma::kMostBits) return 2;
  return method != "portable" && bits <= avx512::kMostBits ? 1 : 0;
}

#else

#define LEVELS(function) {portable::function}

int level_of(const std::string&, WideModulus) { return 0; }

#endif

struct Operation {
  std::string_view name;
  size_t operands;
  WideOperation words[3];
};
#define OPERATION(name, operands, expression) {#name, operands, LEVELS(name##_words)},
constexpr Operation kOperations[] = {RNS_OPERATIONS(OPERATION)};
constexpr WidePower kPowers[3] = LEVELS(power_words);

void check(const Matrix64& x, const MutableMatrix64& out) {
  require(x.shape(0) == out.shape(0), "operands and result must have the same number of rows");
  require(x.shape(1) == out.shape(1) || x.shape(1) == 1,
          "an operand must have the result's columns, or one column");
  require(x.shape(1) <= 1 || x.stride(1) == 1, "residues: the numbers' axis must be contiguous");
}

void apply(const Operation& operation, const std::vector<Matrix64>& x, const WideModulus* moduli,
           const std::string& method, const MutableMatrix64& out) {
  const i64 rows = static_cast<i64>(out.shape(0)), count = static_cast<i64>(out.shape(1));
  for (i64 i = 0; i < rows; ++i) {
    const u64* data[kMaxOperands] = {};
    i64 step[kMaxOperands] = {};
    for (size_t o = 0; o < x.size(); ++o) {
      data[o] = x[o].data() + i * x[o].stride(0);
      step[o] = x[o].shape(1) == 1 ? 0 : 1;
    }
    const WideOperation words = operation.words[level_of(method, moduli[i])];
    words(data, step, moduli[i], count, out.data() + i * count);
  }
}

}  // namespace

void bind_wide_arithmetic(nb::module_& module) {
  module.def("wide_apply", [](std::string_view name, const std::vector<Matrix64>& arrays,
                              const Table64& table, MutableMatrix64 out, const std::string& method) {
    const Operation* operation = std::find_if(std::begin(kOperations), std::end(kOperations),
                                              [&](const Operation& e) { return e.name == name; });
    require(operation != std::end(kOperations), "there is no such operation");
    require(arrays.size() == operation->operands, "another number of operands is needed");
    for (const Matrix64& x : arrays) check(x, out);
    const WideModulus* moduli = wide_moduli(table, static_cast<i64>(out.shape(0)));
    const std::string& set = checked_wide(method);
    nb::gil_scoped_release release;
    apply(*operation, arrays, moduli, set, out);
  });
  module.def("wide_power", [](const Matrix64& x, u64 exponent, const Table64& table, MutableMatrix64 out,
                              const std::string& method) {
    check(x, out);
    const WideModulus* moduli = wide_moduli(table, static_cast<i64>(out.shape(0)));
    const std::string& set = checked_wide(method);
    nb::gil_scoped_release release;
    const i64 count = static_cast<i64>(out.shape(1)), step = x.shape(1) == 1 ? 0 : 1;
    for (i64 i = 0; i < static_cast<i64>(out.shape(0)); ++i) {
      const WidePower power = kPowers[level_of(set, moduli[i])];
      power(x.data() + i * x.stride(0), step, exponent, moduli[i], count, out.data() + i * count);
    }
  });
  module.def("wide_inverse", [](const Matrix64& x, const Table64& table, MutableMatrix64 out) {
    check(x, out);
    const WideModulus* moduli = wide_moduli(table, static_cast<i64>(out.shape(0)));
    nb::gil_scoped_release release;
    const i64 count = static_cast<i64>(out.shape(1)), step = x.shape(1) == 1 ? 0 : 1;
    for (i64 i = 0; i < static_cast<i64>(out.shape(0)); ++i) {
      const u64* row = x.data() + i * x.stride(0);
      for (i64 j = 0; j < count; ++j) {
        out.data()[i * count + j] = prime_inverse(row[j * step], moduli[i].last);
      }
    }
  });
  module.def("wide_methods", &wide_methods);
}

}  // namespace rns
