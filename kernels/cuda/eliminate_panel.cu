// Elimination modulo odd primes in some columns of great matrices, where their results go: a cluster of
// RNS_CLUSTER blocks for each, with a thread for each row.
#include "eliminate_rows.cuh"

using namespace rns;

namespace {

constexpr i32 kGreatTile = 128;  // columns of pivots' rows that are in shared memory

extern __shared__ uint4 memory[];

}  // namespace

extern "C" {

// Some columns of great matrices, which are in their results, of as many rows below the rank as the threads
// of a cluster at most.
__global__ void RNS_CLUSTERED __launch_bounds__(512) eliminate_panel(Elimination e) {
  Board& board = *reinterpret_cast<Board*>(memory);
  Right<kGreatTile>& right = *reinterpret_cast<Right<kGreatTile>*>(&board + 1);
  for (i64 t = blockIdx.x / kBlocks; t < e.moduli_count * e.count; t += gridDim.x / kBlocks) {
    Matrix<i64> w = {e.out + t * e.rows * e.columns,
                     e.columns,
                     static_cast<i32>(e.rows),
                     static_cast<i32>(e.columns),
                     e.order + t * e.rows,
                     e.pivots + t * e.most,
                     e.ranks[t],
                     e.products[t]};
    eliminate_columns<kGreatTile>(w, static_cast<i32>(e.start), static_cast<i32>(e.stop),
                                  static_cast<i32>(e.reach), true, e.moduli[t / e.count], board, right,
                                  reinterpret_cast<u32*>(&right + 1));
    wait_for_cluster();
    if (block_of_cluster() == 0 && threadIdx.x == 0) {
      e.products[t] = w.product;
      e.new_ranks[t] = w.rank;
    }
  }
}

}  // extern "C"
