// The shortest linear recurrences of sequences modulo primes, by J. Massey, "Shift-register synthesis and BCH
// decoding", IEEE Trans. Information Theory 15(1), 1969.
#include <algorithm>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "matmul.hpp"
#include "rns/matrix.cuh"
#include "rns/wide_ntt.cuh"
#include "wide_matmul.hpp"

namespace rns {

namespace {

template <class Word>
using Sequences = nb::ndarray<const Word, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// y[k] -= c x[k].
RNS_VECTORISED void subtract_multiple(u32* y, const u32* x, i64 count, u32 c, Modulus m) {
  const Factor w = factor_of(c, m.last);
  for (i64 k = 0; k < count; ++k) y[k] = eliminated_wide(y[k], x[k], w, m.last);
}

RNS_VECTORISED void subtract_multiple(u64* y, const u64* x, i64 count, u64 c, WideModulus m) {
  const WideFactor w = wide_factor(c, m);
  if (m.last >> 63 == 0) {
    for (i64 k = 0; k < count; ++k) y[k] = mod_sub(y[k], ShortWideField::multiply(x[k], w, m.last), m.last);
  } else {
    for (i64 k = 0; k < count; ++k) y[k] = mod_sub(y[k], mod_mul(x[k], w, m.last), m.last);
  }
}

// Writes c_0 = 1, c_1, ... with c_0 s_t + c_1 s_(t-1) + ... + c_L s_(t-L) = 0 for all t from L on, and
// returns L, the least there is.
template <class Word, class Modulus>
i64 shortest_recurrence(const Word* sequence, i64 terms, Modulus m, Word* out) {
  std::vector<Word> backwards(sequence, sequence + terms), current(terms + 1), before(terms + 1), kept;
  std::reverse(backwards.begin(), backwards.end());
  current[0] = before[0] = 1;
  i64 length = 0, before_length = 0, shift = 1;
  Word discrepancy_before = 1;
  for (i64 t = 0; t < terms; ++t, ++shift) {
    const Word d = dot_product(current.data(), backwards.data() + terms - 1 - t, length + 1, m);
    if (d == 0) continue;
    const Word factor = mod_mul(d, prime_inverse(discrepancy_before, m.last), m);
    const bool grows = 2 * length <= t;
    if (grows) kept.assign(current.begin(), current.begin() + length + 1);
    subtract_multiple(current.data() + shift, before.data(), before_length + 1, factor, m);
    if (!grows) continue;
    std::copy(kept.begin(), kept.end(), before.begin());
    before_length = length;
    length = t + 1 - length;
    discrepancy_before = d;
    shift = 0;
  }
  std::copy_n(current.begin(), terms + 1, out);
  return length;
}

template <class Word, class Modulus>
void shortest_recurrences(const Sequences<Word>& sequences, const Sequences<Word>& moduli,
                          Written<Word, nb::ndim<2>, nb::c_contig> out, MutableVector64 lengths) {
  const i64 count = static_cast<i64>(sequences.shape(0)), terms = static_cast<i64>(sequences.shape(1));
  require(static_cast<i64>(moduli.shape(0)) == count && moduli.shape(1) == 4,
          "one modulus for each sequence is needed");
  require(static_cast<i64>(out.shape(0)) == count && static_cast<i64>(out.shape(1)) == terms + 1,
          "out must have one coefficient more than a sequence has terms");
  require(static_cast<i64>(lengths.shape(0)) == count, "one length for each sequence is needed");
  nb::gil_scoped_release release;
  const auto* m = reinterpret_cast<const Modulus*>(moduli.data());
  for (i64 i = 0; i < count; ++i) {
    const i64 length =
        shortest_recurrence(sequences.data() + i * terms, terms, m[i], out.data() + i * (terms + 1));
    lengths.data()[i] = static_cast<u64>(length);
  }
}

}  // namespace

void bind_recurrences(nb::module_& module) {
  module.def("shortest_recurrences", shortest_recurrences<u32, Modulus>);
  module.def("shortest_recurrences", shortest_recurrences<u64, WideModulus>);
}

}  // namespace rns
