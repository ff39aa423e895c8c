// The loops over a tile of terms, for each instruction set.
#include "table_product.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <utility>

#include "bindings.hpp"

#ifdef RNS_X86_LEVELS
#include <immintrin.h>
#endif

namespace rns {

namespace {

// A part of a table: `rows` rows of it, from the column of the first result on.
struct Columns {
  const u32* data;
  const float* estimates;
  i64 stride;
  i64 rows;
};

template <int kRows>
RNS_INLINE void accumulate_rows(const Row* terms, const u32* column, i64 stride, i64 width, SumRow& sums) {
  u32 c[kRows];
  for (int k = 0; k < kRows; ++k) c[k] = column[k * stride];
  for (i64 j = 0; j < width; ++j) {
    ProductSum sum = sums.at(j);
    for (int k = 0; k < kRows; ++k) sum.add(terms[k].x[j], c[k]);
    sums.low[j] = sum.low;
    sums.high[j] = sum.high;
  }
}

// Rows are taken by four so that the running sums are loaded and stored once for four terms.
RNS_VECTORISED void sum_portably(const Row* terms, const Columns& columns, i64 results, i64 width,
                                 SumRow* sums) {
  for (i64 k = 0; k < results; ++k) {
    const u32* column = columns.data + k;
    const i64 stride = columns.stride;
    std::fill_n(sums[k].low, width, 0);
    std::fill_n(sums[k].high, width, 0);
    i64 r = 0;
    for (; r + 4 <= columns.rows; r += 4)
      accumulate_rows<4>(terms + r, column + r * stride, stride, width, sums[k]);
    for (; r < columns.rows; ++r) accumulate_rows<1>(terms + r, column + r * stride, stride, width, sums[k]);
  }
}

// The vectors' way takes two instructions for the upper halves of products fewer. A sum is S = low + 2^64 w,
// where the products modulo 2^64 give low, and w is less than the number of terms: single precision is enough
// to find it. F, the sum of the products of the factors rounded to 24 bits, scaled by 2^-64, misses S 2^-64
// by less than t (t + 3) 2^-23 of t terms, whatever the direction in which it is rounded; and w is the
// integer next to F - low 2^-64. (An x that is halved first loses a bit, which is less than t 2^-31.)
constexpr i64 kEstimatedTerms = 1024;  // an error below 1/8
constexpr float kScale = 0x1p-64f;

#ifdef RNS_X86_LEVELS

template <int kSums>
RNS_AVX512 void sum_512(const Row* terms, const Columns& columns, i64 width, SumRow* sums) {
  for (i64 j = 0; j < width; j += 16) {
    __m512i low0[kSums], low1[kSums];  // of numbers 0 to 7, and 8 to 15
    __m512 estimate[kSums];
    for (int k = 0; k < kSums; ++k) {
      low0[k] = low1[k] = _mm512_setzero_si512();
      estimate[k] = _mm512_set1_ps(0.5f);
    }
    for (i64 r = 0; r < columns.rows; ++r) {
      const u32* x = terms[r].x + j;
      const u32* c = columns.data + r * columns.stride;
      const float* e = columns.estimates + r * columns.stride;
      const __m512i x0 = _mm512_cvtepu32_epi64(_mm256_load_si256(reinterpret_cast<const __m256i*>(x)));
      const __m512i x1 = _mm512_cvtepu32_epi64(_mm256_load_si256(reinterpret_cast<const __m256i*>(x + 8)));
      const __m512 rounded = _mm512_cvtepu32_ps(_mm512_load_si512(x));
      for (int k = 0; k < kSums; ++k) {
        const __m512i constant = _mm512_set1_epi32(static_cast<i32>(c[k]));
        low0[k] = _mm512_add_epi64(low0[k], _mm512_mul_epu32(x0, constant));
        low1[k] = _mm512_add_epi64(low1[k], _mm512_mul_epu32(x1, constant));
        estimate[k] = _mm512_fmadd_ps(rounded, _mm512_set1_ps(e[k]), estimate[k]);
      }
    }
    for (int k = 0; k < kSums; ++k) {
      const __m512 low = _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtepu64_ps(low0[k])),
                                            _mm512_cvtepu64_ps(low1[k]), 1);
      const __m512i w = _mm512_cvttps_epi32(_mm512_fnmadd_ps(low, _mm512_set1_ps(kScale), estimate[k]));
      const __m512i w0 = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(w));
      const __m512i w1 = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(w, 1));
      _mm512_store_si512(sums[k].low + j, low0[k]);
      _mm512_store_si512(sums[k].low + j + 8, low1[k]);
      _mm512_store_si512(sums[k].high + j,
                         _mm512_or_si512(_mm512_slli_epi64(w0, 32), _mm512_srli_epi64(low0[k], 32)));
      _mm512_store_si512(sums[k].high + j + 8,
                         _mm512_or_si512(_mm512_slli_epi64(w1, 32), _mm512_srli_epi64(low1[k], 32)));
    }
  }
}

