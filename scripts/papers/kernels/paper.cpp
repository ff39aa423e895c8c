// The paper's MAX on the CPU, one thread, as a library with a plain C interface.
#include "paper.cuh"

using namespace rns;

namespace {

template <class Layout>
void evaluate(const Layout& numbers, i64 count, const PaperTables& t, Evaluation* eval) {
  for (i64 j = 0; j < count; ++j) {
    compute_eval(numbers[j], t, true, eval[j]);
    eval[j].index = j;
  }
}

template <class Layout>
i64 reduce(const Layout& numbers, const PaperTables& t, const Evaluation* eval, i64 count) {
  Evaluation best = no_evaluation();
  for (i64 j = 0; j < count; ++j) {
    if (compare_evaluations(eval[j], best, numbers, t) == 1) best = eval[j];
  }
  return best.index;
}

}  // namespace

extern "C" {

void evaluate_numbers(const u32* residues, i64 count, const PaperTables* t, Evaluation* eval) {
  evaluate(NumberAfterNumber{residues}, count, *t, eval);
}

void evaluate_interleaved(const u32* residues, i64 count, const PaperTables* t, Evaluation* eval) {
  evaluate(Interleaved{residues, count}, count, *t, eval);
}

i64 reduce_numbers(const u32* residues, i64 count, const PaperTables* t, const Evaluation* eval) {
  return reduce(NumberAfterNumber{residues}, *t, eval, count);
}

i64 reduce_interleaved(const u32* residues, i64 count, const PaperTables* t, const Evaluation* eval) {
  return reduce(Interleaved{residues, count}, *t, eval, count);
}

i64 reduce_naively(const u32* residues, i64 count, const PaperTables* t) {
  i64 best = -1;
  for (i64 j = 0; j < count; ++j) {
    if (compare_naively(j, best, NumberAfterNumber{residues}, *t) == 1) best = j;
  }
  return best;
}

void convert_numbers(const u32* residues, i64 count, const PaperTables* t, DigitRecord* records) {
  for (i64 j = 0; j < count; ++j) {
    mixed_radix_digits(NumberAfterNumber{residues}[j], *t, records[j].digit);
    records[j].index = j;
  }
}

i64 reduce_digits(const DigitRecord* records, i64 count) {
  i64 best = 0;
  for (i64 j = 1; j < count; ++j) {
    if (compare_digits(records[j].digit, records[best].digit) == 1) best = j;
  }
  return best;
}

void refinement_steps(const u32* residues, i64 count, const PaperTables* t, i64 improved, u32* steps) {
  for (i64 j = 0; j < count; ++j) {
    Evaluation unused;
    steps[j] = compute_eval(Interleaved{residues, count}[j], *t, improved != 0, unused);
  }
}

}  // extern "C"
