// The terms of the Chinese remainder theorem for a tile of numbers: the u_i = |x_i w_i|, and q
// (rns/convert.cuh).
#pragma once

#include <vector>

#include "rns/convert.cuh"
#include "table_product.hpp"

namespace rns {

// The u_i of `width` numbers from `first` on, one row of `terms` for each modulus.
void load_terms(const Residues& residues, const u32* last, const Factor* inverses, i64 first, i64 width,
                std::vector<Row>& terms);

// q of each number, from the sums of the two words of its fractions and a start in units of 2^-32, and
// which are ambiguous: those whose fraction is below a limit in these units.
void find_quotients(const SumRow* fractions, u32 start, u32 ambiguous_below, i64 width, Row& q,
                    u8* ambiguous);

}  // namespace rns
