// Matrix products modulo m_i. Tiles of both matrices are packed, whatever their layout, so that the inner
// loops run over consecutive words and never meet an edge: what a tile lacks is zeros.
#include "matmul.hpp"

#include <algorithm>
#include <vector>

#include "bindings.hpp"

namespace rns {

namespace {

using Matrices = nb::ndarray<const u32, nb::ndim<4>, nb::device::cpu>;
using MutableMatrices = Written<u32, nb::ndim<4>, nb::c_contig>;

// Columns, rows and terms of a tile: the tile of the second matrix stays in the second-level cache, the sums
// in the first. Two rows and four terms at a time are the fastest of those tried.
constexpr i64 kWidth = kProductWidth;
constexpr i64 kRows = 2;
constexpr i64 kUnrolled = 4;
constexpr i64 kLanes = 16;  // columns of the narrowest tile
constexpr i64 kDepth = kProductDepth;

// With fewer columns than this, each number is a sum along a row and a column.
constexpr i64 kFewColumns = 8;

View matrix_at(const Matrices& array, i64 i, i64 b) {
  return {array.data() + i * array.stride(0) + b * array.stride(1), array.stride(2), array.stride(3)};
}

// a: kRows rows of kDepth words, b: `depth` rows of kWidth words, of which the first `width` are meant. Adds
// the products to the sums, kRows rows of kWidth. `depth` is a multiple of kUnrolled, `width` of kLanes.
RNS_VECTORISED void add_narrow(const u32* a, const u32* b, i64 depth, i64 width, u64* __restrict__ sum) {
  u64 *sum0 = sum, *sum1 = sum + kWidth;
  for (i64 k = 0; k < depth; k += kUnrolled) {
    const u32 *x = a + k, *y = x + kDepth;
    const u32 x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
    const u32 y0 = y[0], y1 = y[1], y2 = y[2], y3 = y[3];
    const u32* row = b + k * kWidth;
    for (i64 first = 0; first < width; first += kLanes) {
      for (i64 j = first; j < first + kLanes; ++j) {
        const u64 b0 = row[j], b1 = row[kWidth + j], b2 = row[2 * kWidth + j], b3 = row[3 * kWidth + j];
        sum0[j] += x0 * b0 + x1 * b1 + x2 * b2 + x3 * b3;
        sum1[j] += y0 * b0 + y1 * b1 + y2 * b2 + y3 * b3;
      }
    }
  }
}

// The same modulo p < 2^31, where `most` is 2^32 p: sums stay below it, for two products are less than it
// too.
RNS_VECTORISED void add_bounded(const u32* a, const u32* b, i64 depth, i64 width, u64 most,
                                u64* __restrict__ sum) {
  u64 *sum0 = sum, *sum1 = sum + kWidth;
  for (i64 k = 0; k < depth; k += kUnrolled) {
    const u32 *x = a + k, *y = x + kDepth;
    const u32 x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
    const u32 y0 = y[0], y1 = y[1], y2 = y[2], y3 = y[3];
    const u32* row = b + k * kWidth;
    for (i64 first = 0; first < width; first += kLanes) {
      for (i64 j = first; j < first + kLanes; ++j) {
        const u64 b0 = row[j], b1 = row[kWidth + j], b2 = row[2 * kWidth + j], b3 = row[3 * kWidth + j];
        u64 s = sum0[j] + x0 * b0 + x1 * b1, t = sum1[j] + y0 * b0 + y1 * b1;
        s = std::min(s, s - most);
        t = std::min(t, t - most);
        s += x2 * b2 + x3 * b3;
        t += y2 * b2 + y3 * b3;
        sum0[j] = std::min(s, s - most);
        sum1[j] = std::min(t, t - most);
      }
    }
  }
}

// The same modulo any p, with the sums of the products' upper halves besides.
RNS_VECTORISED void add_wide(const u32* a, const u32* b, i64 depth, i64 width, u64* __restrict__ sum,
                             u64* __restrict__ upper) {
  u64 *sum0 = sum, *sum1 = sum + kWidth, *upper0 = upper, *upper1 = upper + kWidth;
  for (i64 k = 0; k < depth; k += kUnrolled) {
    const u32 *x = a + k, *y = x + kDepth;
    const u32 x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
    const u32 y0 = y[0], y1 = y[1], y2 = y[2], y3 = y[3];
    const u32* row = b + k * kWidth;
    for (i64 first = 0; first < width; first += kLanes) {
      for (i64 j = first; j < first + kLanes; ++j) {
        const u64 b0 = row[j], b1 = row[kWidth + j], b2 = row[2 * kWidth + j], b3 = row[3 * kWidth + j];
        const u64 p0 = x0 * b0, p1 = x1 * b1, p2 = x2 * b2, p3 = x3 * b3;
        const u64 q0 = y0 * b0, q1 = y1 * b1, q2 = y2 * b2, q3 = y3 * b3;
        sum0[j] += p0 + p1 + p2 + p3;
        sum1[j] += q0 + q1 + q2 + q3;
        upper0[j] += (p0 >> 32) + (p1 >> 32) + (p2 >> 32) + (p3 >> 32);
        upper1[j] += (q0 >> 32) + (q1 >> 32) + (q2 >> 32) + (q3 >> 32);
      }
    }
  }
}

// How products are added up: the sums are words, or are kept below 2^32 m, or have upper halves besides.
enum class Sums { kNarrow, kBounded, kWide };

Sums sums_of(u32 last) {
  if (products_fit_word(last)) return Sums::kNarrow;
  return last < 0x7fffffffu ? Sums::kBounded : Sums::kWide;
}

// Adds the sums, reduced, to `width` numbers of the result's row.
RNS_VECTORISED void reduce_narrow(const u64* sum, Modulus m, i64 width, u32* __restrict__ out) {
  for (i64 j = 0; j < width; ++j) out[j] = mod_add(out[j], mod_reduce_word(sum[j], m), m.last);
}

RNS_VECTORISED void reduce_bounded(const u64* sum, Modulus m, i64 width, u32* __restrict__ out) {
  for (i64 j = 0; j < width; ++j) out[j] = mod_add(out[j], mod_reduce(sum[j], m), m.last);
}

RNS_VECTORISED void reduce_wide(const u64* sum, const u64* upper, Modulus m, i64 width,
                                u32* __restrict__ out) {
  for (i64 j = 0; j < width; ++j) {
    out[j] = mod_add(out[j], ProductSum{sum[j], upper[j]}.reduce(m), m.last);
  }
}

// Sum of the products of two vectors of at most kDepth words.
RNS_VECTORISED void dot_narrow(const u32* a, const u32* b, i64 depth, NarrowSum& result) {
  NarrowSum s;
  for (i64 k = 0; k < depth; ++k) s.add(a[k], b[k]);
  result = s;
}

RNS_VECTORISED void dot_wide(const u32* a, const u32* b, i64 depth, ProductSum& result) {
  ProductSum s;
  for (i64 k = 0; k < depth; ++k) s.add(a[k], b[k]);
  result = s;
}

u32 dot(const u32* a, const u32* b, i64 depth, Modulus m, bool narrow) {
  if (narrow) {
    NarrowSum s;
    dot_narrow(a, b, depth, s);
    return s.reduce(m);
  }
  ProductSum s;
  dot_wide(a, b, depth, s);
  return s.reduce(m);
}

// Copies `count` words that lie `step` apart, and adds zeros up to `length`.
void pack(const u32* from, i64 step, i64 count, i64 length, u32* to) {
  if (step == 1) {
    std::copy_n(from, count, to);
  } else {
    for (i64 k = 0; k < count; ++k) to[k] = from[k * step];
  }
  std::fill_n(to + count, length - count, 0u);
}

// Many columns. `panel` holds a tile of b, kDepth rows of kWidth words.
void multiply_tiles(View a, View b, Shape shape, Modulus m, u32* panel, u32* out) {
  alignas(64) u32 rows[kRows * kDepth];
  alignas(64) u64 sum[kRows * kWidth], upper[kRows * kWidth];
  const Sums sums = sums_of(m.last);
  const u64 most = (static_cast<u64>(m.last) + 1) << 32;
  for (i64 j = 0; j < shape.columns; j += kWidth) {
    const i64 width = std::min(kWidth, shape.columns - j);
    const i64 padded = (width + kLanes - 1) / kLanes * kLanes;
    for (i64 k = 0; k < shape.terms; k += kDepth) {
      const i64 terms = std::min(kDepth, shape.terms - k);
      const i64 depth = (terms + kUnrolled - 1) / kUnrolled * kUnrolled;
      for (i64 t = 0; t < depth; ++t) {
        pack(t < terms ? b.at(k + t, j) : nullptr, b.column_step, t < terms ? width : 0, padded,
             panel + t * kWidth);
      }
      for (i64 i = 0; i < shape.rows; i += kRows) {
        for (i64 r = 0; r < kRows; ++r) {
          const bool inside = i + r < shape.rows;
          pack(inside ? a.at(i + r, k) : nullptr, a.column_step, inside ? terms : 0, depth,
               rows + r * kDepth);
        }
        for (i64 r = 0; r < kRows; ++r) std::fill_n(sum + r * kWidth, padded, 0);
        const i64 count = std::min(kRows, shape.rows - i);
        u32* result = out + i * shape.columns + j;
        if (sums == Sums::kNarrow) {
          add_narrow(rows, panel, depth, padded, sum);
          for (i64 r = 0; r < count; ++r)
            reduce_narrow(sum + r * kWidth, m, width, result + r * shape.columns);
        } else if (sums == Sums::kBounded) {
          add_bounded(rows, panel, depth, padded, most, sum);
          for (i64 r = 0; r < count; ++r)
            reduce_bounded(sum + r * kWidth, m, width, result + r * shape.columns);
        } else {
          for (i64 r = 0; r < kRows; ++r) std::fill_n(upper + r * kWidth, padded, 0);
          add_wide(rows, panel, depth, padded, sum, upper);
          for (i64 r = 0; r < count; ++r) {
            reduce_wide(sum + r * kWidth, upper + r * kWidth, m, width, result + r * shape.columns);
          }
        }
      }
    }
  }
}

// Few columns. `panel` holds a part of each, kDepth words long.
void multiply_dots(View a, View b, Shape shape, Modulus m, u32* panel, u32* out) {
  alignas(64) u32 row[kDepth];
  const bool narrow = products_fit_word(m.last);
  for (i64 k = 0; k < shape.terms; k += kDepth) {
    const i64 terms = std::min(kDepth, shape.terms - k);
    for (i64 j = 0; j < shape.columns; ++j) pack(b.at(k, j), b.row_step, terms, terms, panel + j * kDepth);
    for (i64 i = 0; i < shape.rows; ++i) {
      const u32* x = a.at(i, k);
      if (a.column_step != 1) {
        pack(x, a.column_step, terms, terms, row);
        x = row;
      }
      u32* result = out + i * shape.columns;
      for (i64 j = 0; j < shape.columns; ++j) {
        result[j] = mod_add(result[j], dot(x, panel + j * kDepth, terms, m, narrow), m.last);
      }
    }
  }
}

}  // namespace

void add_product(View a, View b, Shape shape, Modulus m, u32* panel, u32* out) {
  const auto add = shape.columns < kFewColumns ? multiply_dots : multiply_tiles;
  add(a, b, shape, m, panel, out);
}

u32 dot_product(const u32* a, const u32* b, i64 terms, Modulus m) {
  const bool narrow = products_fit_word(m.last);
  u32 sum = 0;
  for (i64 k = 0; k < terms; k += kDepth) {
    sum = mod_add(sum, dot(a + k, b + k, std::min(kDepth, terms - k), m, narrow), m.last);
  }
  return sum;
}

namespace {

void matmul(const Matrices& a, const Matrices& b, const Modulus* moduli, const MutableMatrices& out) {
  const Shape shape{static_cast<i64>(out.shape(2)), static_cast<i64>(a.shape(3)),
                    static_cast<i64>(out.shape(3))};
  const i64 n = static_cast<i64>(out.shape(0)), count = static_cast<i64>(out.shape(1));
  std::fill_n(out.data(), out.size(), 0u);
  if (shape.rows == 0 || shape.columns == 0) return;
  std::vector<u32> panel(kDepth * kWidth);
  for (i64 t = 0; t < n * count; ++t) {
    u32* result = out.data() + t * shape.rows * shape.columns;
    const i64 i = t / count, k = t % count;
    add_product(matrix_at(a, i, k), matrix_at(b, i, k), shape, moduli[i], panel.data(), result);
  }
}

}  // namespace

void bind_matmul(nb::module_& module) {
  module.def("matmul", [](const Matrices& a, const Matrices& b, const Table32& moduli, MutableMatrices out) {
    require(moduli.shape(0) == out.shape(0) && moduli.shape(1) == 4, "one modulus for each row is needed");
    require(a.shape(0) == out.shape(0) && b.shape(0) == out.shape(0) && a.shape(1) == out.shape(1) &&
                b.shape(1) == out.shape(1),
            "operands and result must have the same number of rows and of matrices");
    require(a.shape(2) == out.shape(2) && b.shape(3) == out.shape(3) && a.shape(3) == b.shape(2),
            "shapes of a matrix product do not match");
    nb::gil_scoped_release release;
    matmul(a, b, reinterpret_cast<const Modulus*>(moduli.data()), out);
  });
}

}  // namespace rns
