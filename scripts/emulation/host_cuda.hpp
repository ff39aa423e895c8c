// CUDA's words for a compiler of the host: a block is as many threads as it has on a GPU, blocks come one
// after the other. Warps meet at shuffles, blocks at __syncthreads, as they must on a GPU.
#pragma once

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__ static

struct Dim3 {
  unsigned x = 0, y = 0, z = 0;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) ulonglong2 {
  unsigned long long x, y;
};
struct alignas(4) uchar4 {
  unsigned char x, y, z, w;
};

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
inline thread_local Dim3 threadIdx, blockIdx;
inline Dim3 blockDim, gridDim;

namespace emulation {

constexpr unsigned kWarp = 32;
inline std::unique_ptr<std::barrier<>> block;
inline std::vector<std::unique_ptr<std::barrier<>>> warps;
inline unsigned long long lanes[1024];

// What each thread of a warp gives is read by those that want it.
template <class T>
T exchange(T value, unsigned lane) {
  static_assert(sizeof(T) <= sizeof lanes[0]);
  const unsigned warp = threadIdx.x / kWarp, own = threadIdx.x % kWarp;
  std::memcpy(&lanes[threadIdx.x], &value, sizeof value);
  warps[warp]->arrive_and_wait();
  const unsigned from = warp * kWarp + (lane < kWarp && warp * kWarp + lane < blockDim.x ? lane : own);
  std::memcpy(&value, &lanes[from], sizeof value);
  warps[warp]->arrive_and_wait();
  return value;
}

// One bit of each thread of a warp.
inline unsigned ballot(bool bit) {
  const unsigned first = threadIdx.x / kWarp * kWarp, end = std::min(first + kWarp, blockDim.x);
  unsigned bits = 0;
  lanes[threadIdx.x] = bit;
  warps[first / kWarp]->arrive_and_wait();
  for (unsigned t = first; t < end; ++t) bits |= static_cast<unsigned>(lanes[t] & 1) << (t - first);
  warps[first / kWarp]->arrive_and_wait();
  return bits;
}

template <class... P, std::size_t... I>
void call(void (*kernel)(P...), void** arguments, std::index_sequence<I...>) {
  kernel(*static_cast<P*>(arguments[I])...);
}

// Runs a grid. A thread that returns is waited for no more.
template <class... P>
void run(void (*kernel)(P...), unsigned blocks, unsigned threads, void** arguments) {
  blockDim = {threads, 1, 1};
  gridDim = {blocks, 1, 1};
  for (unsigned b = 0; b < blocks; ++b) {
    block = std::make_unique<std::barrier<>>(threads);
    warps.clear();
    for (unsigned t = 0; t < threads; t += kWarp) {
      warps.push_back(std::make_unique<std::barrier<>>(threads - t < kWarp ? threads - t : kWarp));
    }
    std::vector<std::thread> team;
    for (unsigned t = 0; t < threads; ++t) {
      team.emplace_back([=] {
        threadIdx = {t, 0, 0};
        blockIdx = {b, 0, 0};
        call(kernel, arguments, std::index_sequence_for<P...>{});
        block->arrive_and_drop();
        warps[t / kWarp]->arrive_and_drop();
      });
    }
    for (std::thread& thread : team) thread.join();
  }
}

}  // namespace emulation

inline void __syncthreads() { emulation::block->arrive_and_wait(); }
inline void __syncwarp(unsigned = ~0u) { emulation::warps[threadIdx.x / 32]->arrive_and_wait(); }
inline void __threadfence() {}

template <class T>
T __ldg(const T* x) {
  return *x;
}
template <class T>
T __ldcs(const T* x) {
  return *x;
}
template <class T>
T __ldcg(const T* x) {
  return *x;
}
template <class T>
void __stcs(T* x, T value) {
  *x = value;
}
template <class T>
T __shfl_xor_sync(unsigned, T x, unsigned mask) {
  return emulation::exchange(x, threadIdx.x % 32 ^ mask);
}
template <class T>
T __shfl_down_sync(unsigned, T x, unsigned by) {
  return emulation::exchange(x, threadIdx.x % 32 + by);
}
template <class T>
T __shfl_up_sync(unsigned, T x, unsigned by) {
  return emulation::exchange(x, threadIdx.x % 32 - by);
}
template <class T>
T __shfl_sync(unsigned, T x, unsigned from) {
  return emulation::exchange(x, from % 32);
}
inline unsigned __ballot_sync(unsigned, bool bit) { return emulation::ballot(bit); }
inline bool __any_sync(unsigned, bool bit) { return emulation::ballot(bit) != 0; }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
inline unsigned __brev(unsigned x) {
  unsigned result = 0;
  for (int k = 0; k < 32; ++k) result |= (x >> k & 1) << (31 - k);
  return result;
}
inline unsigned long long __brevll(unsigned long long x) {
  unsigned long long result = 0;
  for (int k = 0; k < 64; ++k) result |= (x >> k & 1) << (63 - k);
  return result;
}
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
template <class T, class U>
T atomicAdd(T* x, U value) {
  return std::atomic_ref<T>(*x).fetch_add(static_cast<T>(value));
}
template <class T>
T atomicMin(T* x, T value) {
  std::atomic_ref<T> there(*x);
  T found = there.load();
  while (value < found && !there.compare_exchange_weak(found, value)) {
  }
  return found;
}
template <class T>
T atomicMax(T* x, T value) {
  std::atomic_ref<T> there(*x);
  T found = there.load();
  while (value > found && !there.compare_exchange_weak(found, value)) {
  }
  return found;
}
inline unsigned atomicInc(unsigned* x, unsigned most) {
  std::atomic_ref<unsigned> there(*x);
  unsigned found = there.load();
  while (!there.compare_exchange_weak(found, found >= most ? 0 : found + 1)) {
  }
  return found;
}
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
using std::max;
using std::min;
