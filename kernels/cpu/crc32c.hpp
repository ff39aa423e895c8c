// The CRC-32C of bytes.
#pragma once

#include <cstddef>

#include "rns/base.cuh"

namespace rns {

// The checksum of what one is of, 0 of nothing, with bytes after it.
u32 crc32c(u32 checksum, const u8* bytes, std::size_t count);

}  // namespace rns
