// Matrices modulo m_i split into matrices of 8-bit residues modulo small moduli, and sums of products of
// these joined to residues modulo m_i.
#include "rns/int8_product.cuh"

#include <cstdlib>

#include "bindings.hpp"

namespace rns {

namespace {

using Matrices = nb::ndarray<const u32, nb::ndim<4>, nb::device::cpu>;
using MutableMatrices = Written<u32, nb::ndim<4>, nb::c_contig>;
using Parts = Written<i8, nb::ndim<5>, nb::c_contig>;
using Sums = nb::ndarray<const i32, nb::ndim<5>, nb::c_contig, nb::device::cpu>;
using Small = nb::ndarray<const i32, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class Array>
i64 length_of(const Array& array, i64 axis) {
  return static_cast<i64>(array.shape(axis));
}

constexpr i64 kShortSum = kShortTerms * 128 * 128;

struct Tables {
  const SmallModulus* small;
  const Recombination* moduli;
};

// The tables of n moduli, for an array of (n, batch, count of small moduli, rows, columns).
template <class Array>
Tables checked(const Small& small, const Table32& weights, const Array& array) {
  require(small.shape(1) == sizeof(SmallModulus) / sizeof(i32) && small.shape(0) == array.shape(2) &&
              small.shape(0) <= kSmallModuli,
          "one matrix for each small modulus is needed");
  require(weights.shape(1) == sizeof(Recombination) / sizeof(u32) && weights.shape(0) == array.shape(0),
          "one modulus for each row is needed");
  return {reinterpret_cast<const SmallModulus*>(small.data()),
          reinterpret_cast<const Recombination*>(weights.data())};
}

void split(const Matrices& x, Tables tables, Parts& out) {
  const i64 batch = length_of(out, 1), count = length_of(out, 2);
  const i64 rows = length_of(out, 3), columns = length_of(out, 4);
  for (i64 k = 0; k < length_of(out, 0) * batch * count; ++k) {
    const i64 i = k / (batch * count), b = k / count % batch;
    const u32 last = tables.moduli[i].modulus.last;
    const SmallModulus& q = tables.small[k % count];
    for (i64 row = 0; row < rows; ++row) {
      i8* part = out.data() + (k * rows + row) * columns;
      const u32* from = x.data() + i * x.stride(0) + b * x.stride(1) + row * x.stride(2);
      for (i64 column = 0; column < columns; ++column) {
        const bool inside = row < length_of(x, 2) && column < length_of(x, 3);
        const i32 number = inside ? centred(from[column * x.stride(3)], last) : 0;
        const u32 found =
            q.parts[2] == 0 ? NumberParts<false>(number).residue(q) : NumberParts<true>(number).residue(q);
        part[column] = static_cast<i8>(found);
      }
    }
  }
}

// Of the number whose sums are `stride` apart. Short ones go as on GPUs those of few terms.
SmallResidues joined(const i32* sums, i64 stride, i64 count, const SmallModulus* small,
                     const Recombination& m) {
  bool are_short = true;
  for (i64 j = 0; j < count; ++j) are_short &= std::abs(static_cast<i64>(sums[j * stride])) <= kShortSum;
  SmallResidues result = {m.start};
  for (i64 j = 0; j < count; ++j) {
    const SmallModulus& q = small[j];
    const i32 sum = sums[j * stride];
    result.add(are_short ? shifted_residue(q.start + sum, q) : shifted_long_residue(sum, q), m.weights[j]);
  }
  return result;
}

void join(const Sums& sums, Tables tables, MutableMatrices& out) {
  const i64 batch = length_of(out, 1), rows = length_of(out, 2), columns = length_of(out, 3);
  const i64 count = length_of(sums, 2), size = length_of(sums, 3) * length_of(sums, 4);
  for (i64 k = 0; k < length_of(out, 0) * batch * rows * columns; ++k) {
    const i64 t = k / (rows * columns), row = k / columns % rows, column = k % columns;
    const Recombination& m = tables.moduli[t / batch];
    const i32* from = sums.data() + t * count * size + row * length_of(sums, 4) + column;
    out.data()[k] = joined(from, size, count, tables.small, m).reduce(m.modulus, m.product);
  }
}

}  // namespace

void bind_int8_product(nb::module_& module) {
  module.def("int8_split", [](const Matrices& x, const Small& small, const Table32& weights, Parts out) {
    const Tables tables = checked(small, weights, out);
    require(x.shape(0) == out.shape(0) && x.shape(1) == out.shape(1) && x.shape(2) <= out.shape(3) &&
                x.shape(3) <= out.shape(4),
            "the parts do not hold the matrices");
    nb::gil_scoped_release release;
    split(x, tables, out);
  });
  module.def("int8_join",
             [](const Sums& sums, const Small& small, const Table32& weights, MutableMatrices out) {
               const Tables tables = checked(small, weights, sums);
               require(out.shape(0) == sums.shape(0) && out.shape(1) == sums.shape(1) &&
                           out.shape(2) <= sums.shape(3) && out.shape(3) <= sums.shape(4),
                       "the sums do not hold the matrices");
               nb::gil_scoped_release release;
               join(sums, tables, out);
             });
}

}  // namespace rns