#define RNS_LEVEL256 __attribute__((target("arch=x86-64-v3"), always_inline)) inline

// Halves of 8 numbers, rounded: there is no conversion of unsigned ones.
RNS_LEVEL256 __m256 rounded_halves(__m256i x) { return _mm256_cvtepi32_ps(_mm256_srli_epi32(x, 1)); }

RNS_LEVEL256 void store_sums(__m256i low, __m128i w, u64* low_out, u64* high_out) {
  const __m256i upper = _mm256_slli_epi64(_mm256_cvtepu32_epi64(w), 32);
  _mm256_store_si256(reinterpret_cast<__m256i*>(low_out), low);
  _mm256_store_si256(reinterpret_cast<__m256i*>(high_out),
                     _mm256_or_si256(upper, _mm256_srli_epi64(low, 32)));
}

template <int kSums>
__attribute__((target("arch=x86-64-v3"))) void sum_256(const Row* terms, const Columns& columns, i64 width,
                                                       SumRow* sums) {
  for (i64 j = 0; j < width; j += 8) {
    __m256i low0[kSums], low1[kSums];  // of numbers 0 to 3, and 4 to 7
    __m256 estimate[kSums];
    for (int k = 0; k < kSums; ++k) {
      low0[k] = low1[k] = _mm256_setzero_si256();
      estimate[k] = _mm256_set1_ps(0.5f);
    }
    for (i64 r = 0; r < columns.rows; ++r) {
      const __m128i* x = reinterpret_cast<const __m128i*>(terms[r].x + j);
      const u32* c = columns.data + r * columns.stride;
      const float* e = columns.estimates + r * columns.stride;
      const __m256i x0 = _mm256_cvtepu32_epi64(_mm_load_si128(x));
      const __m256i x1 = _mm256_cvtepu32_epi64(_mm_load_si128(x + 1));
      const __m256 rounded = rounded_halves(_mm256_load_si256(reinterpret_cast<const __m256i*>(x)));
      for (int k = 0; k < kSums; ++k) {
        const __m256i constant = _mm256_set1_epi32(static_cast<i32>(c[k]));
        low0[k] = _mm256_add_epi64(low0[k], _mm256_mul_epu32(x0, constant));
        low1[k] = _mm256_add_epi64(low1[k], _mm256_mul_epu32(x1, constant));
        estimate[k] = _mm256_fmadd_ps(rounded, _mm256_set1_ps(2 * e[k]), estimate[k]);
      }
    }
    for (int k = 0; k < kSums; ++k) {
      // The upper halves of the 64-bit lanes: within each half of the registers first, then in order.
      const __m256 halves =
          _mm256_shuffle_ps(_mm256_castsi256_ps(low0[k]), _mm256_castsi256_ps(low1[k]), 0xDD);
      const __m256i upper = _mm256_permute4x64_epi64(_mm256_castps_si256(halves), 0xD8);
      const __m256i w = _mm256_cvttps_epi32(
          _mm256_fnmadd_ps(rounded_halves(upper), _mm256_set1_ps(kScale * 0x1p33f), estimate[k]));
      store_sums(low0[k], _mm256_castsi256_si128(w), sums[k].low + j, sums[k].high + j);
      store_sums(low1[k], _mm256_extracti128_si256(w, 1), sums[k].low + j + 4, sums[k].high + j + 4);
    }
  }
}

using SumColumns = void (*)(const Row* terms, const Columns& columns, i64 width, SumRow* sums);

// As many results at a time as their sums fit into registers.
void sum_columns(SumMethod method, const Row* terms, Columns columns, i64 results, i64 width, SumRow* sums) {
  const bool wide = method == SumMethod::kAvx512;
  while (results > 0) {
    const i64 taken = wide && results >= 8 ? 8 : results >= 4 ? 4 : results >= 2 ? 2 : 1;
    const SumColumns sum = taken == 8   ? sum_512<8>
                           : taken == 4 ? (wide ? sum_512<4> : sum_256<4>)
                           : taken == 2 ? (wide ? sum_512<2> : sum_256<2>)
                                        : (wide ? sum_512<1> : sum_256<1>);
    sum(terms, columns, width, sums);
    columns.data += taken;
    columns.estimates += taken;
    sums += taken;
    results -= taken;
  }
}

