// Linear algebra of matrices modulo primes: elimination with row exchanges, triangular systems,
// characteristic polynomials. A matrix is copied to rows of whole vectors; large ones go by panels of
// columns, and what is right of a panel by products of matrices. All of it is for words of 32 bits, and
// of 64.
#include <algorithm>
#include <vector>

#include "bindings.hpp"
#include "lanes.hpp"
#include "matmul.hpp"
#include "rns/matrix.cuh"
#include "rns/wide_ntt.cuh"
#include "wide_matmul.hpp"

namespace rns {

namespace {

template <class Word>
using Matrices = nb::ndarray<const Word, nb::ndim<4>, nb::device::cpu>;
template <class Word>
using MutableMatrices = Written<Word, nb::ndim<4>, nb::c_contig>;
template <class Word>
using Vectors = Written<Word, nb::ndim<3>, nb::c_contig>;
template <class Word>
using Table = nb::ndarray<const Word, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class Word>
using MutableMatrix = Written<Word, nb::ndim<2>, nb::c_contig>;
using Indices = Written<i32, nb::ndim<3>, nb::c_contig>;

// Rows are whole vectors long, of Field::kVector words, and all of a vector are computed.

// With fewer right-hand sides than this, systems are solved by products of vectors.
constexpr i64 kFewColumns = 8;

// Rows whose products are found before they are subtracted.
constexpr i64 kBand = 128;

// Matrices of up to so many rows and words are eliminated kLanes at a time, so that pivots are inverted
// together.
constexpr i64 kFewRows = 64;
constexpr i64 kFewWords = 2 * kFewRows * kFewRows;

// Words from which on a matrix is worked on where its result goes, not in a copy of whole vectors.
constexpr i64 kGreatWords = i64{1} << 18;

i64 round_down(i64 x, i64 step) { return x / step * step; }
i64 round_up(i64 x, i64 step) { return round_down(x + step - 1, step); }

// Subtracts from each of `count` rows, `stride` apart, its own multiple of the words x. `length` is a
// multiple of kLanes.
template <u32 Eliminated(u32, u32, Factor, u32)>
RNS_INLINE void subtract_from_rows(const u32* __restrict__ x, u32* __restrict__ rows, i64 count, i64 stride,
                                   i64 length, const Factor* factors, u32 last) {
  for (i64 i = 0; i < count; ++i) {
    const Factor w = factors[i];
    if (w.value == 0) continue;
    u32* __restrict__ y = rows + i * stride;
    for (i64 j = 0; j < length; j += kLanes) {
      for (i64 k = j; k < j + kLanes; ++k) y[k] = Eliminated(y[k], x[k], w, last);
    }
  }
}

RNS_VECTORISED void subtract_narrow(const u32* x, u32* rows, i64 count, i64 stride, i64 length,
                                    const Factor* factors, u32 last) {
  subtract_from_rows<eliminated_narrow>(x, rows, count, stride, length, factors, last);
}

RNS_VECTORISED void subtract_wide(const u32* x, u32* rows, i64 count, i64 stride, i64 length,
                                  const Factor* factors, u32 last) {
  subtract_from_rows<eliminated_wide>(x, rows, count, stride, length, factors, last);
}

RNS_VECTORISED void subtract_words(const u32* x, i64 count, u32 last, u32* __restrict__ y) {
  for (i64 k = 0; k < count; ++k) y[k] = mod_sub(y[k], x[k], last);
}

RNS_VECTORISED void subtract_words(const u64* x, i64 count, u64 last, u64* __restrict__ y) {
  for (i64 k = 0; k < count; ++k) y[k] = mod_sub(y[k], x[k], last);
}

// Subtracts the multiple of the words x.
template <class Multiply>
RNS_INLINE void subtract_multiple(const u64* __restrict__ x, i64 length, WideFactor w, u64 last,
                                  u64* __restrict__ y, Multiply multiply) {
  for (i64 k = 0; k < length; ++k) {
    const u64 z = multiply(x[k], w, last);
    // By a mask: of `mod_sub` compilers make a branch, which cannot be predicted.
    y[k] = y[k] - z + ((0u - static_cast<u64>(y[k] < z)) & (last + 1u));
  }
}

RNS_VECTORISED void subtract_short(const u64* x, i64 length, WideFactor w, u64 last, u64* y) {
  subtract_multiple(x, length, w, last, y, ShortWideField::multiply);
}

RNS_VECTORISED void subtract_long(const u64* x, i64 length, WideFactor w, u64 last, u64* y) {
  subtract_multiple(x, length, w, last, y, WideField::multiply);
}

// Words and what they are multiplied by, modulo p <= 2^32 and modulo p < 2^64. kPanel columns, and kBlock
// rows of a triangular system, are taken one by one, for which products of matrices would have too few terms;
// so are the columns of matrices with up to kOnePanel pivots.
struct Narrow {
  using Word = u32;
  using Factor = rns::Factor;
  using Modulus = rns::Modulus;

