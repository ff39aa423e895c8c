// Floating-point interval evaluation: a tile of numbers is evaluated row by row; those that need it are
// then refined together, each with its own shift, until none is left.
#include "rns/interval.cuh"

#include <algorithm>
#include <numeric>

#include "bindings.hpp"

namespace rns {

namespace {

constexpr i64 kIntervalTile = 1024;

// Numbers refined at a time: their residues are read again and again, so they and the tables are to fit the
// second-level cache together.
constexpr i64 kIntervalGroup = 256;

struct IntervalOutput {
  double* low;
  double* upp;
  i32* exponent;
  u32* steps;
};

// Sums and shifts are side by side, with the numbers of the tile that they belong to in `columns`.
struct IntervalTile {
  alignas(64) double low[kIntervalTile];
  alignas(64) double upp[kIntervalTile];
  alignas(64) i32 columns[kIntervalTile];
  alignas(64) i32 shifts[kIntervalTile];
  IntervalSearch searches[kIntervalTile];
};

RNS_VECTORISED void add_terms(const u32* x, IntervalModulus modulus, i64 width, double* low, double* upp) {
  for (i64 j = 0; j < width; ++j) {
    Bounds sum = {low[j], upp[j]};
    interval_accumulate(sum, x[j], modulus);
    low[j] = sum.low;
    upp[j] = sum.upp;
  }
}

RNS_VECTORISED void add_shifted_terms(const u32* x, const i32* columns, const i32* shifts,
                                      IntervalModulus modulus, i64 width, double* low, double* upp) {
  for (i64 j = 0; j < width; ++j) {
    Bounds sum = {low[j], upp[j]};
    interval_accumulate(sum, x[columns[j]], modulus, shifts[j]);
    low[j] = sum.low;
    upp[j] = sum.upp;
  }
}

// Takes the sums of `count` columns from `begin` on to their searches. The columns that need another
// evaluation come to the front, with new sums; returns how many they are.
RNS_VECTORISED i64 advance_columns(const IntervalGoal& goal, i64 begin, i64 count, IntervalTile& tile) {
  i64 kept = begin;
  for (i64 k = begin; k < begin + count; ++k) {
    const i32 column = tile.columns[k];
    IntervalSearch& search = tile.searches[column];
    if (advance(search, {tile.low[k], tile.upp[k]}, goal)) continue;
    tile.columns[kept] = column;
    tile.shifts[kept++] = search.shift;
  }
  std::fill(tile.low + begin, tile.low + kept, empty_sum().low);
  std::fill(tile.upp + begin, tile.upp + kept, empty_sum().upp);
  return kept - begin;
}

void refine_columns(const Residues& residues, const IntervalTables& tables, const IntervalGoal& goal,
                    i64 first, i64 begin, i64 count, IntervalTile& tile) {
  while (count > 0) {
    for (i64 i = 0; i < residues.moduli; ++i) {
      add_shifted_terms(residues.row(i) + first, tile.columns + begin, tile.shifts + begin,
                        modulus_of(tables, i), count, tile.low + begin, tile.upp + begin);
    }
    count = advance_columns(goal, begin, count, tile);
  }
}

void evaluate_tile(const Residues& residues, const IntervalTables& tables, const IntervalGoal& goal,
                   i64 first, i64 width, IntervalTile& tile) {
  std::fill_n(tile.low, width, empty_sum().low);
  std::fill_n(tile.upp, width, empty_sum().upp);
  std::iota(tile.columns, tile.columns + width, 0);
  std::fill_n(tile.searches, width, IntervalSearch{});
  for (i64 i = 0; i < residues.moduli; ++i) {
    add_terms(residues.row(i) + first, modulus_of(tables, i), width, tile.low, tile.upp);
  }
  const i64 pending = advance_columns(goal, 0, width, tile);
  for (i64 begin = 0; begin < pending; begin += kIntervalGroup) {
    refine_columns(residues, tables, goal, first, begin, std::min(kIntervalGroup, pending - begin), tile);
  }
}

RNS_VECTORISED void store_tile(const IntervalGoal& goal, i64 first, i64 width, IntervalTile& tile,
                               const IntervalOutput& out) {
  for (i64 j = 0; j < width; ++j) {
    IntervalSearch& search = tile.searches[j];
    apply_scale(search, goal);
    out.low[first + j] = search.bounds.low;
    out.upp[first + j] = search.bounds.upp;
    out.exponent[first + j] = search.exponent;
    out.steps[first + j] = static_cast<u32>(search.steps);
  }
}

void evaluate_all(const Residues& residues, const IntervalTables& tables, const IntervalGoal& goal,
                  const IntervalOutput& out) {
  IntervalTile tile;
  for (i64 first = 0; first < residues.count; first += kIntervalTile) {
    const i64 width = std::min(kIntervalTile, residues.count - first);
    evaluate_tile(residues, tables, goal, first, width, tile);
    store_tile(goal, first, width, tile, out);
  }
}

using MatrixDouble = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using MutableVectorDouble = Written<double, nb::ndim<1>, nb::c_contig>;
using MutableVectorI32 = Written<i32, nb::ndim<1>, nb::c_contig>;
using MutableVector32 = Written<u32, nb::ndim<1>, nb::c_contig>;

// Each factor takes two columns of its table.
IntervalTables tables_of(i64 moduli, const Vector32& last, const Table32& inverses, const Table32& powers,
                         const MatrixDouble& reciprocals) {
  const auto rows = static_cast<size_t>(moduli);
  require(last.shape(0) == rows && inverses.shape(0) == rows && powers.shape(0) == rows &&
              reciprocals.shape(0) == rows,
          "the tables do not fit the number of moduli");
  require(inverses.shape(1) >= 2 && powers.shape(1) == 2 * kPowers && reciprocals.shape(1) == 2,
          "a table has the wrong number of columns");
  return {last.data(), reinterpret_cast<const Factor*>(inverses.data()),
          static_cast<i64>(inverses.shape(1)) / 2, reinterpret_cast<const Factor*>(powers.data()),
          reinterpret_cast<const Bounds*>(reciprocals.data())};
}

}  // namespace

void bind_interval(nb::module_& module) {
  module.def("interval",
             [](const Matrix32& array, const Vector32& last, const Table32& inverses, const Table32& powers,
                const MatrixDouble& reciprocals, double accuracy, double scale_low, double scale_upp,
                i32 scale_exponent, bool is_signed, MutableVectorDouble low, MutableVectorDouble upp,
                MutableVectorI32 exponent, MutableVector32 steps) {
               const Residues residues(array);
               const auto count = static_cast<size_t>(residues.count);
               const IntervalTables tables = tables_of(residues.moduli, last, inverses, powers, reciprocals);
               require(low.shape(0) == count && upp.shape(0) == count && exponent.shape(0) == count &&
                           steps.shape(0) == count,
                       "the results must have one element for each number");
               const IntervalGoal goal = {accuracy, scale_low, scale_upp, scale_exponent, is_signed};
               nb::gil_scoped_release release;
               evaluate_all(residues, tables, goal, {low.data(), upp.data(), exponent.data(), steps.data()});
             });
}

}  // namespace rns
