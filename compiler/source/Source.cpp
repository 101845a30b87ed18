// Implements source files: loading, line tables, byte offset to line and column.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/source/Source.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace kpkg::compiler;

SourceRange SourceRange::to(SourceRange last) const {
  if (!isValid())
    return last;
  if (!last.isValid() || last.file != file)
    return *this;
  return {file, std::min(begin, last.begin), std::max(end, last.end)};
}

SourceFile::SourceFile(uint32_t id, std::string path, std::string text)
    : fileId(id), filePath(std::move(path)), contents(std::move(text)) {
  lineStarts.push_back(0);
  // "\n", "\r\n" and a lone "\r" each end a line.
  for (uint32_t i = 0; i < contents.size(); ++i) {
    bool crBeforeLf = contents[i] == '\r' && i + 1 < contents.size() && contents[i + 1] == '\n';
    if (contents[i] == '\n' || (contents[i] == '\r' && !crBeforeLf))
      lineStarts.push_back(i + 1);
  }
}

LineColumn SourceFile::lineColumn(uint32_t offset) const {
  offset = std::min<uint32_t>(offset, contents.size());
  auto next = std::upper_bound(lineStarts.begin(), lineStarts.end(), offset);
  uint32_t line = next - lineStarts.begin();
  uint32_t column = 1;
  for (uint32_t i = lineStarts[line - 1]; i < offset; ++i)
    column += (static_cast<unsigned char>(contents[i]) & 0xC0) != 0x80;
  return {line, column};
}

std::string_view SourceFile::line(uint32_t number) const {
  if (number == 0 || number > lineStarts.size())
    return {};
  uint32_t begin = lineStarts[number - 1];
  uint32_t end = number < lineStarts.size() ? lineStarts[number] : contents.size();
  while (end > begin && (contents[end - 1] == '\n' || contents[end - 1] == '\r'))
    --end;
  return std::string_view(contents).substr(begin, end - begin);
}

uint32_t SourceFile::lineStart(uint32_t number) const {
  return number == 0 || number > lineStarts.size() ? contents.size() : lineStarts[number - 1];
}

std::string_view SourceFile::slice(SourceRange range) const {
  uint32_t begin = std::min<uint32_t>(range.begin, contents.size());
  uint32_t end = std::clamp<uint32_t>(range.end, begin, contents.size());
  return std::string_view(contents).substr(begin, end - begin);
}

const SourceFile &SourceManager::add(std::string path, std::string text) {
  if (text.size() > maxFileBytes)
    text.resize(maxFileBytes);
  return files.emplace_back(static_cast<uint32_t>(files.size()), std::move(path), std::move(text));
}

namespace {

/// Reads a file from front to back; also pipes.
class Input {
public:
  /// Opens a file, and gives up after some time: opening a FIFO without a writer would block forever.
  bool open(const std::string &path, std::string &reason) {
    descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) {
      reason = std::strerror(errno);
      return false;
    }
    constexpr int patience = 2000; // milliseconds for a writer that has just started
    struct stat status = {};
    if (::fstat(descriptor, &status) == 0 && S_ISFIFO(status.st_mode)) {
      pollfd waiting = {descriptor, POLLIN, 0};
      char first;
      if (::poll(&waiting, 1, patience) == 0 &&
          ::read(descriptor, &first, 1) == 0) { // with a writer, read returns EAGAIN
        reason = "it is a FIFO that nobody writes to";
        return false;
      }
    }
    ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
    return true;
  }
  ~Input() {
    if (descriptor >= 0)
      ::close(descriptor);
  }
  /// Appends to `text` until it has more than `most` bytes or the input ends. Returns false after an error.
  bool readTo(std::string &text, size_t most) {
    char piece[1 << 16];
    while (text.size() <= most) {
      ssize_t size = ::read(descriptor, piece, sizeof piece);
      if (size == 0)
        return true;
      if (size > 0)
        text.append(piece, size_t(size));
      else if (errno != EINTR)
        return false;
    }
    return true;
  }

private:
  int descriptor = -1;
};

} // namespace

const SourceFile *SourceManager::load(const std::string &path, std::string &reason) {
  if (auto known = loaded.find(path); known != loaded.end())
    return &files[known->second];
  std::error_code error;
  auto status = std::filesystem::status(path, error);
  if (error || !std::filesystem::exists(status)) {
    reason = error ? error.message() : "no such file";
    return nullptr;
  }
  if (std::filesystem::is_directory(status)) {
    reason = "it is a directory";
    return nullptr;
  }
  Input input;
  if (!input.open(path, reason))
    return nullptr;
  std::string text;
  if (!input.readTo(text, maxFileBytes)) {
    reason = std::string("reading it failed: ") + std::strerror(errno);
    return nullptr;
  }
  if (text.size() > maxFileBytes) {
    reason = fmt::format("it is larger than {} MiB", maxFileBytes >> 20);
    return nullptr;
  }
  const SourceFile &file = add(path, std::move(text));
  loaded.emplace(path, file.id());
  return &file;
}

std::vector<std::string> SourceManager::loadedPaths() const {
  std::vector<std::string> paths;
  for (const auto &[path, id] : loaded)
    paths.push_back(path);
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string SourceManager::describe(SourceRange range) const {
  if (!range.isValid() || range.file >= files.size())
    return "<unknown>";
  const SourceFile &in = files[range.file];
  LineColumn at = in.lineColumn(range.begin);
  return fmt::format("{}:{}:{}", in.path(), at.line, at.column);
}