  static constexpr i64 kVector = kLanes, kOnePanel = 64, kSmall = 128, kPanel = 32, kBlock = 64;

  static Factor factor(Word w, const Modulus& m) { return factor_of(w, m.last); }

  static void subtract(const Word* x, Word* rows, i64 count, i64 stride, i64 length, const Factor* factors,
                       Word last) {
    const auto subtract_multiples = is_narrow(last) ? subtract_narrow : subtract_wide;
    subtract_multiples(x, rows, count, stride, length, factors, last);
  }

  static void invert(Word* values, const Word* last) { invert_together(values, last); }
};

struct Wide {
  using Word = u64;
  using Factor = WideFactor;
  using Modulus = WideModulus;

  static constexpr i64 kVector = 1, kOnePanel = 32, kSmall = 32, kPanel = 16, kBlock = 16;

  static Factor factor(Word w, const Modulus& m) { return wide_factor(w, m); }

  static void subtract(const Word* x, Word* rows, i64 count, i64 stride, i64 length, const Factor* factors,
                       Word last) {
    const auto subtract_from = last >> 63 == 0 ? subtract_short : subtract_long;
    for (i64 i = 0; i < count; ++i) {
      if (factors[i].value != 0) subtract_from(x, length, factors[i], last, rows + i * stride);
    }
  }

  static void invert(Word* values, const Word* last) {
    for (i64 k = 0; k < kLanes; ++k) values[k] = prime_inverse(values[k], last[k]);
  }
};

// A matrix modulo p that is worked on; one after another in the same memory, or each where its result goes.
template <class Field>
class Working {
 public:
  using Word = typename Field::Word;
  using Modulus = typename Field::Modulus;
  using View = MatrixView<Word>;

  Working(i64 rows, i64 columns, Modulus m, bool is_in_place = false)
      : rows_(rows),
        columns_(columns),
        stride_(is_in_place ? columns : round_up(columns, Field::kVector)),
        m_(m),
        own_(is_in_place ? 0 : rows * stride_ + Field::kVector),
        words_(own_.data()),
        pivot_(round_up(columns, Field::kVector) + Field::kVector),
        factors_(rows) {}
  Working(Working&&) = default;

  // Copies a matrix, to `out` if it is in place; it may be there already.
  void load(View x, Word* out = nullptr) {
    if (own_.empty()) words_ = out;
    if (x.data == words_ && x.row_step == stride_ && x.column_step == 1) return;
    for (i64 i = 0; i < rows_; ++i) {
      for (i64 j = 0; j < columns_; ++j) row(i)[j] = *x.at(i, j);
    }
  }

  void store(Word* out) {
    if (own_.empty()) return;
    for (i64 i = 0; i < rows_; ++i) std::copy_n(row(i), columns_, out + i * columns_);
  }

  Word* row(i64 i) { return words_ + i * stride_; }
  Word& at(i64 i, i64 j) { return row(i)[j]; }
  const Modulus& modulus() const { return m_; }
  void set_modulus(Modulus m) { m_ = m; }

  // The factor of row i in the next `subtract`.
  void set_factor(i64 i, Word value) { factors_[i] = Field::factor(value, m_); }

