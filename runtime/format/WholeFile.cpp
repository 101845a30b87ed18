// Reads a whole file into memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/WholeFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/stat.h>
#include <unistd.h>

namespace kpkg::format {

Result<WholeFile> WholeFile::open(const std::string &path) {
  auto failure = [&](const std::string &what) {
    return Error{KPKG_ERROR_FILE, "cannot read '" + path + "': " + what, {}, {}, {}};
  };
  // Without O_NONBLOCK, opening a FIFO waits for a writer.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return failure(std::strerror(errno));
  struct Closer {
    int descriptor;
    ~Closer() { ::close(descriptor); }
  } closer{descriptor};
  struct stat status;
  if (::fstat(descriptor, &status) != 0)
    return failure(std::strerror(errno));
  if (!S_ISREG(status.st_mode))
    return failure("it is not a regular file");
  WholeFile file;
  file.memory.reset(new (std::nothrow) char[size_t(status.st_size)]);
  if (!file.memory)
    return Error{KPKG_ERROR_MEMORY, "no memory for '" + path + "'", {}, {}, {}};
  while (file.size < size_t(status.st_size)) {
    ssize_t count = ::read(descriptor, file.memory.get() + file.size, size_t(status.st_size) - file.size);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return failure(std::strerror(errno));
    if (count == 0)
      return failure("it became shorter while it was read");
    file.size += size_t(count);
  }
  return file;
}

} // namespace kpkg::format
