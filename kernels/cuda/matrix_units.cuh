// Instructions of GPUs since compute capability 8.0: copies to shared memory that need no registers, and
// products of 8-bit matrices. The emulation on the host has its own of the same names.
#pragma once

#include <rns/base.cuh>

namespace rns {

__device__ inline u32 shared_address(const void* x) { return static_cast<u32>(__cvta_generic_to_shared(x)); }

// 16 bytes, in the group of copies that is ended next.
__device__ inline void copy_async(u32 to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

__device__ inline void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Until all of a thread's groups but so many of the last ones have come.
template <i32 count>
__device__ void wait_for_groups() {
  asm volatile("cp.async.wait_group %0;" ::"n"(count) : "memory");
}

// Four matrices of 8 rows of 16 bytes: thread 8 i + r of a warp tells where row r of matrix i is, and has of
// each matrix bytes 4 (lane % 4) to 4 (lane % 4) + 3 of row lane / 4.
__device__ inline void load_matrices(u32 address, u32& a, u32& b, u32& c, u32& d) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
               : "r"(address)
               : "memory");
}

// Adds products of a 16 x 32 matrix, in four such matrices (down, then across), and the transposed of an 8 x
// 32 one: a thread has sums (lane / 4, 2 (lane % 4)), the next column, and both 8 rows below.
__device__ inline void multiply_add(i32 (&sums)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The same of bytes that are numbers from 0 to 255.
__device__ inline void multiply_add_bytes(i32 (&sums)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace rns