  // Subtracts from rows first to last the multiples by their factors of row `source`, columns begin to end.
  void subtract(i64 source, i64 first, i64 last, i64 begin, i64 end) {
    if (first >= last) return;
    const i64 start = round_down(begin, Field::kVector), stop = round_up(end, Field::kVector);
    // Zeros where whole vectors reach beyond the columns.
    std::fill(&pivot_[start], &pivot_[begin], Word{0});
    std::copy(row(source) + begin, row(source) + end, &pivot_[begin]);
    std::fill(&pivot_[end], &pivot_[stop], Word{0});
    // Beyond the end of a row in place is the next one, which loses zeros; beyond the last one is nothing.
    const bool is_beyond = stop > stride_ && last == rows_;
    Field::subtract(&pivot_[start], row(first) + start, last - first - is_beyond, stride_, stop - start,
                    &factors_[first], m_.last);
    if (!is_beyond) return;
    tail_.assign(stop - start, Word{0});
    std::copy(row(last - 1) + start, row(last - 1) + end, tail_.begin());
    Field::subtract(&pivot_[start], tail_.data(), 1, stride_, stop - start, &factors_[last - 1], m_.last);
    std::copy_n(tail_.begin(), end - start, row(last - 1) + start);
  }

  // Subtracts a product of matrices from rows `first` to `last`, columns `begin` to `end`: `left`, of all
  // these rows, times the rows from `source` on.
  void subtract_product(View left, i64 terms, i64 source, i64 first, i64 last, i64 begin, i64 end) {
    const i64 width = end - begin;
    product_.resize(std::min(rows_, kBand) * columns_);
    for (i64 i = first; i < last; i += kBand) {
      const Shape shape{std::min(kBand, last - i), terms, width};
      std::fill_n(product_.data(), shape.rows * width, Word{0});
      const View a{left.at(i - first, 0), left.row_step, left.column_step};
      const auto space = static_cast<std::size_t>(product_space(a, shape));
      if (panel_.size() < space) panel_.resize(space);
      add_product(a, {row(source) + begin, stride_, 1}, shape, m_, panel_.data(), product_.data());
      for (i64 k = 0; k < shape.rows; ++k) {
        subtract_words(product_.data() + k * width, width, m_.last, row(i + k) + begin);
      }
    }
  }

  void swap_rows(i64 i, i64 k) { std::swap_ranges(row(i), row(i) + stride_, row(k)); }
  i64 stride() const { return stride_; }

 private:
  i64 rows_, columns_, stride_;
  Modulus m_;
  std::vector<Word> own_;
  Word* words_;
  std::vector<Word> pivot_, tail_;
  std::vector<typename Field::Factor> factors_;
  std::vector<Word> panel_, product_;
};

// ---- elimination ------------------------------------------------------------------------------------------

// What elimination says of a matrix besides its factors.
template <class Word>
struct Found {
  i32* order;     // which row came to each place
  i32* pivots;    // the column of each row's pivot, -1 below the last one
  Word* product;  // of the pivots, with the sign of the order
};

template <class Field>
class Elimination {
 public:
  using Word = typename Field::Word;
  using Modulus = typename Field::Modulus;
  using View = MatrixView<Word>;

  // Each matrix is worked on where its result goes, or in the same memory.
  Elimination(i64 rows, i64 columns, i64 pivot_columns, Modulus m, bool is_in_place = false)
      : rows_(rows), columns_(columns), pivot_columns_(pivot_columns), x_(rows, columns, m, is_in_place) {}

  // Without `out` only what is found is wanted.
  void apply(Modulus m, View matrix, Found<Word> found, Word* out) {
    begin(m, matrix, found, out);
    // In smaller matrices, panels that are halved take longer than the products beside them.
    const bool is_small = Field::kOnePanel < pivot_columns_ && pivot_columns_ <= Field::kSmall;
    const i64 width = is_small ? Field::kPanel : pivot_columns_;
    for (i64 start = 0; start < pivot_columns_; start += width) {
      eliminate_columns(start, std::min(start + width, pivot_columns_), columns_);
    }
    finish(out);
  }

  // `begin`, for each column `bring_pivot` and `clear_column`, and `finish` do the same as `apply`.
  void begin(Modulus m, View matrix, Found<Word> found, Word* out = nullptr) {
    x_.set_modulus(m);
    x_.load(matrix, out);
    found_ = found;
    rank_ = 0;
    is_odd_ = false;
    *found.product = 1;
    for (i64 i = 0; i < rows_; ++i) found.order[i] = static_cast<i32>(i);
    std::fill_n(found.pivots, std::min(rows_, pivot_columns_), -1);
  }