#endif

// The sums of at most kEstimatedTerms rows.
void sum_part([[maybe_unused]] SumMethod method, const Row* terms, const Columns& columns, i64 results,
              i64 width, SumRow* sums) {
#ifdef RNS_X86_LEVELS
  if (method != SumMethod::kPortable) {
    sum_columns(method, terms, columns, results, width, sums);
    return;
  }
#endif
  sum_portably(terms, columns, results, width, sums);
}

}  // namespace

bool is_supported(SumMethod method) {
#ifdef RNS_X86_LEVELS
  if (method == SumMethod::kAvx512) return __builtin_cpu_supports("x86-64-v4");
  if (method == SumMethod::kAvx2) return __builtin_cpu_supports("x86-64-v3");
#endif
  return method == SumMethod::kPortable;
}

SumMethod best_sum_method() {
  static const SumMethod best = is_supported(SumMethod::kAvx512) ? SumMethod::kAvx512
                                : is_supported(SumMethod::kAvx2) ? SumMethod::kAvx2
                                                                 : SumMethod::kPortable;
  return best;
}

Table::Table(const Table32& array, SumMethod method)
    : data_(array.data()),
      rows_(static_cast<i64>(array.shape(0))),
      stride_(array.stride(0)),
      method_(method) {
  if (method == SumMethod::kPortable) return;
  estimates_.resize(rows_ * stride_);
  for (i64 i = 0; i < rows_ * stride_; ++i) estimates_[i] = static_cast<float>(data_[i]) * kScale;
}

void Table::sum(const std::vector<Row>& terms, i64 first, i64 results, i64 width, SumRow* sums) const {
  SumRow part[kResults];
  for (i64 r = 0; r < rows_; r += kEstimatedTerms) {
    const i64 start = r * stride_ + first;
    const Columns columns = {data_ + start, estimates_.data() + start, stride_,
                             std::min(kEstimatedTerms, rows_ - r)};
    sum_part(method_, terms.data() + r, columns, results, width, r == 0 ? sums : part);
    if (r == 0) continue;
    for (i64 k = 0; k < results; ++k) {
      for (i64 j = 0; j < width; ++j) {
        sums[k].low[j] += part[k].low[j];
        sums[k].high[j] += part[k].high[j];
      }
    }
  }
}

namespace {

using MutableMatrix64 = Written<u64, nb::ndim<2>, nb::c_contig>;

constexpr std::pair<const char*, SumMethod> kMethods[] = {
    {"portable", SumMethod::kPortable}, {"avx2", SumMethod::kAvx2}, {"avx512", SumMethod::kAvx512}};

// The sums of a tile's products by one method, two lanes for each result and number.
void table_sums(const Matrix32& array, const Table32& table_array, SumMethod method, MutableMatrix64 low,
                MutableMatrix64 high) {
  const Residues values(array);
  const Table table(table_array, method);
  const i64 results = static_cast<i64>(low.shape(0));
  require(table.rows() == values.moduli && values.count <= kNumbers, "one row for each term is needed");
  require(results <= static_cast<i64>(table_array.shape(1)) && high.shape(0) == low.shape(0),
          "one column for each result is needed");
  require(static_cast<i64>(low.shape(1)) == values.count && high.shape(1) == low.shape(1),
          "one sum for each number is needed");
  std::vector<Row> terms(values.moduli);
  for (i64 r = 0; r < values.moduli; ++r) std::copy_n(values.row(r), values.count, terms[r].x);
  SumRow sums[kResults];
  for (i64 first = 0; first < results; first += kResults) {
    const i64 taken = std::min(kResults, results - first);
    table.sum(terms, first, taken, values.count, sums);
    for (i64 k = 0; k < taken; ++k) {
      std::copy_n(sums[k].low, values.count, low.data() + (first + k) * values.count);
      std::copy_n(sums[k].high, values.count, high.data() + (first + k) * values.count);
    }
  }
}

}  // namespace

// For tests only: conversions take the best method.
void bind_table_product(nb::module_& module) {
  module.def("sum_methods", [] {
    std::vector<std::string> names;
    for (const auto& [name, method] : kMethods) {
      if (is_supported(method)) names.emplace_back(name);
    }
    return names;
  });
  module.def("table_sums", [](const Matrix32& terms, const Table32& table, const std::string& name,
                              MutableMatrix64 low, MutableMatrix64 high) {
    for (const auto& [known, method] : kMethods) {
      if (name == known && is_supported(method)) return table_sums(terms, table, method, low, high);
    }
    throw nb::value_error("no such method on this processor");
  });
}

}  // namespace rns
