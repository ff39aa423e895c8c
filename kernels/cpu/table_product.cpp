// The loops over a tile of terms.
#include "table_product.hpp"

#include <algorithm>

namespace rns {

namespace {

template <int kRows>
RNS_INLINE void accumulate_rows(const Row* rows, const u32* column, i64 stride, i64 width, SumRow& sums) {
  u32 c[kRows];
  for (int k = 0; k < kRows; ++k) c[k] = column[k * stride];
  for (i64 j = 0; j < width; ++j) {
    ProductSum sum = sums.at(j);
    for (int k = 0; k < kRows; ++k) sum.add(rows[k].x[j], c[k]);
    sums.low[j] = sum.low;
    sums.high[j] = sum.high;
  }
}

// One column of a table, times the rows. Rows are taken by four so that the running sums are loaded
// and stored once for four terms.
RNS_VECTORISED void sum_products(const Row* rows, i64 count, const u32* column, i64 stride, i64 width,
                                 SumRow& sums) {
  std::fill_n(sums.low, width, 0);
  std::fill_n(sums.high, width, 0);
  i64 r = 0;
  for (; r + 4 <= count; r += 4) accumulate_rows<4>(rows + r, column + r * stride, stride, width, sums);
  for (; r < count; ++r) accumulate_rows<1>(rows + r, column + r * stride, stride, width, sums);
}

}  // namespace

void Table::sum(const std::vector<Row>& terms, i64 result, i64 width, SumRow& sums) const {
  sum_products(terms.data(), rows, data + result, stride, width, sums);
}

}  // namespace rns