  void finish(Word* out) {
    const Word product = *found_.product;
    if (is_odd_ && product != 0) *found_.product = x_.modulus().last - product + 1u;
    if (out != nullptr) x_.store(out);
  }

  const Modulus& modulus() const { return x_.modulus(); }

  // The pivot of a column, in the next row; 0 if there is none.
  Word bring_pivot(i64 column) {
    i64 pivot = rank_;
    while (pivot < rows_ && x_.at(pivot, column) == 0) ++pivot;
    if (pivot == rows_) return 0;
    if (pivot != rank_) {
      x_.swap_rows(pivot, rank_);
      std::swap(found_.order[pivot], found_.order[rank_]);
      is_odd_ = !is_odd_;
    }
    return x_.at(rank_, column);
  }

  // Clears a column below its pivot, of which the inverse is given; rows are changed up to `reach`.
  void clear_column(i64 column, i64 reach, Word value, Word inverse) {
    const Modulus& m = x_.modulus();
    *found_.product = mod_mul(*found_.product, value, m);
    found_.pivots[rank_] = static_cast<i32>(column);
    for (i64 i = rank_ + 1; i < rows_; ++i) {
      const Word x = x_.at(i, column), factor = x == 0 ? 0 : mod_mul(x, inverse, m);
      x_.set_factor(i, factor);
      // Factors stand below the diagonal, where the pivots' columns may be further to the right.
      x_.at(i, column) = 0;
      x_.at(i, rank_) = factor;
    }
    x_.subtract(rank_, rank_ + 1, rows_, column + 1, reach);
    ++rank_;
  }

 private:
  // Columns start to stop, then what they change in those up to `reach`. Wide panels are halved, so that most
  // of the work is products of large matrices.
  void eliminate_columns(i64 start, i64 stop, i64 reach) {
    const i64 first = rank_, width = stop - start;
    // Few pivots: one panel of all columns.
    const bool is_whole = width == pivot_columns_ && width <= Field::kOnePanel;
    if (width <= Field::kPanel || is_whole) {
      for (i64 column = start; column < stop && rank_ < rows_; ++column) {
        const Word value = bring_pivot(column);
        if (value == 0) continue;
        clear_column(column, is_whole ? reach : stop, value, prime_inverse(value, x_.modulus().last));
      }
      if (is_whole) return;
    } else {
      const i64 middle = start + round_up(width / 2, Field::kPanel);
      eliminate_columns(start, middle, stop);
      eliminate_columns(middle, stop, stop);
    }
    if (rank_ == first || stop == reach) return;
    solve_lower(first, rank_, stop, reach);
    subtract_rows(first, rank_, rows_, stop, reach);
  }

  // Subtracts from rows `middle` to `last` their multiples, by the factors below the diagonal, of the rows
  // from `first` to `middle`; columns from `begin` to `end`.
  void subtract_rows(i64 first, i64 middle, i64 last, i64 begin, i64 end) {
    const View left{x_.row(middle) + first, x_.stride(), 1};
    x_.subtract_product(left, middle - first, first, middle, last, begin, end);
  }

  // Subtracts from each row its multiples of those from `first` on that are above it.
  void solve_lower(i64 first, i64 last, i64 begin, i64 end) {
    if (last - first > Field::kBlock) {
      const i64 middle = first + round_up((last - first) / 2, Field::kBlock);
      solve_lower(first, middle, begin, end);
      subtract_rows(first, middle, last, begin, end);
      solve_lower(middle, last, begin, end);
      return;
    }
    for (i64 k = first; k < last; ++k) {
      for (i64 i = k + 1; i < last; ++i) x_.set_factor(i, x_.at(i, k));
      x_.subtract(k, k + 1, last, begin, end);
    }
  }

