// Files that the commands write.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/Support/Error.h"
#include <string>

namespace kpkg::command {

/// A reader sees the old file or the new one, never a part. "-" is standard output.
llvm::Error writeAtomically(const std::string &path, const std::string &bytes);

} // namespace kpkg::command
