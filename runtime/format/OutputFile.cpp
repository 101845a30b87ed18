// Writes a file completely or not at all.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/OutputFile.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <sys/stat.h>
#include <unistd.h>

namespace kpkg::format {

namespace {

/// An error text; empty without an error.
using Problem = std::string;

Problem lastProblem() { return std::strerror(errno); }

std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

/// Replaces `path` by the target of its links, which need not exist.
Problem followLinks(std::string &path) {
  constexpr int most = 40; // as the kernel's own limit
  for (int i = 0; i < most; ++i) {
    struct stat status = {};
    if (::lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode))
      return {}; // errors of a missing file are reported when it is created
    char target[4096];
    ssize_t size = ::readlink(path.c_str(), target, sizeof target);
    if (size < 0)
      return lastProblem();
    if (size_t(size) == sizeof target)
      return std::strerror(ENAMETOOLONG);
    std::string next(target, size_t(size));
    path = next.starts_with('/') ? next : folderOf(path) + "/" + next;
  }
  return std::strerror(ELOOP);
}

Problem writeAll(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written >= 0)
      bytes.remove_prefix(size_t(written));
    else if (errno != EINTR)
      return lastProblem();
  }
  return {};
}

Problem writeThrough(const std::string &path, std::string_view bytes) {
  int descriptor = ::open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
  if (descriptor < 0)
    return lastProblem();
  Problem problem = writeAll(descriptor, bytes);
  if (::close(descriptor) != 0 && problem.empty())
    problem = lastProblem();
  return problem;
}

/// Creates a file in `folder` with the process' default permissions. Its name does not contain the final one, which may
/// be as long as names can be.
int createBeside(const std::string &folder, std::string &path) {
  std::random_device random;
  for (;;) {
    char name[32];
    std::snprintf(name, sizeof name, "/.kpkg-%08x%08x", random(), random());
    path = folder + name;
    int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0 || errno != EEXIST)
      return descriptor;
  }
}

Problem replaceWhole(const std::string &path, std::string_view bytes) {
  std::string folder = folderOf(path), temporary;
  int descriptor = createBeside(folder, temporary);
  if (descriptor < 0) {
    bool hasFolder = errno != ENOENT && errno != ENOTDIR;
    Problem why = lastProblem();
    return hasFolder ? "cannot make a file in '" + folder + "': " + why : why;
  }
  Problem problem = writeAll(descriptor, bytes);
  if (problem.empty() && ::fsync(descriptor) != 0)
    problem = lastProblem();
  if (::close(descriptor) != 0 && problem.empty())
    problem = lastProblem();
  if (problem.empty() && std::rename(temporary.c_str(), path.c_str()) != 0)
    problem = lastProblem();
  if (!problem.empty())
    ::unlink(temporary.c_str());
  return problem;
}

Problem write(std::string path, std::string_view bytes) {
  if (path == "-") {
    std::fflush(stdout); // printed text comes first
    return writeAll(STDOUT_FILENO, bytes);
  }
  if (Problem problem = followLinks(path); !problem.empty())
    return problem;
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0)
    return errno == ENOENT ? replaceWhole(path, bytes) : lastProblem();
  if (S_ISDIR(status.st_mode))
    return std::strerror(EISDIR);
  if (S_ISCHR(status.st_mode) || S_ISFIFO(status.st_mode))
    return writeThrough(path, bytes);
  if (!S_ISREG(status.st_mode))
    return "it is neither a file nor a character device nor a FIFO";
  // The superuser may write to any file, but a read-only file was protected on purpose.
  if ((status.st_mode & 0222) == 0 || ::access(path.c_str(), W_OK) != 0)
    return "the file is read-only";
  return replaceWhole(path, bytes);
}

} // namespace

Status writeFile(const std::string &path, std::string_view bytes) {
  Problem problem = write(path, bytes);
  if (problem.empty())
    return {};
  return Error{KPKG_ERROR_FILE, "cannot write '" + path + "': " + problem, {}, {}, {}};
}

} // namespace kpkg::format