  i64 rows_, columns_, pivot_columns_;
  Working<Field> x_;
  Found<Word> found_{};
  i64 rank_ = 0;
  bool is_odd_ = false;
};

// Eliminates up to kLanes small matrices in step.
template <class Field>
void eliminate_together(std::vector<Elimination<Field>>& matrices, i64 count, i64 pivot_columns,
                        i64 columns) {
  using Word = typename Field::Word;
  alignas(64) Word values[kLanes] = {}, inverses[kLanes] = {}, last[kLanes] = {};
  for (i64 k = 0; k < count; ++k) last[k] = matrices[k].modulus().last;
  for (i64 column = 0; column < pivot_columns; ++column) {
    for (i64 k = 0; k < count; ++k) inverses[k] = values[k] = matrices[k].bring_pivot(column);
    Field::invert(inverses, last);
    for (i64 k = 0; k < count; ++k) {
      if (values[k] != 0) matrices[k].clear_column(column, columns, values[k], inverses[k]);
    }
  }
}

// ---- triangular systems -----------------------------------------------------------------------------------

// Inverses of what is on the diagonal.
template <class Field, class Word = typename Field::Word>
std::vector<Word> diagonal_inverses(MatrixView<Word> upper, i64 rows, const typename Field::Modulus& m) {
  std::vector<Word> inverses(static_cast<std::size_t>((rows + kLanes - 1) / kLanes * kLanes));
  for (i64 k = 0; k < rows; ++k) inverses[k] = *upper.at(k, k);
  Word last[kLanes];
  std::fill_n(last, kLanes, m.last);
  for (i64 k = 0; k < rows; k += kLanes) Field::invert(&inverses[k], last);
  return inverses;
}

// Systems of few right-hand sides: each number of a solution takes the product of a row and those below.
// The rows of `upper` are contiguous.
template <class Field, class Word = typename Field::Word>
void solve_by_dots(MatrixView<Word> upper, MatrixView<Word> right, i64 rows, i64 columns,
                   const typename Field::Modulus& m, Word* out) {
  std::vector<Word> x(columns * rows);
  const std::vector<Word> inverses = diagonal_inverses<Field>(upper, rows, m);
  for (i64 k = rows - 1; k >= 0; --k) {
    for (i64 j = 0; j < columns; ++j) {
      Word* solution = x.data() + j * rows;
      const Word known = dot_product(upper.at(k, k + 1), solution + k + 1, rows - k - 1, m);
      solution[k] = mod_mul(mod_sub(*right.at(k, j), known, m.last), inverses[k], m);
      out[k * columns + j] = solution[k];
    }
  }
}

// Solves the system of rows `first` to `last`, of which those below are taken off already.
template <class Field, class Word = typename Field::Word>
void solve_rows(MatrixView<Word> upper, const std::vector<Word>& inverses, i64 first, i64 last, i64 columns,
                Working<Field>& x) {
  const typename Field::Modulus& m = x.modulus();
  if (last - first > Field::kBlock) {
    const i64 middle = first + round_up((last - first) / 2, Field::kBlock);
    solve_rows(upper, inverses, middle, last, columns, x);
    const MatrixView<Word> left{upper.at(first, middle), upper.row_step, upper.column_step};
    x.subtract_product(left, last - middle, middle, first, middle, 0, columns);
    solve_rows(upper, inverses, first, middle, columns, x);
    return;
  }
  for (i64 k = last - 1; k >= first; --k) {
    for (i64 j = 0; j < columns; ++j) x.at(k, j) = mod_mul(x.at(k, j), inverses[k], m);
    for (i64 i = first; i < k; ++i) x.set_factor(i, *upper.at(i, k));
    x.subtract(k, first, k, 0, columns);
  }
}

// Solves upper x = right, for a matrix of `rows` rows whose diagonal has no 0.
template <class Field, class Word = typename Field::Word>
void solve_upper(MatrixView<Word> upper, MatrixView<Word> right, i64 rows, i64 columns, Working<Field>& x,
                 Word* out) {
  const typename Field::Modulus& m = x.modulus();
  if (columns < kFewColumns && upper.column_step == 1) {
    solve_by_dots<Field>(upper, right, rows, columns, m, out);
    return;
  }
  x.load(right, out);
  solve_rows<Field>(upper, diagonal_inverses<Field>(upper, rows, m), 0, rows, columns, x);
  x.store(out);
}

// ---- characteristic polynomials ---------------------------------------------------------------------------

template <class Field>
class CharacteristicPolynomial {
 public:
  using Word = typename Field::Word;
  using Modulus = typename Field::Modulus;
  using View = MatrixView<Word>;

