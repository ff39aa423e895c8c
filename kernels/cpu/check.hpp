// What tells whether words are residues.
#pragma once

#include "rns/base.cuh"

namespace rns {

// The greatest of some words; 0 of none.
u32 greatest(const u32* x, i64 width);

}  // namespace rns
