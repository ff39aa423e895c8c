// Bytes of files into the memory of a GPU and back, through pinned memory of the host.
//
// Each piece is read, or written, while those before are copied. In Python the threads that do so wait for
// its lock at each piece, and with twelve of them for longer than the pieces take.
#include <nanobind/stl/array.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <string>

#include "bindings.hpp"
#include "file_bytes.hpp"

namespace rns {

namespace {

// Functions of CUDA's driver, which whoever calls has loaded; 0 is success. Addresses of the GPU are
// integers.
using CopyToGpu = int (*)(u64 target, const void* source, std::size_t bytes, void* stream);
using CopyFromGpu = int (*)(void* target, u64 source, std::size_t bytes, void* stream);
using RecordEvent = int (*)(void* event, void* stream);
using AwaitEvent = int (*)(void* event);
using HoldStream = int (*)(void* stream, void* event, unsigned flags);
using SetContext = int (*)(void* context);
using AwaitStream = int (*)(void* stream);

// Addresses of a copy, cuEventRecord, cuEventSynchronize, cuStreamWaitEvent, cuCtxSetCurrent and
// cuStreamSynchronize.
using Functions = std::array<u64, 6>;

// What a thread moves bytes with: a context, a stream of its own, and the one that it follows.
using Handles = std::array<u64, 3>;

using Slots = Written<u8, nb::ndim<2>, nb::c_contig>;

template <typename Function>
Function function_at(u64 address) {
  return reinterpret_cast<Function>(static_cast<std::uintptr_t>(address));
}

void* pointer_of(u64 handle) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(handle)); }

void check(int error, const char* what) {
  if (error != 0) throw std::runtime_error("CUDA's error " + std::to_string(error) + " of " + what);
}

// Pieces on their way, each in the slot of the one so many before it. None is when this is gone.
class Pieces {
 public:
  Pieces(const Slots& slots, const Vector64& events, const Handles& handles, const Functions& functions)
      : count(static_cast<i64>(slots.shape(0))),
        bytes(static_cast<i64>(slots.shape(1))),
        stream(pointer_of(handles[1])),
        slots_(slots.data()),
        events_(events.data()),
        record_(function_at<RecordEvent>(functions[1])),
        await_(function_at<AwaitEvent>(functions[2])),
        finish_(function_at<AwaitStream>(functions[5])) {
    require(count > 0 && bytes > 0 && static_cast<i64>(events.shape(0)) == count,
            "there must be an event for each slot");
    check(function_at<SetContext>(functions[4])(pointer_of(handles[0])), "cuCtxSetCurrent");
    // The first event is free until the first copy, and what waits for it no longer needs it then.
    check(record_(event(0), pointer_of(handles[2])), "cuEventRecord");
    check(function_at<HoldStream>(functions[3])(stream, event(0), 0), "cuStreamWaitEvent");
  }
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;
  // By the stream, for a copy may be on it whose event was not recorded.
  ~Pieces() { finish_(stream); }

  u8* memory(i64 piece) const { return slots_ + piece % count * bytes; }

  // The copy of the next piece is on the stream.
  void queued() {
    check(record_(event(queued_), stream), "cuEventRecord");
    ++queued_;
  }

  void await(i64 piece) const { check(await_(event(piece)), "cuEventSynchronize"); }

  void await_all() const {
    for (i64 slot = 0; slot < std::min(queued_, count); ++slot) await(slot);
  }

  const i64 count, bytes;
  void* const stream;

 private:
  void* event(i64 piece) const { return pointer_of(events_[piece % count]); }

  u8* slots_;
  const u64* events_;
  RecordEvent record_;
  AwaitEvent await_;
  AwaitStream finish_;
  i64 queued_ = 0;
};

// Bytes that are read from where a file stands on, at most `bytes`, or -errno.
i64 read_file(int file, u64 target, i64 bytes, CopyToGpu copy, Pieces& pieces) {
  i64 done = 0;
  for (i64 piece = 0; done < bytes; ++piece) {
    if (piece >= pieces.count) pieces.await(piece);
    const i64 wanted = std::min(pieces.bytes, bytes - done);
    const i64 found = repeat(read, file, pieces.memory(piece), wanted);
    if (found < 0) return found;
    if (found == 0) break;
    check(copy(target + static_cast<u64>(done), pieces.memory(piece), static_cast<std::size_t>(found),
               pieces.stream),
          "cuMemcpyHtoDAsync");
    pieces.queued();
    done += found;
  }
  pieces.await_all();
  return done;
}

// 0, or -errno.
i64 write_file(int file, u64 source, i64 bytes, CopyFromGpu copy, Pieces& pieces) {
  const i64 count = (bytes + pieces.bytes - 1) / pieces.bytes;
  const auto size = [&](i64 piece) { return std::min(pieces.bytes, bytes - piece * pieces.bytes); };
  const auto queue = [&](i64 piece) {
    const u64 from = source + static_cast<u64>(piece * pieces.bytes);
    check(copy(pieces.memory(piece), from, static_cast<std::size_t>(size(piece)), pieces.stream),
          "cuMemcpyDtoHAsync");
    pieces.queued();
  };
  for (i64 piece = 0; piece < std::min(count, pieces.count); ++piece) queue(piece);
  for (i64 piece = 0; piece < count; ++piece) {
    pieces.await(piece);
    const i64 written = repeat(write, file, pieces.memory(piece), size(piece));
    if (written != size(piece)) return written < 0 ? written : -EIO;
    if (piece + pieces.count < count) queue(piece + pieces.count);
  }
  return 0;
}

}  // namespace

// `events` has one for each slot.
void bind_gpu_files(nb::module_& module) {
  module.def("file_to_gpu", [](int file, u64 target, i64 bytes, Slots slots, const Vector64& events,
                               const Handles& handles, const Functions& functions) {
    nb::gil_scoped_release release;
    Pieces pieces(slots, events, handles, functions);
    return read_file(file, target, bytes, function_at<CopyToGpu>(functions[0]), pieces);
  });
  module.def("gpu_to_file", [](int file, u64 source, i64 bytes, Slots slots, const Vector64& events,
                               const Handles& handles, const Functions& functions) {
    nb::gil_scoped_release release;
    Pieces pieces(slots, events, handles, functions);
    return write_file(file, source, bytes, function_at<CopyFromGpu>(functions[0]), pieces);
  });
}

}  // namespace rns
