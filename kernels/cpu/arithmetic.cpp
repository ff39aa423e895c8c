// Element-wise arithmetic modulo m_i, row by row. An operand is an array of numbers, or one number for all.
#include "rns/arithmetic.cuh"

#include <nanobind/stl/array.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "bindings.hpp"
#include "keys.hpp"
#include "rns/operations.cuh"

namespace rns {

namespace {

// Part of a row of each operand -> the same part of the result's row.
using RowOperation = void (*)(const u32* const* x, Modulus m, i64 width, u32* out);

#define DEFINE(name, operands, expression)                                                           \
  RNS_VECTORISED void name##_row(const u32* const* x, Modulus m, i64 width, u32* __restrict__ out) { \
    const u32 *x0 = x[0], *x1 = x[1 % operands], *x2 = x[2 % operands], *x3 = x[3 % operands];       \
    for (i64 j = 0; j < width; ++j) {                                                                \
      [[maybe_unused]] const u32 a = x0[j], b = x1[j], c = x2[j], d = x3[j];                         \
      out[j] = expression;                                                                           \
    }                                                                                                \
  }
RNS_OPERATIONS(DEFINE)

struct Operation {
  std::string_view name;
  size_t operands;
  RowOperation row;
};
#define OPERATION(name, operands, expression) {#name, operands, name##_row},
constexpr Operation kOperations[] = {RNS_OPERATIONS(OPERATION)};

struct Sum {
  std::string_view name;
  bool subtract;
};
#define SUM(name, subtract) {#name, subtract},
constexpr Sum kSums[] = {RNS_SUMS(SUM)};

template <class Entry, size_t kCount>
const Entry& find(const Entry (&entries)[kCount], std::string_view name) {
  const Entry* found =
      std::find_if(entries, entries + kCount, [&](const Entry& e) { return e.name == name; });
  require(found != entries + kCount, "there is no such operation");
  return *found;
}

RNS_VECTORISED void sum_states(const u64* x, const u64* y, bool subtract, SumTest test, i64 width,
                               u8* states) {
  for (i64 j = 0; j < width; ++j) states[j] = sum_state(x[j], y[j], subtract, test);
}

RNS_VECTORISED void window_states(const u64* keys, WindowTest test, i64 width, u8* states) {
  for (i64 j = 0; j < width; ++j) states[j] = window_state(keys[j], test);
}

// With keys, two rows are taken at a time, in strips that stay in the first-level cache between the passes
// over them. Tiles are longer: a row of a tile lies in pages of its own, which cost time to enter.
constexpr i64 kKeyedTile = 4096;
constexpr i64 kStrip = 512;
constexpr i64 kStripRows = 2;

// A single number is spread over a tile, so that one loop serves both kinds of operand.
class Operands {
 public:
  explicit Operands(const std::vector<Residues>& x) : x_(x) {}

  void start_row(i64 i, i64 width) {
    for (size_t k = 0; k < x_.size(); ++k) {
      if (is_single(k)) std::fill_n(spread_[k], width, *x_[k].row(i));
    }
  }
  // Parts of the operands' rows from the number `first` on; they hold until the next call.
  const u32* const* part(i64 i, i64 first) {
    for (size_t k = 0; k < x_.size(); ++k) pointers_[k] = is_single(k) ? spread_[k] : x_[k].row(i) + first;
    return pointers_;
  }
  bool is_single(size_t k) const { return x_[k].count == 1; }

 private:
  const std::vector<Residues>& x_;
  const u32* pointers_[kMaxOperands];
  alignas(64) u32 spread_[kMaxOperands][kTile];
};

// Operands, moduli and result of one call, checked to fit.
struct Task {
  std::vector<Residues> x;
  const Modulus* moduli;
  u32* out;
  i64 rows;
  i64 count;

