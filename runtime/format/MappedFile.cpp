// A whole file, mapped read-only.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/MappedFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kpkg::format {

Result<MappedFile> MappedFile::open(const std::string &path) {
  auto failure = [&](const std::string &what) {
    return Error{KPKG_ERROR_FILE, "cannot read '" + path + "': " + what, {}, {}, {}};
  };
  // Of a FIFO without O_NONBLOCK, opening waits for someone who writes.
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
  MappedFile file;
  if (status.st_size == 0)
    return file;
  void *address = ::mmap(nullptr, size_t(status.st_size), PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (address == MAP_FAILED)
    return failure(std::strerror(errno));
  file.view = {static_cast<const char *>(address), size_t(status.st_size)};
  return file;
}

MappedFile::~MappedFile() {
  if (!view.empty())
    ::munmap(const_cast<char *>(view.data()), view.size());
}

} // namespace kpkg::format
