// Bytes of files, whole.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "rns/base.cuh"

namespace rns {

// Bytes that a function of the operating system has read or written, fewer at the end of a file; -errno.
template <typename Function, typename Byte>
i64 repeat(Function function, int file, Byte* content, i64 bytes) {
  i64 done = 0;
  while (done < bytes) {
    const ssize_t more = function(file, content + done, static_cast<std::size_t>(bytes - done));
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return -static_cast<i64>(errno);
    if (more == 0) break;
    done += more;
  }
  return done;
}

// A file that is open to be read, until this is gone.
class RegularFile {
 public:
  explicit RegularFile(const std::string& path) : descriptor(open_to_read(path)) {
    struct stat status{};
    if (descriptor < 0 || fstat(descriptor, &status) != 0) {
      size = -static_cast<i64>(errno);
    } else if (S_ISREG(status.st_mode)) {
      size = status.st_size;
    } else {
      size = S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL;
    }
  }
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;
  ~RegularFile() {
    if (descriptor >= 0) close(descriptor);
  }

  const int descriptor;
  i64 size;  // in bytes; -errno if it cannot be read, which for a pipe or a device is -EINVAL

 private:
  static int open_to_read(const std::string& path) {
    int file = -1;
    errno = ENOENT;  // of a name with a zero, where the system would open what is named before it
    if (path.find('\0') != std::string::npos) return file;
    do {  // again after a signal, which ends it on some file systems of networks
      // A pipe without a writer would not open otherwise.
      file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    } while (file < 0 && errno == EINTR);
    return file;
  }
};

}  // namespace rns
