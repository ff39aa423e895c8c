// Words of a chunk's file, read, checksummed and compared with the last ones of their rows in one go; and
// bytes of files, which Python reads in several calls of the system, after each of which a thread waits for
// its lock.
//
// Each piece of words goes through all three while it is in the core's cache. In Python the threads that do
// so wait for its lock between any two of them.
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "bindings.hpp"
#include "check.hpp"
#include "crc32c.hpp"
#include "file_bytes.hpp"

namespace rns {

namespace {

constexpr i64 kPieceWords = 1 << 16;

// Whether words from `first` of a matrix on are at most their rows' last ones.
bool are_valid(const u32* words, i64 first, i64 count, i64 width, const u32* last) {
  while (count > 0) {
    const i64 row = first / width, part = std::min(count, (row + 1) * width - first);
    if (greatest(words, part) > last[row]) return false;
    words += part;
    first += part;
    count -= part;
  }
  return true;
}

// Bytes that were read, fewer at the end of the file, or -errno; their checksum; whether all are valid.
std::tuple<i64, u32, bool> read_checked(int file, u32* words, i64 count, i64 width, const u32* last) {
  u32 checksum = 0;
  bool valid = last != nullptr;
  for (i64 first = 0; first < count; first += kPieceWords) {
    const i64 part = std::min(kPieceWords, count - first);
    u8* const content = reinterpret_cast<u8*>(words + first);
    const i64 found = repeat(read, file, content, 4 * part);
    if (found != 4 * part) return {found < 0 ? found : 4 * first + found, checksum, false};
    checksum = crc32c(checksum, content, static_cast<std::size_t>(found));
    valid = valid && are_valid(words + first, first, part, width, last);
  }
  return {4 * count, checksum, valid};
}

// The first bytes of a file, or -errno.
nb::object read_first(const nb::bytes& path, i64 most) {
  const std::string name(path.c_str(), path.size());
  std::optional<RegularFile> file;
  {
    nb::gil_scoped_release release;
    file.emplace(name);
  }
  const i64 size = std::min(file->size, most);
  if (size < 0) return nb::int_(size);
  const auto content = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)));
  if (!content.is_valid()) nb::raise_python_error();
  char* const bytes = PyBytes_AsString(content.ptr());
  i64 found = 0;
  {
    nb::gil_scoped_release release;
    found = repeat(read, file->descriptor, bytes, size);
    file.reset();
  }
  if (found < 0) return nb::int_(found);
  return found == size ? content : nb::bytes(bytes, static_cast<std::size_t>(found));
}

}  // namespace

// `last` has a word for each row, or none: then nothing is known to be valid.
void bind_checked_read(nb::module_& module) {
  module.def("read_first", read_first);
  module.def("read_checked", [](int file, MutableMatrix32 rows, const Vector32& last) {
    const i64 height = static_cast<i64>(rows.shape(0)), width = static_cast<i64>(rows.shape(1));
    const i64 given = static_cast<i64>(last.shape(0));
    require(given == 0 || given == height, "one word for each row is needed");
    nb::gil_scoped_release release;
    return read_checked(file, rows.data(), height * width, width, given == 0 ? nullptr : last.data());
  });
}

}  // namespace rns
