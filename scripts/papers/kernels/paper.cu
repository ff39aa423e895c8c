// The paper's kernels on a GPU: a reduction is a launch that leaves one partial result a block, and a second
// launch of one block. Blocks have kBlock threads.
//
// The paper writes the partial results over the first elements of its input, which blocks that have not yet
// started may still have to read; here they have a place of their own.
#include "grid.cuh"
#include "paper.cuh"

using namespace rns;

namespace {

constexpr i32 kBlock = 256;

// Algorithm 3 for items of any kind: load(i) is the i-th of `size` items, and compare(a, b) is 1 where a is
// to replace b.
template <class Item, class Load, class Compare>
__device__ void reduce(i64 size, Item none, Load load, Compare compare, Item* shared, Item* partials) {
  const i32 tx = static_cast<i32>(threadIdx.x);
  Item mine = none;
  for (i64 i = thread_index(); i < size; i += thread_count()) {
    const Item item = load(i);
    if (compare(item, mine) == 1) mine = item;
  }
  shared[tx] = mine;
  __syncthreads();
  for (i32 i = kBlock / 2; i >= 1; i /= 2) {
    if (tx < i && compare(shared[tx + i], shared[tx]) == 1) shared[tx] = shared[tx + i];
    __syncthreads();
  }
  if (tx == 0) partials[blockIdx.x] = shared[0];
}

// Algorithm 2.
template <class Layout>
__device__ void evaluate(const Layout& numbers, i64 count, const PaperTables& t, Evaluation* eval) {
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    Evaluation result;
    compute_eval(numbers[j], t, true, result);
    result.index = j;
    eval[j] = result;
  }
}

template <class Layout>
__device__ void reduce_evaluations(const Layout& numbers, const PaperTables& t, const Evaluation* eval,
                                   i64 size, Evaluation* partials) {
  __shared__ Evaluation shared[kBlock];
  reduce(
      size, no_evaluation(), [&](i64 i) { return eval[i]; },
      [&](const Evaluation& a, const Evaluation& b) { return compare_evaluations(a, b, numbers, t); }, shared,
      partials);
}

}  // namespace

extern "C" {

__global__ void __launch_bounds__(kBlock)
    evaluate_numbers(const u32* residues, i64 count, PaperTables t, Evaluation* eval) {
  evaluate(NumberAfterNumber{residues}, count, t, eval);
}

__global__ void __launch_bounds__(kBlock)
    evaluate_interleaved(const u32* residues, i64 count, PaperTables t, Evaluation* eval) {
  evaluate(Interleaved{residues, count}, count, t, eval);
}

__global__ void __launch_bounds__(kBlock)
    reduce_numbers(const u32* residues, i64, PaperTables t, const Evaluation* eval, i64 size,
                   Evaluation* partials) {
  reduce_evaluations(NumberAfterNumber{residues}, t, eval, size, partials);
}

__global__ void __launch_bounds__(kBlock)
    reduce_interleaved(const u32* residues, i64 count, PaperTables t, const Evaluation* eval, i64 size,
                       Evaluation* partials) {
  reduce_evaluations(Interleaved{residues, count}, t, eval, size, partials);
}

// The numbers' indices are 0 .. size - 1, or those in `indices`.
__global__ void __launch_bounds__(kBlock)
    reduce_naively(const u32* residues, PaperTables t, const i64* indices, i64 size, i64* partials) {
  __shared__ i64 shared[kBlock];
  const NumberAfterNumber numbers = {residues};
  reduce(
      size, i64{-1}, [&](i64 i) { return indices == nullptr ? i : indices[i]; },
      [&](i64 i, i64 j) { return compare_naively(i, j, numbers, t); }, shared, partials);
}

__global__ void __launch_bounds__(kBlock)
    convert_numbers(const u32* residues, i64 count, PaperTables t, DigitRecord* records) {
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    u32 digits[kModuli];
    mixed_radix_digits(NumberAfterNumber{residues}[j], t, digits);
    for (i32 i = 0; i < kModuli; ++i) records[j].digit[i] = digits[i];
    records[j].index = j;
  }
}

// Shared memory and partial results hold positions of records, for whole records would not fit.
__global__ void __launch_bounds__(kBlock)
    reduce_digits(const DigitRecord* records, const i64* positions, i64 size, i64* partials) {
  __shared__ i64 shared[kBlock];
  reduce(
      size, i64{-1}, [&](i64 i) { return positions == nullptr ? i : positions[i]; },
      [&](i64 i, i64 j) {
        if (j < 0) return 1;
        if (i < 0) return -1;
        return compare_digits(records[i].digit, records[j].digit);
      },
      shared, partials);
}

// For the figures of refinement steps.
__global__ void __launch_bounds__(kBlock)
    refinement_steps(const u32* residues, i64 count, PaperTables t, i32 improved, u32* steps) {
  for (i64 j = thread_index(); j < count; j += thread_count()) {
    Evaluation unused;
    steps[j] = compute_eval(Interleaved{residues, count}[j], t, improved != 0, unused);
  }
}

}  // extern "C"