  Task(const std::vector<Matrix32>& operands, const Table32& table, const MutableMatrix32& result)
      : x(operands.begin(), operands.end()),
        moduli(reinterpret_cast<const Modulus*>(table.data())),
        out(result.data()),
        rows(static_cast<i64>(result.shape(0))),
        count(static_cast<i64>(result.shape(1))) {
    require(static_cast<i64>(table.shape(0)) == rows && table.shape(1) == 4,
            "one modulus for each row is needed");
    for (const Residues& operand : x) {
      require(operand.moduli == rows, "operands and result must have the same number of rows");
      require(operand.count == count || operand.count == 1,
              "an operand must have the result's columns, or one column");
    }
  }
};

void apply(RowOperation operation, const Task& task) {
  Operands operands(task.x);
  for (i64 i = 0; i < task.rows; ++i) {
    operands.start_row(i, std::min(kTile, task.count));
    for (i64 first = 0; first < task.count; first += kTile) {
      operation(operands.part(i, first), task.moduli[i], std::min(kTile, task.count - first),
                task.out + i * task.count + first);
    }
  }
}

// The keys of an operand, a tile at a time.
class TileKeys {
 public:
  TileKeys(const Residues& x, const u64* coefficients, u64 start) : x_(x), c_(coefficients), start_(start) {
    if (x.count != 1) return;
    evaluate_keys(x, c_, start, 0, 1, keys_);
    std::fill_n(keys_ + 1, kKeyedTile - 1, keys_[0]);
  }
  void start_tile(i64 width) { std::fill_n(sums_, width, u64{0}); }
  void add_rows(i64 i, i64 rows, i64 first, i64 offset, i64 width) {
    if (x_.count == 1) return;
    add_to_keys({x_.row(i) + first + offset, x_.stride, c_ + i}, rows, width, sums_ + offset);
  }
  u64* sums() { return sums_; }
  const u64* finish_tile(i64 width) {
    if (x_.count != 1) finish_keys(sums_, start_, width, keys_);
    return keys_;
  }

 private:
  const Residues& x_;
  const u64* c_;
  u64 start_;
  alignas(64) u64 sums_[kKeyedTile];
  alignas(64) u64 keys_[kKeyedTile];
};

// The operation, and the keys of some operands in the same pass: decide(first, width) is called when
// those of a tile are complete.
template <class Keys, class Decide>
void apply_keyed(RowOperation operation, const Task& task, const Keys& keys, Decide decide) {
  Operands operands(task.x);
  for (i64 first = 0; first < task.count; first += kKeyedTile) {
    const i64 width = std::min(kKeyedTile, task.count - first);
    for (TileKeys* k : keys) k->start_tile(width);
    for (i64 i = 0; i < task.rows; i += kStripRows) {
      const i64 rows = std::min(kStripRows, task.rows - i);
      for (i64 offset = 0; offset < width; offset += kStrip) {
        const i64 strip = std::min(kStrip, width - offset);
        for (TileKeys* k : keys) k->add_rows(i, rows, first, offset, strip);
        for (i64 r = i; r < i + rows; ++r) {
          operands.start_row(r, strip);
          operation(operands.part(r, first + offset), task.moduli[r], strip,
                    task.out + r * task.count + first + offset);
        }
      }
    }
    decide(first, width);
  }
}

// The same for a sum or a difference of two arrays with the keys of both.
template <class Decide>
void apply_keyed_sum(bool subtract, const Task& task, const u64* coefficients,
                     const std::array<TileKeys*, 2>& keys, Decide decide) {
  const std::vector<Residues>& x = task.x;
  for (i64 first = 0; first < task.count; first += kKeyedTile) {
    const i64 width = std::min(kKeyedTile, task.count - first);
    for (TileKeys* k : keys) k->start_tile(width);
    const KeyedSum sum = {subtract,    x[0].data + first, x[1].data + first, x[0].stride,
                          x[1].stride, coefficients,      task.moduli,       task.out + first,
                          task.count,  keys[0]->sums(),   keys[1]->sums()};
    add_keyed(sum, task.rows, width);
    decide(first, width);
  }
}

// A sum or a difference, and what the keys of both operands say of each.
void apply_checked(RowOperation operation, bool subtract, const Task& task, const u64* coefficients,
                   u64 start, SumTest test, u8* states) {
  TileKeys a_keys(task.x[0], coefficients, start), b_keys(task.x[1], coefficients, start);
  const std::array<TileKeys*, 2> keys = {&a_keys, &b_keys};
  const auto decide = [&](i64 first, i64 width) {
    sum_states(a_keys.finish_tile(width), b_keys.finish_tile(width), subtract, test, width, states + first);
  };
  if (task.x[0].count == task.x[1].count) {
    apply_keyed_sum(subtract, task, coefficients, keys, decide);
  } else {
    apply_keyed(operation, task, keys, decide);
  }
}

// The operand at the index `deciding` decides by its keys alone.
void apply_windowed(RowOperation operation, const Task& task, size_t deciding, const u64* coefficients,
                    u64 start, WindowTest test, u8* states) {
  TileKeys keys(task.x[deciding], coefficients, start);
  apply_keyed(operation, task, std::array<TileKeys*, 1>{&keys}, [&](i64 first, i64 width) {
    window_states(keys.finish_tile(width), test, width, states + first);
  });
}

void check_keyed(const Task& task, const Vector64& coefficients, const Vector8& states) {
  require(static_cast<i64>(coefficients.shape(0)) == task.rows, "one coefficient for each modulus is needed");
  require(static_cast<i64>(states.shape(0)) == task.count, "one state for each number is needed");
}

// a^k by squaring, a tile at a time.
void power(const Residues& a, u64 exponent, const Modulus* moduli, u32* out) {
  alignas(64) u32 base[kTile], product[kTile];
  for (i64 i = 0; i < a.moduli; ++i) {
    for (i64 first = 0; first < a.count; first += kTile) {
      const i64 width = std::min(kTile, a.count - first);
      u32* result = out + i * a.count + first;
      std::copy_n(a.row(i) + first, width, base);
      std::fill_n(result, width, 1u);
      for (u64 k = exponent; k != 0; k >>= 1) {
        const u32* factors[2] = {result, base};
        if (k & 1) {
          multiply_row(factors, moduli[i], width, product);
          std::copy_n(product, width, result);
        }
        factors[0] = base;
        multiply_row(factors, moduli[i], width, product);
        std::copy_n(product, width, base);
      }
    }
  }
}

// Inverses; 0 where there is none.
void inverse(const Residues& a, const Modulus* moduli, u32* out) {
  for (i64 i = 0; i < a.moduli; ++i) {
    const u32* row = a.row(i);
    for (i64 j = 0; j < a.count; ++j) out[i * a.count + j] = mod_inverse(row[j], moduli[i].last);
  }
}

}  // namespace

