// Shows progress such as "[12/48] gemm_tiles[...]" on one line of a terminal.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <cstdio>
#include <fmt/format.h>
#include <functional>
#include <string>
#include <unistd.h>

namespace kpkg::command {

/// Draws on standard error if that is a terminal, else nothing. Its destructor erases the line.
class ProgressLine {
public:
  ProgressLine() : isTerminal(isatty(STDERR_FILENO)) {}
  ~ProgressLine() {
    if (drawn)
      fmt::print(stderr, "\r\033[K");
  }
  /// Returns null if nothing would be drawn.
  std::function<void(size_t done, size_t total, const std::string &what)> callback() {
    if (!isTerminal)
      return nullptr;
    return [this](size_t done, size_t total, const std::string &what) {
      drawn = true;
      fmt::print(stderr, "\r\033[K[{}/{}] {}", done, total, what.substr(0, 100));
    };
  }

private:
  bool isTerminal;
  bool drawn = false;
};

} // namespace kpkg::command
