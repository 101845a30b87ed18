// Refuses kernels that read what they have written in the same launch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Hir.h"
#include "compiler/diag/Diagnostics.h"

namespace kpkg::compiler {

/// Reports reads and updates of elements that the same block may have written before, also in an earlier iteration of a
/// loop. Other threads may have written them, and nothing makes the reader wait.
void checkReadBack(const hir::Function &kernel, DiagnosticEngine &diags);

} // namespace kpkg::compiler
