// Element-wise arithmetic modulo m_i, row by row. An operand is an array of numbers, or one number for all.
#include "rns/arith.cuh"

#include <algorithm>
#include <array>

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

RNS_VECTORISED void unproven(const u64* x, const u64* y, bool subtract, SumTest test, i64 width, u8* flags) {
  for (i64 j = 0; j < width; ++j) flags[j] = !sum_fits(x[j], y[j], subtract, test);
}

// A single number is spread over a tile, so that one loop serves both kinds of operand.
template <size_t kOperands>
class Operands {
 public:
  explicit Operands(const std::array<Residues, kOperands>& x) : x_(x) {}

  void start_row(i64 i) {
    for (size_t k = 0; k < kOperands; ++k) {
      if (is_single(k)) std::fill_n(spread_[k], kTile, *x_[k].row(i));
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
    operands.start_row(i);
    for (i64 first = 0; first < count; first += kTile) {
      operands.part(i, first, part);
      operation(part, modulus[i], std::min(kTile, count - first), out.data() + i * count + first);
    }
  }
}

// The keys of a tile; of a single number, spread over the tile.
void tile_keys(const Residues& x, const u64* c, u64 start, i64 first, i64 width, u64* keys) {
  if (x.count != 1) return evaluate_keys(x, c, start, first, width, keys);
  evaluate_keys(x, c, start, 0, 1, keys);
  std::fill_n(keys + 1, width - 1, keys[0]);
}

// Sums or differences, and for each whether the keys leave open that it is out of range. A tile of all rows
// is still in cache when its residues are read again.
void apply_checked(bool subtract, const std::array<Residues, 2>& x, const Table32& moduli,
                   const Vector64& coefficients, u64 start, SumTest test, const MutableMatrix32& out,
                   u8* flags) {
  check_operands(x, moduli, out);
  nb::gil_scoped_release release;
  const i64 n = static_cast<i64>(out.shape(0)), count = static_cast<i64>(out.shape(1));
  const Modulus* modulus = reinterpret_cast<const Modulus*>(moduli.data());
  const RowOperation operation = subtract ? subtract_row : add_row;
  alignas(64) u64 keys[2][kTile];
  Operands<2> operands(x);
  const u32* part[2];
  for (i64 first = 0; first < count; first += kTile) {
    const i64 width = std::min(kTile, count - first);
    for (int k = 0; k < 2; ++k) tile_keys(x[k], coefficients.data(), start, first, width, keys[k]);
    unproven(keys[0], keys[1], subtract, test, width, flags + first);
    for (i64 i = 0; i < n; ++i) {
      operands.start_row(i);
      operands.part(i, first, part);
      operation(part, modulus[i], width, out.data() + i * count + first);
    }
  }
}

auto checked(bool subtract) {
  return
      [subtract](const Matrix32& a, const Matrix32& b, const Table32& moduli, const Vector64& coefficients,
                 u64 start, u64 ambiguous_below, u64 lowest, u64 width, MutableMatrix32 out, Vector8 flags) {
        require(coefficients.shape(0) == out.shape(0), "one coefficient for each modulus is needed");
        require(flags.shape(0) == out.shape(1), "one flag for each number is needed");
        apply_checked(subtract, {Residues(a), Residues(b)}, moduli, coefficients, start,
                      {ambiguous_below, lowest, width}, out, flags.data());
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

void bind_arith(nb::module_& module) {
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
  module.def("add_checked", checked(false));
  module.def("subtract_checked", checked(true));
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
