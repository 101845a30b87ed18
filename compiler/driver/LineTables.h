// Declares line tables: places of the source in the LLVM dialect, for debuggers and profilers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Operation.h"
#include <string>

namespace kpkg::compiler {

/// The consumer of line tables: ptxas reads `.loc` directives, and tools of CPUs read DWARF.
enum class LineTableKind { Directives, Dwarf };

/// Describes the functions in `module`, which are llvm.func, so that LLVM writes the file and the line of each
/// operation.
///
/// Files have the paths under which the build read them. Code of an inlined function has the place in that function.
void addLineTables(mlir::Operation *module, LineTableKind kind);

/// Gives the files that PTX names a fixed time and size. Otherwise ptxas asks the disk, and equal sources would give
/// different machine code.
std::string withFixedFileTimes(llvm::StringRef ptx);

} // namespace kpkg::compiler
