// Bytes of files, whole.
#pragma once

#include <unistd.h>

#include <cerrno>

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

}  // namespace rns
