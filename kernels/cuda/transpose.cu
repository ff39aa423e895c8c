// Transposed matrices of words, a tile of 1024 words at a time through shared memory.
#include "grid.cuh"

using namespace rns;

constexpr i32 kTileWords = 1024;

// A tile of 2^row_bits x 2^column_bits words; its rows lie an odd number of words apart, so that neither rows
// nor columns of it meet in one bank.
template <typename Word>
__device__ void transpose_tiles(const Word* matrix, i64 stride, i64 rows, i64 columns, i32 column_bits,
                                Word* out) {
  __shared__ Word tile[2 * kTileWords];
  const i32 width = 1 << column_bits, height = kTileWords >> column_bits;
  const i64 across = (columns + width - 1) / width, tiles = across * ((rows + height - 1) / height);
  for (i64 t = blockIdx.x; t < tiles; t += gridDim.x) {
    const i64 row = t / across * height, column = t % across * width;
    for (i32 k = threadIdx.x; k < kTileWords; k += blockDim.x) {
      const i32 i = k >> column_bits, j = k & (width - 1);
      if (row + i < rows && column + j < columns) {
        tile[i * (width + 1) + j] = matrix[(row + i) * stride + column + j];
      }
    }
    __syncthreads();
    for (i32 k = threadIdx.x; k < kTileWords; k += blockDim.x) {
      const i32 i = k & (height - 1), j = k / height;
      if (row + i < rows && column + j < columns) {
        out[(column + j) * rows + row + i] = tile[i * (width + 1) + j];
      }
    }
    __syncthreads();
  }
}

extern "C" __global__ void transpose_32(const u32* matrix, i64 stride, i64 rows, i64 columns, i32 column_bits,
                                        u32* out) {
  transpose_tiles(matrix, stride, rows, columns, column_bits, out);
}

extern "C" __global__ void transpose_64(const u64* matrix, i64 stride, i64 rows, i64 columns, i32 column_bits,
                                        u64* out) {
  transpose_tiles(matrix, stride, rows, columns, column_bits, out);
}
