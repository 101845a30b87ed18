// Failures of the compiler itself as messages: no source text may end the process.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>
#include <string>

namespace kpkg::compiler {

/// Runs `body`; nothing where it returns. Where it aborts or crashes, says in which pass, which `tracePasses` tells,
/// and what to do; the memory that it had is lost then. Threads may run guarded bodies at the same time.
std::optional<std::string> failureOf(llvm::function_ref<void()> body);

/// Lets a failure say which pass of this manager ran on its thread.
void tracePasses(mlir::PassManager &passes);

/// What an author can do about a failure for which the source is not to blame.
inline constexpr char kWayOut[] = "other tile sizes or another number of warps (@schedule(warps=)) may avoid it; it is "
                                  "an error of the compiler: please report it with this source and `kpkg --version`";

} // namespace kpkg::compiler
