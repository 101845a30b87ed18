// Says what to write instead of a name that belongs to kernels of the other level.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <string_view>

namespace kpkg::compiler {

/// Returns what a kernel of tiles has in place of a function of threads.
std::string_view insteadOfThreads(std::string_view name);
/// Returns what a kernel at thread level has in place of a function or method of tiles.
std::string_view insteadOfTiles(std::string_view name);
/// Returns whether a built-in function or method belongs to kernels of tiles only.
bool isOnlyForTiles(std::string_view name);

} // namespace kpkg::compiler
