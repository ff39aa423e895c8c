#include "keys.hpp"

#include <algorithm>

#include "rns/evaluate.cuh"

namespace rns {

namespace {

// Rows are taken by four so that the running sums are loaded and stored once for four residues.
RNS_VECTORISED void accumulate_four_rows(const u32* x0, i64 stride, const u64* c, i64 width,
                                         u64* __restrict__ low, u32* __restrict__ high) {
  const u32* x1 = x0 + stride;
  const u32* x2 = x1 + stride;
  const u32* x3 = x2 + stride;
  const u64 c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3];
  for (i64 j = 0; j < width; ++j) {
    u64 l = low[j];
    u32 h = high[j];
    key_accumulate(l, h, x0[j], c0);
    key_accumulate(l, h, x1[j], c1);
    key_accumulate(l, h, x2[j], c2);
    key_accumulate(l, h, x3[j], c3);
    low[j] = l;
    high[j] = h;
  }
}

RNS_VECTORISED void accumulate_row(const u32* x, u64 c, i64 width, u64* __restrict__ low,
                                   u32* __restrict__ high) {
  for (i64 j = 0; j < width; ++j) key_accumulate(low[j], high[j], x[j], c);
}

RNS_VECTORISED void join_lanes(i64 width, u64* low, const u32* high) {
  for (i64 j = 0; j < width; ++j) low[j] = key_of(low[j], high[j]);
}

}  // namespace

RNS_VECTORISED u64 sum_row(const u32* x, i64 width) {
  u64 total = 0;
  for (i64 j = 0; j < width; ++j) total += x[j];
  return total;
}

void evaluate_keys(const Residues& residues, const u64* c, u64 start, i64 first, i64 width, u64* keys,
                   u64* row_sums) {
  alignas(64) u32 high[kTile] = {};
  std::fill_n(keys, width, start);
  i64 i = 0;
  while (i < residues.moduli) {
    const i64 rows = residues.moduli - i >= 4 ? 4 : 1;
    const u32* x = residues.row(i) + first;
    if (rows == 4) {
      accumulate_four_rows(x, residues.stride, c + i, width, keys, high);
    } else {
      accumulate_row(x, c[i], width, keys, high);
    }
    for (const i64 end = i + rows; i < end; ++i) {
      if (row_sums != nullptr) row_sums[i] += sum_row(residues.row(i) + first, width);
    }
  }
  join_lanes(width, keys, high);
}

}  // namespace rns
