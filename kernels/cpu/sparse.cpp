// Products of sparse matrices with blocks of vectors modulo each m_i. A row's sums stay in registers while
// its entries are read once.
#include "rns/sparse.cuh"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "bindings.hpp"

namespace rns {

namespace {

using Entries = nb::ndarray<const i64, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Columns = nb::ndarray<const i32, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using SignedValues = nb::ndarray<const i32, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class Word>
using Table = nb::ndarray<const Word, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class Word>
using Blocks = nb::ndarray<const Word, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
template <class Word>
using MutableBlocks = Written<Word, nb::ndim<3>, nb::c_contig>;

template <class Word>
using ModulusOf = std::conditional_t<std::is_same_v<Word, u32>, Modulus, WideModulus>;

// Vectors whose sums are kept at a time, two registers of 8 words of 64 bits: of signed entries and residues
// of 32 bits for 16 vectors, of all others, which take two sums or more, for 8. Fewer vectors, if there are
// more than one, get others beside them to make 8.
constexpr i64 kWidth = 8;

// Whether entries and residues are those of whose products one register takes the sums.
template <class Value, class Word>
constexpr bool kIsShort = std::is_same_v<Value, i32> && std::is_same_v<Word, u32>;

// Entries by which rows of the vectors are fetched ahead.
constexpr i64 kAhead = 16;

// The moduli of vectors side by side, in words of one kind.
template <class Word>
struct Lanes {
  Word last[2 * kWidth], divisor[2 * kWidth], reciprocal[2 * kWidth], shift[2 * kWidth];

