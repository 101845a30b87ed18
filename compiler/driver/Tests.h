// Declares how the tests of sources are read.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Tests.h"
#include "compiler/driver/CompileOptions.h"

namespace kpkg::compiler {

/// Returns the tests that the sources register for the first kind of target. Errors of the source are in `diags`.
llvm::Expected<std::vector<TestRecord>> readTests(const CompileOptions &options, SourceManager &sources,
                                                  DiagnosticEngine &diags);

} // namespace kpkg::compiler
