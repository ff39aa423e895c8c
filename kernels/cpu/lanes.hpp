// What kernels share that work on one number each of several matrices or systems in step.
#pragma once

#include "residues.hpp"

namespace rns {

// Words of a vector.
constexpr i64 kLanes = 16;

// Inverses of kLanes numbers, each modulo its prime; what is 0 stays 0.
void invert_together(u32* values, const u32* last);

}  // namespace rns