  void set(i64 j, ModulusOf<Word> m) {
    last[j] = m.last;
    divisor[j] = m.divisor;
    reciprocal[j] = m.reciprocal;
    shift[j] = m.shift;
  }
  inline __attribute__((always_inline)) ModulusOf<Word> at(i64 j) const {
    return {last[j], divisor[j], reciprocal[j], shift[j]};
  }
};

// Vectors of one plane, `width` in each row, and those from `first` on that are multiplied; so many of the
// results are kept.
template <class Word>
struct Vectors {
  const Word* x;
  i64 width;
  Word* out;
  i64 out_width;
  i64 kept;
};

// A matrix by its rows: row r has the entries from starts[r] to starts[r + 1].
template <class Value>
struct Matrix {
  const i64* starts;
  const i32* columns;
  const Value* values;
  i64 rows;
  i64 entries;
};

template <i64 kLanes>
inline __attribute__((always_inline)) void sum_row(const Matrix<i32>& a, const Vectors<u32>& v, i64 begin,
                                                   i64 end, const Lanes<u32>& m, u32* out) {
  // Residues less 2^31 are signed words, for products of 32 x 32 bits; what that takes off is added again.
  i64 sum[kLanes] = {}, weight = 0;
  for (i64 k = begin; k < end; ++k) {
    const i32 value = a.values[k];
    const u32* row = v.x + a.columns[k] * v.width;
    if constexpr (kLanes == 1) {
      sum[0] += static_cast<i64>(value) * static_cast<i64>(row[0]);
    } else {
      __builtin_prefetch(v.x + a.columns[std::min(k + kAhead, a.entries - 1)] * v.width);
      weight += value;
      for (i64 j = 0; j < kLanes; ++j) {
        sum[j] += static_cast<i64>(value) * static_cast<i32>(row[j] ^ 0x80000000u);
      }
    }
  }
  for (i64 j = 0; j < kLanes; ++j) out[j] = mod_reduce_signed(sum[j] + weight * (i64{1} << 31), m.at(j));
}

template <i64 kLanes>
inline __attribute__((always_inline)) void sum_row(const Matrix<u32>& a, const Vectors<u32>& v, i64 begin,
                                                   i64 end, const Lanes<u32>& m, u32* out) {
  u64 low[kLanes] = {}, high[kLanes] = {};
  for (i64 k = begin; k < end; ++k) {
    const u32 value = a.values[k];
    const u32* row = v.x + a.columns[k] * v.width;
    if constexpr (kLanes > 1) {
      __builtin_prefetch(v.x + a.columns[std::min(k + kAhead, a.entries - 1)] * v.width);
    }
    for (i64 j = 0; j < kLanes; ++j) {
      const u64 product = static_cast<u64>(value) * row[j];
      low[j] += product;
      high[j] += product >> 32;
    }
  }
  for (i64 j = 0; j < kLanes; ++j) out[j] = ProductSum{low[j], high[j]}.reduce(m.at(j));
}

template <i64 kLanes, class Value>
inline __attribute__((always_inline)) void sum_row(const Matrix<Value>& a, const Vectors<u64>& v, i64 begin,
                                                   i64 end, const Lanes<u64>& m, u64* out) {
  std::conditional_t<std::is_same_v<Value, i32>, WideSignedSum, WideSum> sum[kLanes];
  for (i64 k = begin; k < end; ++k) {
    const Value value = a.values[k];
    const u64* row = v.x + a.columns[k] * v.width;
    if constexpr (kLanes > 1) {
      __builtin_prefetch(v.x + a.columns[std::min(k + kAhead, a.entries - 1)] * v.width);
    }
    for (i64 j = 0; j < kLanes; ++j) sum[j].add(value, row[j]);
  }
  for (i64 j = 0; j < kLanes; ++j) out[j] = sum[j].reduce(m.at(j));
}

template <i64 kLanes, class Value, class Word>
inline __attribute__((always_inline)) void multiply_lanes(const Matrix<Value>& a, const Vectors<Word>& v,
                                                          const Lanes<Word>& m) {
  for (i64 r = 0; r < a.rows; ++r) {
    Word result[kLanes];
    sum_row<kLanes>(a, v, a.starts[r], a.starts[r + 1], m, result);
    for (i64 j = 0; j < std::min(kLanes, v.kept); ++j) v.out[r * v.out_width + j] = result[j];
  }
}

// GCC makes no versions of templates for several instruction sets.
#define MULTIPLY(name, lanes, Value, Word)                                                         \
  RNS_VECTORISED void name(const Matrix<Value>& a, const Vectors<Word>& v, const Lanes<Word>& m) { \
    multiply_lanes<lanes>(a, v, m);                                                                \
  }
MULTIPLY(multiply_one, 1, i32, u32)
MULTIPLY(multiply_one, 1, u32, u32)
MULTIPLY(multiply_one, 1, i32, u64)
MULTIPLY(multiply_one, 1, u64, u64)
MULTIPLY(multiply_some, kWidth, i32, u32)
MULTIPLY(multiply_some, kWidth, u32, u32)
MULTIPLY(multiply_some, kWidth, i32, u64)
MULTIPLY(multiply_some, kWidth, u64, u64)
MULTIPLY(multiply_many, 2 * kWidth, i32, u32)
#undef MULTIPLY

// All vectors of a plane, `width` of them with `terms` words each; modulus(j) is that of vector j.
template <class Value, class Word, class Moduli>
void multiply(const Matrix<Value>& a, const Word* x, i64 terms, i64 width, Word* out, Moduli modulus) {
  Lanes<Word> lanes;
  std::vector<Word> padded;
  for (i64 first = 0, taken; first < width; first += taken) {
    const i64 rest = width - first;
    taken = kIsShort<Value, Word> && rest >= 2 * kWidth ? 2 * kWidth : std::min(rest, kWidth);
    for (i64 j = 0; j < taken; ++j) lanes.set(j, modulus(first + j));
    Vectors<Word> v{x + first, width, out + first, width, taken};
    if (taken == 1) {
      multiply_one(a, v, lanes);
      continue;
    }
    if (taken < kWidth) {
      padded.assign(terms * kWidth, 0);
      for (i64 t = 0; t < terms; ++t) std::copy_n(v.x + t * width, taken, padded.data() + t * kWidth);
      for (i64 j = taken; j < kWidth; ++j) lanes.set(j, modulus(first));
      v.x = padded.data();
      v.width = kWidth;
    }
    if constexpr (kIsShort<Value, Word>) {
      if (taken > kWidth) {
        multiply_many(a, v, lanes);
        continue;
      }
    }
    multiply_some(a, v, lanes);
  }
}

// Products of planes of vectors; a plane's vectors are modulo its own m, or, of the only plane, modulo one m
// after the other and again from the first.
template <class Value, class Word>
void multiply_planes(Matrix<Value> a, i64 plane_entries, const Blocks<Word>& x, const Table<Word>& table,
                     const MutableBlocks<Word>& out) {
  const i64 planes = static_cast<i64>(out.shape(0)), width = static_cast<i64>(out.shape(2));
  const i64 terms = static_cast<i64>(x.shape(1)), count = static_cast<i64>(table.shape(0));
  const auto* moduli = reinterpret_cast<const ModulusOf<Word>*>(table.data());
  for (i64 i = 0; i < planes; ++i, a.values += plane_entries) {
    multiply(a, x.data() + i * terms * width, terms, width, out.data() + i * a.rows * width,
             [&](i64 j) { return moduli[planes == 1 ? j % count : i]; });
  }
}

template <class Word>
void check(const Entries& starts, const Columns& columns, i64 entries, const Blocks<Word>& x,
           const Table<Word>& moduli, const MutableBlocks<Word>& out) {
  require(starts.shape(0) == out.shape(1) + 1, "a start for each row, and the end, are needed");
  require(static_cast<i64>(columns.shape(0)) == entries, "a column for each entry is needed");
  require(moduli.shape(1) == 4 && (moduli.shape(0) == out.shape(0) || out.shape(0) == 1),
          "one modulus for each plane is needed");
  require(x.shape(0) == out.shape(0) && x.shape(2) == out.shape(2),
          "operand and result must have the same planes and vectors");
}

template <class Word>
void bind(nb::module_& module) {
  module.def("sparse_matmul", [](const Entries& starts, const Columns& columns, const SignedValues& values,
                                 const Blocks<Word>& x, const Table<Word>& moduli, MutableBlocks<Word> out) {
    const i64 entries = static_cast<i64>(values.shape(0)), rows = static_cast<i64>(out.shape(1));
    check(starts, columns, entries, x, moduli, out);
    nb::gil_scoped_release release;
    multiply_planes(Matrix<i32>{starts.data(), columns.data(), values.data(), rows, entries}, 0, x, moduli,
                    out);
  });
  module.def("sparse_matmul", [](const Entries& starts, const Columns& columns, const Table<Word>& values,
                                 const Blocks<Word>& x, const Table<Word>& moduli, MutableBlocks<Word> out) {
    const i64 entries = static_cast<i64>(values.shape(1)), rows = static_cast<i64>(out.shape(1));
    check(starts, columns, entries, x, moduli, out);
    require(values.shape(0) == out.shape(0) && moduli.shape(0) == out.shape(0),
            "values and a modulus for each plane are needed");
    nb::gil_scoped_release release;
    multiply_planes(Matrix<Word>{starts.data(), columns.data(), values.data(), rows, entries}, entries, x,
                    moduli, out);
  });
}

}  // namespace

void bind_sparse(nb::module_& module) {
  bind<u32>(module);
  bind<u64>(module);
}

}  // namespace rns
