// Matrix products modulo m_i < 2^64. Tiles are packed, rows of the first and columns of the second matrix, so
// that the inner loop runs over consecutive words of both.
#include "wide_matmul.hpp"

#include <algorithm>
#include <vector>

#include "bindings.hpp"
#include "rns/wide_sum.cuh"

namespace rns {

namespace {

using Matrices = nb::ndarray<const u64, nb::ndim<4>, nb::device::cpu>;
using MutableMatrices = Written<u64, nb::ndim<4>, nb::c_contig>;

// Terms and columns of a tile, which stays in the second-level cache.
constexpr i64 kDepth = 256;
constexpr i64 kWidth = 32;
static_assert(kDepth * kWidth <= kProductDepth * kProductWidth, "the panel holds a tile");

// Adds a product to a sum that stays in registers.
RNS_INLINE void add_to(WideSum& sum, u64 a, u64 b) {
#if defined(__x86_64__) && defined(__GNUC__)
  // Three instructions, where compilers make more of WideSum::add.
  const u128 product = static_cast<u128>(a) * b;
  u64 low = static_cast<u64>(sum.low), middle = static_cast<u64>(sum.low >> 64);
  asm("addq %3, %0\n\tadcq %4, %1\n\tadcq $0, %2"
      : "+&r"(low), "+&r"(middle), "+&r"(sum.high)
      : "r"(static_cast<u64>(product)), "r"(static_cast<u64>(product >> 64))
      : "cc");
  sum.low = static_cast<u128>(middle) << 64 | low;
#else
  sum.add(a, b);
#endif
}

// A sum of products that is kept in two words, kTogether of them in one of 128 bits.
template <i64 kTogether>
RNS_INLINE WideSum folded(const u64* a, const u64* b, i64 depth) {
  u128 low = 0, high = 0;
  for (i64 k = 0; k < depth; k += kTogether) {
    u128 sum = 0;
    for (i64 t = k; t < k + kTogether; ++t) sum += static_cast<u128>(a[t]) * b[t];
    low += static_cast<u64>(sum);
    high += static_cast<u64>(sum >> 64);
  }
  high += static_cast<u64>(low >> 64);
  return {high << 64 | static_cast<u64>(low), static_cast<u64>(high >> 64)};
}

// Products of a row of kDepth words and a column, modulo p < 2^62, p < 2^63 and any p. `depth` is a multiple
// of kUnrolled.
constexpr i64 kUnrolled = 16;

RNS_VECTORISED void dot_of_short(const u64* a, const u64* b, i64 depth, WideSum& sum) {
  sum = folded<kUnrolled>(a, b, depth);
}

RNS_VECTORISED void dot_of_long(const u64* a, const u64* b, i64 depth, WideSum& sum) {
  sum = folded<4>(a, b, depth);
}

RNS_VECTORISED void dot_of_any(const u64* a, const u64* b, i64 depth, WideSum& sum) {
  WideSum even, odd;
  for (i64 k = 0; k < depth; k += 2) {
    add_to(even, a[k], b[k]);
    add_to(odd, a[k + 1], b[k + 1]);
  }
  sum = even;
  sum.add(odd);
}

auto dot_for(WideModulus m) {
  return m.last >> 62 == 0 ? dot_of_short : m.last >> 63 == 0 ? dot_of_long : dot_of_any;
}

// Copies `count` words that lie `step` apart, and adds zeros up to `length`.
void pack(const u64* from, i64 step, i64 count, i64 length, u64* to) {
  for (i64 k = 0; k < count; ++k) to[k] = from[k * step];
  std::fill_n(to + count, length - count, u64{0});
}

}  // namespace

void add_product(WideView a, WideView b, Shape shape, WideModulus m, u64* panel, u64* out) {
  if (is_for_doubles(shape)) {
    add_product_by_doubles(a, b, shape, m, panel, out);
    return;
  }
  u64 packed[kDepth];
  const auto dot = dot_for(m);
  for (i64 k = 0; k < shape.terms; k += kDepth) {
    const i64 terms = std::min(kDepth, shape.terms - k);
    const i64 depth = (terms + kUnrolled - 1) / kUnrolled * kUnrolled;
    for (i64 j = 0; j < shape.columns; j += kWidth) {
      const i64 width = std::min(kWidth, shape.columns - j);
      for (i64 c = 0; c < width; ++c) pack(b.at(k, j + c), b.row_step, terms, depth, panel + c * kDepth);
      for (i64 i = 0; i < shape.rows; ++i) {
        const u64* row = a.at(i, k);
        if (a.column_step != 1 || terms != depth) {
          pack(row, a.column_step, terms, depth, packed);
          row = packed;
        }
        u64* result = out + i * shape.columns + j;
        for (i64 c = 0; c < width; ++c) {
          WideSum sum;
          dot(row, panel + c * kDepth, depth, sum);
          result[c] = mod_add(result[c], sum.reduce(m), m.last);
        }
      }
    }
  }
}

u64 dot_product(const u64* a, const u64* b, i64 terms, WideModulus m) {
  const i64 whole = terms / kUnrolled * kUnrolled;
  WideSum sum;
  if (whole > 0) dot_for(m)(a, b, whole, sum);
  for (i64 k = whole; k < terms; ++k) add_to(sum, a[k], b[k]);
  return sum.reduce(m);
}

void bind_wide_matmul(nb::module_& module) {
  module.def("wide_matmul", [](const Matrices& a, const Matrices& b, const Table64& table,
                               MutableMatrices out) {
    const i64 n = static_cast<i64>(out.shape(0)), count = static_cast<i64>(out.shape(1));
    const WideModulus* moduli = wide_moduli(table, n);
    require(a.shape(0) == out.shape(0) && b.shape(0) == out.shape(0) && a.shape(1) == out.shape(1) &&
                b.shape(1) == out.shape(1),
            "operands and result must have the same number of rows and of matrices");
    require(a.shape(2) == out.shape(2) && b.shape(3) == out.shape(3) && a.shape(3) == b.shape(2),
            "shapes of a matrix product do not match");
    nb::gil_scoped_release release;
    const Shape shape{static_cast<i64>(out.shape(2)), static_cast<i64>(a.shape(3)),
                      static_cast<i64>(out.shape(3))};
    std::fill_n(out.data(), out.size(), u64{0});
    std::vector<u64> panel(product_space(WideView{}, shape));
    for (i64 t = 0; t < n * count; ++t) {
      const i64 i = t / count, k = t % count;
      const WideView left{a.data() + i * a.stride(0) + k * a.stride(1), a.stride(2), a.stride(3)};
      const WideView right{b.data() + i * b.stride(0) + k * b.stride(1), b.stride(2), b.stride(3)};
      add_product(left, right, shape, moduli[i], panel.data(), out.data() + t * shape.rows * shape.columns);
    }
  });
}

}  // namespace rns
