// Declares source files in memory, and positions in them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kpkg::compiler {

/// A half-open range of bytes [begin, end) of one file. `file` is an index into the SourceManager.
struct SourceRange {
  static constexpr uint32_t noFile = UINT32_MAX;
  uint32_t file = noFile;
  uint32_t begin = 0;
  uint32_t end = 0;

  bool isValid() const { return file != noFile; }
  /// Returns the smallest range that covers both. An invalid one is ignored.
  SourceRange to(SourceRange last) const;
  /// Return the empty range at the start or the end.
  SourceRange atBegin() const { return {file, begin, begin}; }
  SourceRange atEnd() const { return {file, end, end}; }
  friend bool operator==(const SourceRange &, const SourceRange &) = default;
};

/// A position for people. Both count from 1; `column` counts code points, and a tab is one.
struct LineColumn {
  uint32_t line = 1;
  uint32_t column = 1;
};

/// One file: its name as the user wrote it, its bytes, and the starts of its lines.
class SourceFile {
public:
  SourceFile(uint32_t id, std::string path, std::string text);
  uint32_t id() const { return fileId; }
  const std::string &path() const { return filePath; }
  std::string_view text() const { return contents; }
  uint32_t lineCount() const { return lineStarts.size(); }
  /// Returns the line and column of a byte offset. Larger offsets mean the end.
  LineColumn lineColumn(uint32_t offset) const;
  /// Returns the text of a line (from 1) without its line end; empty if there is no such line.
  std::string_view line(uint32_t number) const;
  /// Returns the byte offset at which a line (from 1) starts.
  uint32_t lineStart(uint32_t number) const;
  std::string_view slice(SourceRange range) const;
  SourceRange wholeRange() const { return {fileId, 0, static_cast<uint32_t>(contents.size())}; }

private:
  uint32_t fileId;
  std::string filePath;
  std::string contents;
  std::vector<uint32_t> lineStarts;
};

/// Owns the source files of one compilation. Files keep their address and their id.
class SourceManager {
public:
  /// Larger files are refused: positions have 32 bits, and kernel sources are far smaller.
  static constexpr uint64_t maxFileBytes = 16u << 20;

  /// Adds text in memory. `path` is the name to print. Text beyond maxFileBytes is truncated: check the size before.
  const SourceFile &add(std::string path, std::string text);
  /// Reads a file. A second load of the same path returns the same file. Null if it cannot be read or is too large;
  /// `reason` then says why, in words for a diagnostic.
  const SourceFile *load(const std::string &path, std::string &reason);
  const SourceFile &file(uint32_t id) const { return files[id]; }
  size_t fileCount() const { return files.size(); }
  /// Returns the sorted paths of files that were read from disk.
  std::vector<std::string> loadedPaths() const;
  /// Returns "softmax.k:12:7", or "<unknown>" for an invalid range.
  std::string describe(SourceRange range) const;

private:
  std::deque<SourceFile> files;
  std::map<std::string, uint32_t> loaded;
};

} // namespace kpkg::compiler
