// Declares the reading of -D, which several commands take.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace kpkg::command {

/// Appends the name and the value of each NAME=VALUE. Returns false after a message.
bool readDefines(const std::vector<std::string> &texts, std::vector<std::pair<std::string, std::string>> &defines);

} // namespace kpkg::command
