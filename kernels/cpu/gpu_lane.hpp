// Functions of CUDA's driver, and what one thread copies with between the memory of the host and a GPU's.
#pragma once

#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "rns/base.cuh"

namespace rns {

// Functions of CUDA's driver, which whoever makes this has loaded, by their addresses in this order; 0 is
// success. Addresses of the GPU are integers.
struct Driver {
  using Addresses = std::array<u64, 12>;

  explicit Driver(const Addresses& addresses) {
    static_assert(sizeof(Driver) == sizeof(Addresses), "a function is as long as its address");
    std::memcpy(static_cast<void*>(this), addresses.data(), sizeof(Driver));
  }

  int (*copy_to_gpu)(u64 target, const void* source, std::size_t bytes, void* stream);
  int (*copy_from_gpu)(void* target, u64 source, std::size_t bytes, void* stream);
  int (*set_context)(void* context);
  int (*make_pinned)(void** memory, std::size_t bytes);
  int (*make_stream)(void** stream, unsigned flags);
  int (*await_stream)(void* stream);
  int (*make_event)(void** event, unsigned flags);
  int (*record_event)(void* event, void* stream);
  int (*await_event)(void* event);
  int (*hold_stream)(void* stream, void* event, unsigned flags);
  int (*end_stream)(void* stream);
  int (*end_event)(void* event);
};

inline void check_cuda(int error, const char* what) {
  if (error != 0) throw std::runtime_error("CUDA's error " + std::to_string(error) + " of " + what);
}

inline void* pointer_of(u64 handle) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(handle)); }

// Pinned memory for some pieces on their way, an event for each, and a stream. It lives as long as the
// process.
//
// Copies on a stream that threads share would come one after the other, each after an event of another.
class Lane {
 public:
  Lane(const Driver& driver, void* context, i64 slots, i64 bytes)
      : slots(slots), bytes(bytes), driver_(driver), events_(static_cast<std::size_t>(slots)) {
    constexpr unsigned kNonBlocking = 1, kWithoutTiming = 2;
    check_cuda(driver_.set_context(context), "cuCtxSetCurrent");
    try {
      check_cuda(driver_.make_stream(&stream_, kNonBlocking), "cuStreamCreate");
      // Threads that sleep while they wait, which they do where the bus is the limit, wake too late.
      for (void*& event : events_) check_cuda(driver_.make_event(&event, kWithoutTiming), "cuEventCreate");
      check_cuda(driver_.make_pinned(&memory_, static_cast<std::size_t>(slots * bytes)), "cuMemAllocHost");
    } catch (...) {  // the next file tries again
      for (void* event : events_) {
        if (event != nullptr) driver_.end_event(event);
      }
      if (stream_ != nullptr) driver_.end_stream(stream_);
      throw;
    }
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  u8* memory(i64 piece) const { return static_cast<u8*>(memory_) + piece % slots * bytes; }

  void* event(i64 piece) const { return events_[static_cast<std::size_t>(piece % slots)]; }

  // Copies that are queued from now on come after an event.
  void follow(void* event) const { check_cuda(driver_.hold_stream(stream_, event, 0), "cuStreamWaitEvent"); }

  void copy_to_gpu(i64 piece, u64 target, i64 count) const {
    const int error = driver_.copy_to_gpu(target, memory(piece), static_cast<std::size_t>(count), stream_);
    check_cuda(error, "cuMemcpyHtoDAsync");
    check_cuda(driver_.record_event(event(piece), stream_), "cuEventRecord");
  }

  void copy_from_gpu(i64 piece, u64 source, i64 count) const {
    const int error = driver_.copy_from_gpu(memory(piece), source, static_cast<std::size_t>(count), stream_);
    check_cuda(error, "cuMemcpyDtoHAsync");
    check_cuda(driver_.record_event(event(piece), stream_), "cuEventRecord");
  }

  // For the copy that the slot of a piece was used for last, if there was one.
  void await(i64 piece) const { check_cuda(driver_.await_event(event(piece)), "cuEventSynchronize"); }

  // For all copies, also one whose event was not recorded.
  void await_all() const noexcept { driver_.await_stream(stream_); }

  const i64 slots, bytes;

 private:
  const Driver driver_;
  void* stream_ = nullptr;
  std::vector<void*> events_;
  void* memory_ = nullptr;
};

}  // namespace rns
