// Bytes of files into the memory of a GPU and back, through pinned memory of the host.
//
// Threads of this file read the pieces of one file after the other, so that each is there as soon as can be:
// whoever asked for it works on while the next ones are read, and Python's lock is not needed for a piece.
#include <nanobind/stl/array.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "bindings.hpp"
#include "file_bytes.hpp"
#include "gpu_lane.hpp"

namespace rns {

namespace {

// A file that is read. What changes is guarded by the lock of `Files`.
struct Request {
  Request(int file, u64 target, i64 bytes, void* ready)
      : file(file), target(target), bytes(bytes), ready(ready) {}

  bool is_done() const { return running == 0 && next >= bytes; }

  const int file;
  const u64 target;
  const i64 bytes;
  void* const ready;  // an event: nothing else uses the target any more

  i64 next = 0;     // where the next piece begins
  i64 running = 0;  // pieces that threads are at
  i64 found = 0;    // bytes; -errno if the file cannot be read
  std::exception_ptr failure;
  std::map<const Lane*, void*> copied;  // the events after the last copies
  std::condition_variable done;
};

struct Piece {
  Request& request;
  const i64 start, bytes;
  const bool is_first;  // of the request on this lane
};

// Reads a piece and queues its copy; gives the bytes that were read, or -errno.
i64 read_piece(const Piece& piece, const Lane& lane, i64 slot) {
  const Request& request = piece.request;
  u8* const memory = lane.memory(slot);
  const auto read_at = [&](int file, u8* content, std::size_t bytes) {
    return pread(file, content, bytes, piece.start + (content - memory));
  };
  try {
    lane.await(slot);
    const i64 found = repeat(read_at, request.file, memory, piece.bytes);
    if (found <= 0) return found;
    if (piece.is_first) lane.follow(request.ready);
    lane.copy_to_gpu(slot, request.target + static_cast<u64>(piece.start), found);
    return found;
  } catch (...) {
    lane.await_all();
    throw;
  }
}

// What threads share that read and write. They outlive the object of Python, whose end waits for none.
class Files : public std::enable_shared_from_this<Files> {
 public:
  Files(const Driver::Addresses& functions, u64 context, const std::array<i64, 3>& sizes)
      : driver_(functions),
        context_(pointer_of(context)),
        slots_(sizes[0]),
        bytes_(sizes[1]),
        most_(sizes[2]) {
    require(slots_ > 0 && bytes_ > 0 && most_ > 0, "there must be slots, bytes in each, and threads");
  }

  // No thread begins anything more.
  void stop() {
    const std::lock_guard<std::mutex> held(lock_);
    stopped_ = true;
    begun_.notify_all();
  }

  i64 read(const std::string& path, u64 target, i64 bytes, u64 ready, u64 follower) {
    const RegularFile file(path);
    if (file.size != bytes || bytes == 0) return file.size;
    Request request(file.descriptor, target, bytes, pointer_of(ready));
    {
      std::unique_lock<std::mutex> held(lock_);
      start_threads((bytes + bytes_ - 1) / bytes_);
      requests_.push_back(&request);
      begun_.notify_all();
      request.done.wait(held, [&] { return request.is_done(); });
    }
    order(request, pointer_of(follower));
    if (request.failure) std::rethrow_exception(request.failure);
    return request.found;
  }

  // All threads are begun, and take the memory that the first files would wait for.
  void prepare() {
    const std::lock_guard<std::mutex> held(lock_);
    start_threads(most_);
  }

  i64 write(int file, u64 source, i64 bytes, u64 ready) {
    const Writer writer(*this);
    const Lane& lane = *writer.lane;
    lane.follow(pointer_of(ready));
    const i64 count = (bytes + bytes_ - 1) / bytes_;
    const auto size = [&](i64 piece) { return std::min(bytes_, bytes - piece * bytes_); };
    const auto queue = [&](i64 piece) {
      lane.copy_from_gpu(piece, source + static_cast<u64>(piece * bytes_), size(piece));
    };
    for (i64 piece = 0; piece < std::min(count, slots_); ++piece) queue(piece);
    for (i64 piece = 0; piece < count; ++piece) {
      lane.await(piece);
      const i64 written = repeat(::write, file, lane.memory(piece), size(piece));
      if (written != size(piece)) return written < 0 ? written : -EIO;
      if (piece + slots_ < count) queue(piece + slots_);
    }
    return 0;
  }

 private:
  // As many as there may be, until so many have nothing to do. Whoever calls holds the lock.
  void start_threads(i64 wanted) {
    for (; threads_ < most_ && idle_ < wanted; ++threads_, ++idle_) {
      std::thread([files = shared_from_this()] { files->serve(); }).detach();
    }
  }

