// Transposed matrices of words, a tile at a time, so that each line of memory is read and written once.
#include <algorithm>

#include "bindings.hpp"

namespace rns {

namespace {

// A tile is long along the longer side of the matrix, along which the words of its lines are taken: steps
// along the other side may be a power of two, and then meet in few sets of a cache.
constexpr i64 kLong = 64, kShort = 16;

template <typename Word>
void transpose(const Word* matrix, i64 stride, i64 rows, i64 columns, Word* out) {
  const bool tall = rows > columns;
  const i64 height = tall ? kLong : kShort, width = tall ? kShort : kLong;
  for (i64 row = 0; row < rows; row += height) {
    const i64 below = std::min(row + height, rows);
    for (i64 column = 0; column < columns; column += width) {
      const i64 beyond = std::min(column + width, columns);
      if (tall) {
        for (i64 j = column; j < beyond; ++j) {
          for (i64 i = row; i < below; ++i) out[j * rows + i] = matrix[i * stride + j];
        }
      } else {
        for (i64 i = row; i < below; ++i) {
          for (i64 j = column; j < beyond; ++j) out[j * rows + i] = matrix[i * stride + j];
        }
      }
    }
  }
}

template <typename Word>
void def_transpose(nb::module_& module) {
  module.def("transpose", [](const nb::ndarray<const Word, nb::ndim<2>, nb::device::cpu>& matrix,
                             Written<Word, nb::ndim<2>, nb::c_contig> out) {
    const i64 rows = static_cast<i64>(matrix.shape(0)), columns = static_cast<i64>(matrix.shape(1));
    require(static_cast<i64>(out.shape(0)) == columns && static_cast<i64>(out.shape(1)) == rows,
            "out must have the shape of the transposed matrix");
    require(rows == 0 || columns < 2 || matrix.stride(1) == 1, "the rows of the matrix must be contiguous");
    nb::gil_scoped_release release;
    transpose(matrix.data(), matrix.stride(0), rows, columns, out.data());
  });
}

}  // namespace

void bind_transpose(nb::module_& module) {
  def_transpose<u32>(module);
  def_transpose<u64>(module);
}

}  // namespace rns
