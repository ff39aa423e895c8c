// What kernels/cuda/matrix_units.cuh has, on the host: copies come at once, and a warp's threads meet to read
// what the others give.
#pragma once

#include <rns/base.cuh>

namespace rns {

inline const char* shared_base;
inline u32 published[1024][6];

// What each thread gives is there for the warp until it meets again.
inline const u32 (*publish(const u32* words, i32 count))[6] {
  std::copy(words, words + count, published[threadIdx.x]);
  __syncwarp();
  return published + threadIdx.x / 32 * 32;
}

// Of the one array in shared memory.
inline u32 shared_address(const void* x) {
  shared_base = static_cast<const char*>(x);
  return 0;
}

inline void copy_async(u32 to, const void* from) {
  std::memcpy(const_cast<char*>(shared_base) + to, from, 16);
}
inline void end_group() {}
template <i32 count>
void wait_for_groups() {}

inline void load_matrices(u32 address, u32& a, u32& b, u32& c, u32& d) {
  const u32(*warp)[6] = publish(&address, 1);
  const i32 row = threadIdx.x % 32 / 4, byte = threadIdx.x % 4 * 4;
  u32* words[] = {&a, &b, &c, &d};
  for (i32 i = 0; i < 4; ++i) std::memcpy(words[i], shared_base + warp[i * 8 + row][0] + byte, 4);
  __syncwarp();
}

template <class Byte>
void multiply_add_as(i32 (&sums)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  const u32 words[] = {a[0], a[1], a[2], a[3], b0, b1};
  const u32(*warp)[6] = publish(words, 6);
  const auto number = [](u32 word, i32 k) { return static_cast<Byte>(word >> (8 * (k % 4))); };
  for (i32 i = 0; i < 4; ++i) {
    const i32 row = threadIdx.x % 32 / 4 + i / 2 * 8, column = threadIdx.x % 4 * 2 + i % 2;
    for (i32 k = 0; k < 32; ++k) {
      const i32 lane = k % 16 / 4, upper = k / 16;
      sums[i] += number(warp[row % 8 * 4 + lane][row / 8 + 2 * upper], k) *
                 number(warp[column * 4 + lane][4 + upper], k);
    }
  }
  __syncwarp();
}

inline void multiply_add(i32 (&sums)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  multiply_add_as<i8>(sums, a, b0, b1);
}

inline void multiply_add_bytes(i32 (&sums)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  multiply_add_as<u8>(sums, a, b0, b1);
}

}  // namespace rns