  CharacteristicPolynomial(i64 length, Modulus m)
      : length_(length), x_(length, length, m), polynomials_(length + 1, length + 1, m), factors_(length) {}

  void apply(View matrix, Word* out) {
    x_.load(matrix);
    for (i64 k = 0; k + 2 < length_; ++k) reduce_column(k);
    expand();
    std::copy_n(polynomials_.row(length_), length_ + 1, out);
  }

 private:
  // To Hessenberg form, by a similarity that leaves zeros below place k + 1 of column k.
  void reduce_column(i64 k) {
    const Modulus& m = x_.modulus();
    i64 pivot = k + 1;
    while (pivot < length_ && x_.at(pivot, k) == 0) ++pivot;
    if (pivot == length_) return;
    if (pivot != k + 1) {
      x_.swap_rows(pivot, k + 1);
      for (i64 i = 0; i < length_; ++i) std::swap(x_.at(i, pivot), x_.at(i, k + 1));
    }
    const Word inverse = prime_inverse(x_.at(k + 1, k), m.last);
    for (i64 i = k + 2; i < length_; ++i) {
      factors_[i] = mod_mul(x_.at(i, k), inverse, m);
      x_.set_factor(i, factors_[i]);
      x_.at(i, k) = 0;
    }
    x_.subtract(k + 1, k + 2, length_, k + 1, length_);
    for (i64 i = 0; i < length_; ++i) {
      const Word sum = dot_product(x_.row(i) + k + 2, &factors_[k + 2], length_ - k - 2, m);
      x_.at(i, k + 1) = mod_add(x_.at(i, k + 1), sum, m.last);
    }
  }

  // The polynomial of the leading k rows and columns of a Hessenberg matrix H is P_k, with
  // P_(k+1) = (x - H_kk) P_k - sum over i < k of H_ik H_(i+1)i ... H_k(k-1) P_i.
  void expand() {
    const Modulus& m = x_.modulus();
    std::fill_n(polynomials_.row(0), length_ + 1, Word{0});
    polynomials_.at(0, 0) = 1;
    for (i64 k = 0; k < length_; ++k) {
      Word* next = polynomials_.row(k + 1);
      next[0] = 0;
      std::copy_n(polynomials_.row(k), length_, next + 1);
      Word below = 1;
      for (i64 i = k; i >= 0 && below != 0; --i) {
        polynomials_.set_factor(k + 1, mod_mul(x_.at(i, k), below, m));
        polynomials_.subtract(i, k + 1, k + 2, 0, i + 1);
        below = i > 0 ? mod_mul(below, x_.at(i, i - 1), m) : 0;
      }
    }
  }