  // A lane that nobody else writes with, on which nothing is when this is gone.
  struct Writer {
    explicit Writer(Files& files) : files(files) {
      {
        const std::lock_guard<std::mutex> held(files.lock_);
        if (!files.writers_.empty()) {
          lane = std::move(files.writers_.back());
          files.writers_.pop_back();
        }
      }
      if (!lane) lane = files.make_lane();
    }
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;
    ~Writer() {
      lane->await_all();
      const std::lock_guard<std::mutex> held(files.lock_);
      files.writers_.push_back(std::move(lane));
    }

    Files& files;
    std::unique_ptr<Lane> lane;
  };

  std::unique_ptr<Lane> make_lane() const {
    return std::make_unique<Lane>(driver_, context_, slots_, bytes_);
  }

  // What is queued on a stream from now on comes after the copies of a request.
  void order(const Request& request, void* stream) const {
    try {
      for (const auto& [lane, event] : request.copied) {
        check_cuda(driver_.hold_stream(stream, event, 0), "cuStreamWaitEvent");
      }
    } catch (...) {
      for (const auto& [lane, event] : request.copied) lane->await_all();
      throw;
    }
  }

  // What a thread does: it reads pieces.
  void serve() {
    std::unique_ptr<Lane> lane;
    try {
      lane = make_lane();
    } catch (...) {
      leave(std::current_exception());
      return;
    }
    std::unique_lock<std::mutex> held(lock_);
    for (i64 slot = 0;; ++slot) {
      begun_.wait(held, [&] { return stopped_ || !requests_.empty(); });
      if (stopped_) return;
      const Piece piece = begin(*lane);
      held.unlock();
      i64 found = 0;
      std::exception_ptr failure;
      try {
        found = read_piece(piece, *lane, slot);
      } catch (...) {
        failure = std::current_exception();
      }
      held.lock();
      if (found > 0) piece.request.copied[lane.get()] = lane->event(slot);
      end(piece, found, failure);
    }
  }

  // A thread that could not be made; the last one takes what waits for it along.
  void leave(const std::exception_ptr& failure) {
    const std::lock_guard<std::mutex> held(lock_);
    --threads_, --idle_;
    while (threads_ == 0 && !requests_.empty()) {
      Request& request = *requests_.front();
      request.failure = failure;
      drop(request);
      if (request.is_done()) request.done.notify_one();
    }
  }

  Piece begin(const Lane& lane) {
    Request& request = *requests_.front();
    const i64 start = request.next, bytes = std::min(bytes_, request.bytes - start);
    request.next += bytes;
    if (request.next == request.bytes) requests_.pop_front();
    ++request.running, --idle_;
    return {request, start, bytes, request.copied.count(&lane) == 0};
  }

  void end(const Piece& piece, i64 found, const std::exception_ptr& failure) {
    Request& request = piece.request;
    --request.running, ++idle_;
    if (failure) request.failure = failure;
    if (request.found >= 0) request.found = found < 0 ? found : request.found + found;
    if (found < piece.bytes) drop(request);
    if (request.is_done()) request.done.notify_one();
  }

  // No piece of a request is begun any more.
  void drop(Request& request) {
    request.next = request.bytes;
    if (!requests_.empty() && requests_.front() == &request) requests_.pop_front();
  }

  const Driver driver_;
  void* const context_;
  const i64 slots_, bytes_, most_;

  std::mutex lock_;
  std::condition_variable begun_;
  std::deque<Request*> requests_;  // pieces are begun of the first one
  i64 threads_ = 0, idle_ = 0;
  bool stopped_ = false;
  std::vector<std::unique_ptr<Lane>> writers_;  // lanes that nobody writes with
};

// The object of Python.
struct GpuFiles {
  GpuFiles(const Driver::Addresses& functions, u64 context, const std::array<i64, 3>& sizes)
      : files(std::make_shared<Files>(functions, context, sizes)) {}
  GpuFiles(const GpuFiles&) = delete;
  GpuFiles& operator=(const GpuFiles&) = delete;
  ~GpuFiles() { files->stop(); }

  const std::shared_ptr<Files> files;
};

}  // namespace

// A file of another size than is wanted is not read: its size is given, or -errno.
void bind_gpu_files(nb::module_& module) {
  nb::class_<GpuFiles>(module, "GpuFiles")
      .def(nb::init<const Driver::Addresses&, u64, const std::array<i64, 3>&>())
      .def("prepare",
           [](GpuFiles& self) {
             nb::gil_scoped_release release;
             self.files->prepare();
           })
      .def("read",
           [](GpuFiles& self, const nb::bytes& path, u64 target, i64 bytes, u64 ready, u64 follower) {
             const std::string name(path.c_str(), path.size());
             nb::gil_scoped_release release;
             return self.files->read(name, target, bytes, ready, follower);
           })
      .def("write", [](GpuFiles& self, int file, u64 source, i64 bytes, u64 ready) {
        nb::gil_scoped_release release;
        return self.files->write(file, source, bytes, ready);
      });
}

}  // namespace rns