void bind_arithmetic(nb::module_& module) {
  module.def("apply", [](std::string_view name, const std::vector<Matrix32>& arrays, const Table32& moduli,
                         MutableMatrix32 out) {
    const Operation& operation = find(kOperations, name);
    require(arrays.size() == operation.operands, "another number of operands is needed");
    const Task task(arrays, moduli, out);
    nb::gil_scoped_release release;
    apply(operation.row, task);
  });
  module.def("apply_checked", [](std::string_view name, const std::vector<Matrix32>& arrays,
                                 const Table32& moduli, const Vector64& coefficients, u64 start,
                                 const std::array<u64, 5>& limits, MutableMatrix32 out, Vector8 states) {
    const bool subtract = find(kSums, name).subtract;
    const Operation& operation = find(kOperations, name);
    require(arrays.size() == operation.operands, "another number of operands is needed");
    const Task task(arrays, moduli, out);
    check_keyed(task, coefficients, states);
    nb::gil_scoped_release release;
    const SumTest test = {limits[0], limits[1], limits[2], limits[3], limits[4]};
    apply_checked(operation.row, subtract, task, coefficients.data(), start, test, states.data());
  });
  module.def("apply_windowed", [](std::string_view name, const std::vector<Matrix32>& arrays, size_t deciding,
                                  const Table32& moduli, const Vector64& coefficients, u64 start,
                                  const std::array<u64, 5>& window, MutableMatrix32 out, Vector8 states) {
    const Operation& operation = find(kOperations, name);
    require(arrays.size() == operation.operands, "another number of operands is needed");
    const Task task(arrays, moduli, out);
    check_keyed(task, coefficients, states);
    require(deciding < arrays.size(), "the deciding operand must be one of the operands");
    nb::gil_scoped_release release;
    const WindowTest test = {window[0], window[1], window[2], window[3], window[4]};
    apply_windowed(operation.row, task, deciding, coefficients.data(), start, test, states.data());
  });
  module.def("power", [](const Matrix32& array, u64 exponent, const Table32& moduli, MutableMatrix32 out) {
    const Task task({array}, moduli, out);
    nb::gil_scoped_release release;
    power(task.x[0], exponent, task.moduli, task.out);
  });
  module.def("inverse", [](const Matrix32& array, const Table32& moduli, MutableMatrix32 out) {
    const Task task({array}, moduli, out);
    nb::gil_scoped_release release;
    inverse(task.x[0], task.moduli, task.out);
  });
}

}  // namespace rns
