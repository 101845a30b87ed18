// Reads -D NAME=VALUE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/Defines.h"
#include <cstdio>
#include <fmt/format.h>

namespace kpkg::command {

bool readDefines(const std::vector<std::string> &texts, std::vector<std::pair<std::string, std::string>> &defines) {
  for (const std::string &text : texts) {
    size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      fmt::print(stderr, "kpkg: error: -D {}: write NAME=VALUE\n", text);
      return false;
    }
    defines.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return true;
}

} // namespace kpkg::command
