// Turns failures of the compiler itself into messages: no source text may end the process.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>
#include <string>

namespace kpkg::compiler {

/// Runs `body`, and returns nothing if it completes. If it aborts or crashes, returns a message with the pass, which
/// `tracePasses` records, and advice. Its memory then leaks. Threads may run guarded bodies concurrently.
std::optional<std::string> failureOf(llvm::function_ref<void()> body);

/// Records the running pass of this manager for failures on its thread, as beginStep() does.
void tracePasses(mlir::PassManager &passes);

/// Records that a step of the compiler, such as a pass, works on `op` from now on. Developers can make it fail there:
/// `KPKG_TEST_FAILURE=HOW:STEP` or `HOW:STEP:OP`, if `op` contains an operation of that name. `HOW` is `abort`,
/// `segfault`, `overflow` (of the stack), `kill` or `hang`.
void beginStep(llvm::StringRef step, mlir::Operation *op);

/// Returns a signal in words: "SIGSEGV, it read where nothing is".
std::string wordsForSignal(int signal);

/// Advice for a failure that is not the fault of the source.
inline constexpr char kWayOut[] = "other tile sizes or another number of warps (@schedule(warps=)) may avoid it; it is "
                                  "an error of the compiler: please report it with this source and `kpkg --version`";

} // namespace kpkg::compiler
