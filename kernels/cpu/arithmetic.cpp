// Element-wise arithmetic modulo m_i, row by row. An operand is an array of numbers, or one number for all.
#include "rns/arithmetic.cuh"

#include <nanobind/stl/array.h>

#include <algorithm>
#include <array>
#include <utility>

#include "bindings.hpp"
#include "keys.hpp"

namespace rns {

namespace {

// Part of a row of each operand -> the same part of the result's row.
using RowOperation = void (*)(const u32* const* x, Modulus m, i64 width, u32* out);

RNS_VECTORISED void add_row(const u32* const* x, Modulus m, i64 width, u32* __restrict__ out) {
  const u32 *a = x[0], *b = x[1];
  for (i64 j = 0; j < width; ++j) out[j] = mod_add(a[j], b[j], m.last);
}

RNS_VECTORISED void subtract_row(const u32* const* x, Modulus m, i64 width, u32* __restrict__ out) {
  const u32 *a = x[0], *b = x[1];
  for (i64 j = 0; j < width; ++j) out[j] = mod_sub(a[j], b[j], m.last);
}

RNS_VECTORISED void multiply_row(const u32* const* x, Modulus m, i64 width, u32* __restrict__ out) {
  const u32 *a = x[0], *b = x[1];
  for (i64 j = 0; j < width; ++j) out[j] = mod_mul(a[j], b[j], m);
}

RNS_VECTORISED void fma_row(const u32* const* x, Modulus m, i64 width, u32* __restrict__ out) {
  const u32 *a = x[0], *b = x[1], *c = x[2];
  for (i64 j = 0; j < width; ++j) out[j] = mod_fma(a[j], b[j], c[j], m);
}

RNS_VECTORISED void mulsub_row(const u32* const* x, Modulus m, i64 width, u32* __restrict__ out) {
  const u32 *a = x[0], *b = x[1], *c = x[2], *d = x[3];
  for (i64 j = 0; j < width; ++j) out[j] = mod_mulsub(a[j], b[j], c[j], d[j], m);
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
template <size_t kOperands>
class Operands {
 public:
  explicit Operands(const std::array<Residues, kOperands>& x) : x_(x) {}

  void start_row(i64 i, i64 width) {
    for (size_t k = 0; k < kOperands; ++k) {
      if (is_single(k)) std::fill_n(spread_[k], width, *x_[k].row(i));
    }
  }
  void part(i64 i, i64 first, const u32** pointers) const {
    for (size_t k = 0; k < kOperands; ++k) {
      pointers[k] = is_single(k) ? spread_[k] : x_[k].row(i) + first;
    }
  }
  bool is_single(size_t k) const { return x_[k].count == 1; }

 private:
  std::array<Residues, kOperands> x_;
  alignas(64) u32 spread_[kOperands][kTile];
};

template <size_t kOperands>
void check_operands(const std::array<Residues, kOperands>& x, const Table32& moduli,
                    const MutableMatrix32& out) {
  const i64 n = static_cast<i64>(out.shape(0)), count = static_cast<i64>(out.shape(1));
  require(static_cast<i64>(moduli.shape(0)) == n && moduli.shape(1) == 4,
          "one modulus for each row is needed");
  for (const Residues& operand : x) {
    require(operand.moduli == n, "operands and result must have the same number of rows");
    require(operand.count == count || operand.count == 1,
            "an operand must have the result's columns, or one column");
  }
}

template <size_t kOperands>
void apply(RowOperation operation, const std::array<Residues, kOperands>& x, const Table32& moduli,
           const MutableMatrix32& out) {
  check_operands(x, moduli, out);
  nb::gil_scoped_release release;
  const i64 n = static_cast<i64>(out.shape(0)), count = static_cast<i64>(out.shape(1));
  const Modulus* modulus = reinterpret_cast<const Modulus*>(moduli.data());
  Operands<kOperands> operands(x);
  const u32* part[kOperands];
  for (i64 i = 0; i < n; ++i) {
    operands.start_row(i, std::min(kTile, count));
    for (i64 first = 0; first < count; first += kTile) {
      operands.part(i, first, part);
      operation(part, modulus[i], std::min(kTile, count - first), out.data() + i * count + first);
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
  void start_tile(i64 width) {
    std::fill_n(sums_.low, width, u64{0});
    std::fill_n(sums_.high, width, 0u);
  }
  void add_rows(i64 i, i64 rows, i64 first, i64 offset, i64 width) {
    if (x_.count == 1) return;
    add_to_keys(x_.row(i) + first + offset, x_.stride, rows, c_ + i, width, sums_.low + offset,
                sums_.high + offset);
  }
  u64* low() { return sums_.low; }
  u32* high() { return sums_.high; }
  const u64* finish_tile(i64 width) {
    if (x_.count != 1) finish_keys(sums_.low, sums_.high, start_, width, keys_);
    return keys_;
  }

 private:
  const Residues& x_;
  const u64* c_;
  u64 start_;
  KeyLanes<kKeyedTile> sums_;
  alignas(64) u64 keys_[kKeyedTile];
};

// The operation, and the keys of some operands in the same pass: decide(first, width) is called when
// those of a tile are complete.
template <size_t kOperands, size_t kKeys, class Decide>
void apply_keyed(RowOperation operation, const std::array<Residues, kOperands>& x, const Table32& moduli,
                 const std::array<TileKeys*, kKeys>& keys, const MutableMatrix32& out, Decide decide) {
  const i64 n = static_cast<i64>(out.shape(0)), count = static_cast<i64>(out.shape(1));
  const Modulus* modulus = reinterpret_cast<const Modulus*>(moduli.data());
  Operands<kOperands> operands(x);
  const u32* part[kOperands];
  for (i64 first = 0; first < count; first += kKeyedTile) {
    const i64 width = std::min(kKeyedTile, count - first);
    for (TileKeys* k : keys) k->start_tile(width);
    for (i64 i = 0; i < n; i += kStripRows) {
      const i64 rows = std::min(kStripRows, n - i);
      for (i64 offset = 0; offset < width; offset += kStrip) {
        const i64 strip = std::min(kStrip, width - offset);
        for (TileKeys* k : keys) k->add_rows(i, rows, first, offset, strip);
        for (i64 r = i; r < i + rows; ++r) {
          operands.start_row(r, strip);
          operands.part(r, first + offset, part);
          operation(part, modulus[r], strip, out.data() + r * count + first + offset);
        }
      }
    }
    decide(first, width);
  }
}

// The same for a sum or a difference of two arrays with the keys of both.
template <class Decide>
void apply_keyed_sum(bool subtract, const std::array<Residues, 2>& x, const Table32& moduli,
                     const u64* coefficients, const std::array<TileKeys*, 2>& keys,
                     const MutableMatrix32& out, Decide decide) {
  const i64 n = static_cast<i64>(out.shape(0)), count = static_cast<i64>(out.shape(1));
  for (i64 first = 0; first < count; first += kKeyedTile) {
    const i64 width = std::min(kKeyedTile, count - first);
    for (TileKeys* k : keys) k->start_tile(width);
    const KeyedSum sum = {subtract,
                          x[0].data + first,
                          x[1].data + first,
                          x[0].stride,
                          x[1].stride,
                          coefficients,
                          reinterpret_cast<const Modulus*>(moduli.data()),
                          out.data() + first,
                          count,
                          keys[0]->low(),
                          keys[1]->low(),
                          keys[0]->high(),
                          keys[1]->high()};
    add_keyed(sum, n, width);
    decide(first, width);
  }
}

auto checked_sum(bool subtract) {
  return [subtract](const Matrix32& a, const Matrix32& b, const Table32& moduli, const Vector64& coefficients,
                    u64 start, const std::array<u64, 5>& limits, MutableMatrix32 out, Vector8 states) {
    const std::array<Residues, 2> x = {Residues(a), Residues(b)};
    check_operands(x, moduli, out);
    require(coefficients.shape(0) == out.shape(0), "one coefficient for each modulus is needed");
    require(states.shape(0) == out.shape(1), "one state for each number is needed");
    nb::gil_scoped_release release;
    const SumTest test = {limits[0], limits[1], limits[2], limits[3], limits[4]};
    TileKeys a_keys(x[0], coefficients.data(), start), b_keys(x[1], coefficients.data(), start);
    const auto decide = [&](i64 first, i64 width) {
      sum_states(a_keys.finish_tile(width), b_keys.finish_tile(width), subtract, test, width,
                 states.data() + first);
    };
    if (x[0].count == x[1].count) {
      apply_keyed_sum(subtract, x, moduli, coefficients.data(), {&a_keys, &b_keys}, out, decide);
    } else {
      apply_keyed<2, 2>(subtract ? subtract_row : add_row, x, moduli, {&a_keys, &b_keys}, out, decide);
    }
  };
}

template <size_t kOperands, size_t... k>
std::array<Residues, kOperands> residues_of(const std::array<Matrix32, kOperands>& arrays,
                                            std::index_sequence<k...>) {
  return {Residues(arrays[k])...};
}

// The operand at the index `deciding` decides by its keys alone.
template <size_t kOperands>
auto windowed(RowOperation operation) {
  return [operation](const std::array<Matrix32, kOperands>& arrays, size_t deciding, const Table32& moduli,
                     const Vector64& coefficients, u64 start, const std::array<u64, 5>& window,
                     MutableMatrix32 out, Vector8 states) {
    const auto x = residues_of<kOperands>(arrays, std::make_index_sequence<kOperands>());
    check_operands(x, moduli, out);
    require(deciding < kOperands, "the deciding operand must be one of the operands");
    require(coefficients.shape(0) == out.shape(0), "one coefficient for each modulus is needed");
    require(states.shape(0) == out.shape(1), "one state for each number is needed");
    nb::gil_scoped_release release;
    const WindowTest test = {window[0], window[1], window[2], window[3], window[4]};
    TileKeys keys(x[deciding], coefficients.data(), start);
    apply_keyed<kOperands, 1>(operation, x, moduli, {&keys}, out, [&](i64 first, i64 count) {
      window_states(keys.finish_tile(count), test, count, states.data() + first);
    });
  };
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
  module.def("add", [](const Matrix32& a, const Matrix32& b, const Table32& moduli, MutableMatrix32 out) {
    apply<2>(add_row, {Residues(a), Residues(b)}, moduli, out);
  });
  module.def("subtract",
             [](const Matrix32& a, const Matrix32& b, const Table32& moduli, MutableMatrix32 out) {
               apply<2>(subtract_row, {Residues(a), Residues(b)}, moduli, out);
             });
  module.def("multiply",
             [](const Matrix32& a, const Matrix32& b, const Table32& moduli, MutableMatrix32 out) {
               apply<2>(multiply_row, {Residues(a), Residues(b)}, moduli, out);
             });
  module.def("fma", [](const Matrix32& a, const Matrix32& b, const Matrix32& c, const Table32& moduli,
                       MutableMatrix32 out) {
    apply<3>(fma_row, {Residues(a), Residues(b), Residues(c)}, moduli, out);
  });
  module.def("mulsub", [](const Matrix32& a, const Matrix32& b, const Matrix32& c, const Matrix32& d,
                          const Table32& moduli, MutableMatrix32 out) {
    apply<4>(mulsub_row, {Residues(a), Residues(b), Residues(c), Residues(d)}, moduli, out);
  });
  module.def("add_checked", checked_sum(false));
  module.def("subtract_checked", checked_sum(true));
  module.def("add_windowed", windowed<2>(add_row));
  module.def("subtract_windowed", windowed<2>(subtract_row));
  module.def("multiply_windowed", windowed<2>(multiply_row));
  module.def("fma_windowed", windowed<3>(fma_row));
  module.def("mulsub_windowed", windowed<4>(mulsub_row));
  module.def("power", [](const Matrix32& array, u64 exponent, const Table32& moduli, MutableMatrix32 out) {
    const Residues a(array);
    check_operands<1>({a}, moduli, out);
    nb::gil_scoped_release release;
    power(a, exponent, reinterpret_cast<const Modulus*>(moduli.data()), out.data());
  });
  module.def("inverse", [](const Matrix32& array, const Table32& moduli, MutableMatrix32 out) {
    const Residues a(array);
    check_operands<1>({a}, moduli, out);
    nb::gil_scoped_release release;
    inverse(a, reinterpret_cast<const Modulus*>(moduli.data()), out.data());
  });
}

}  // namespace rns