  i64 length_;
  Working<Field> x_, polynomials_;
  std::vector<Word> factors_;
};

// ---- stacks of matrices -----------------------------------------------------------------------------------

template <class Word>
MatrixView<Word> view(const Matrices<Word>& array, i64 i, i64 b) {
  return {array.data() + i * array.stride(0) + b * array.stride(1), array.stride(2), array.stride(3)};
}

template <class Word>
i64 length_of(const Matrices<Word>& array, i64 axis) {
  return static_cast<i64>(array.shape(axis));
}

// Whether an array has a result of `size` words for each matrix.
template <class Array>
bool holds(const Array& result, i64 matrices, i64 size) {
  return static_cast<i64>(result.size()) == matrices * size;
}

template <class Field, class Word = typename Field::Word>
const typename Field::Modulus* checked(const Matrices<Word>& array, const Table<Word>& moduli) {
  require(moduli.shape(0) == array.shape(0) && moduli.shape(1) == 4, "one modulus for each row is needed");
  return reinterpret_cast<const typename Field::Modulus*>(moduli.data());
}

template <class Field, class Word = typename Field::Word>
void eliminate(const Matrices<Word>& x, i64 pivot_columns, const Table<Word>& table,
               MutableMatrices<Word> out, Indices order, Indices pivots, MutableMatrix<Word> products) {
  const auto* moduli = checked<Field>(x, table);
  const i64 n = length_of(x, 0), count = length_of(x, 1), rows = length_of(x, 2), columns = length_of(x, 3);
  require(0 <= pivot_columns && pivot_columns <= columns, "there are fewer columns than pivots'");
  const i64 most = std::min(rows, pivot_columns);
  const bool is_wanted = out.size() > 0;
  require((!is_wanted || holds(out, n * count, rows * columns)) && holds(order, n * count, rows) &&
              holds(pivots, n * count, most) && holds(products, n * count, 1),
          "the results do not have the shapes of the matrices");
  nb::gil_scoped_release release;
  const auto found = [&](i64 t) {
    return Found<Word>{order.data() + t * rows, pivots.data() + t * most, products.data() + t};
  };
  const auto result = [&](i64 t) { return is_wanted ? out.data() + t * rows * columns : nullptr; };
  const i64 total = n * count;
  if (rows <= kFewRows && rows * columns <= kFewWords && total >= kLanes / 4) {
    std::vector<Elimination<Field>> together;
    for (i64 k = 0; k < std::min(kLanes, total); ++k) {
      together.emplace_back(rows, columns, pivot_columns, moduli[0]);
    }
    for (i64 t = 0; t < total; t += kLanes) {
      const i64 here = std::min(kLanes, total - t);
      for (i64 k = 0; k < here; ++k) {
        const i64 i = (t + k) / count, b = (t + k) % count;
        together[k].begin(moduli[i], view(x, i, b), found(t + k));
      }
      eliminate_together(together, here, pivot_columns, columns);
      for (i64 k = 0; k < here; ++k) together[k].finish(result(t + k));
    }
    return;
  }
  Elimination<Field> elimination(rows, columns, pivot_columns, moduli[0],
                                 is_wanted && rows * columns >= kGreatWords);
  for (i64 t = 0; t < total; ++t) {
    elimination.apply(moduli[t / count], view(x, t / count, t % count), found(t), result(t));
  }
}

template <class Field, class Word = typename Field::Word>
void solve_systems(const Matrices<Word>& upper, const Matrices<Word>& right, const Table<Word>& table,
                   MutableMatrices<Word> out) {
  const auto* moduli = checked<Field>(right, table);
  const i64 n = length_of(right, 0), count = length_of(right, 1);
  const i64 rows = length_of(right, 2), columns = length_of(right, 3);
  require(length_of(upper, 0) == n && length_of(upper, 1) == count && length_of(upper, 2) == rows &&
              length_of(upper, 3) == rows && holds(out, n * count, rows * columns),
          "shapes of a system do not match");
  nb::gil_scoped_release release;
  Working<Field> x(rows, columns, moduli[0], rows * columns >= kGreatWords);
  for (i64 i = 0; i < n; ++i) {
    x.set_modulus(moduli[i]);
    for (i64 b = 0; b < count; ++b) {
      Word* result = out.data() + (i * count + b) * rows * columns;
      solve_upper<Field>(view(upper, i, b), view(right, i, b), rows, columns, x, result);
    }
  }
}

template <class Field, class Word = typename Field::Word>
void characteristic_polynomials(const Matrices<Word>& x, const Table<Word>& table, Vectors<Word> out) {
  const auto* moduli = checked<Field>(x, table);
  const i64 n = length_of(x, 0), count = length_of(x, 1), length = length_of(x, 2);
  require(length_of(x, 3) == length && holds(out, n * count, length + 1), "the matrices must be square");
  nb::gil_scoped_release release;
  for (i64 i = 0; i < n; ++i) {
    CharacteristicPolynomial<Field> polynomial(length, moduli[i]);
    for (i64 b = 0; b < count; ++b) {
      polynomial.apply(view(x, i, b), out.data() + (i * count + b) * (length + 1));
    }
  }
}

}  // namespace

void bind_elimination(nb::module_& module) {
  module.def("eliminate", eliminate<Narrow>);
  module.def("solve_upper", solve_systems<Narrow>);
  module.def("characteristic_polynomials", characteristic_polynomials<Narrow>);
  module.def("wide_eliminate", eliminate<Wide>);
  module.def("wide_solve_upper", solve_systems<Wide>);
  module.def("wide_characteristic_polynomials", characteristic_polynomials<Wide>);
}

}  // namespace rns
