// The loops over a tile that give the terms of the Chinese remainder theorem.
#include "crt_terms.hpp"

namespace rns {

namespace {

RNS_VECTORISED void multiply_row(const u32* x, i64 width, Factor w, u32 last, Row& u) {
  for (i64 j = 0; j < width; ++j) u.x[j] = mod_mul(x[j], w, last);
}

}  // namespace

void load_terms(const Residues& residues, const u32* last, const Factor* inverses, i64 first, i64 width,
                std::vector<Row>& terms) {
  for (i64 i = 0; i < residues.moduli; ++i)
    multiply_row(residues.row(i) + first, width, inverses[i], last[i], terms[i]);
}

RNS_VECTORISED void find_quotients(const SumRow* fractions, u32 start, u32 ambiguous_below, i64 width, Row& q,
                                   u8* ambiguous) {
  for (i64 j = 0; j < width; ++j) {
    const CrtQuotient quotient = crt_quotient(fractions[0].at(j), fractions[1].at(j), start);
    q.x[j] = quotient.q;
    ambiguous[j] = quotient.fraction < ambiguous_below ? 1 : 0;
  }
}

}  // namespace rns
