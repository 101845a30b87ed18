// Generates the tile IR of kernels with the checks of `--sanitize`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/driver/CompileOptions.h"
#include "compiler/irgen/Generate.h"

namespace kpkg::compiler {

/// Returns the tile IR of instances, with the checks that the options ask for. Returns null after MLIR's reports.
mlir::OwningOpRef<mlir::ModuleOp> checkedTile(const Program &program, const SourceManager &sources,
                                              const std::vector<InstanceRef> &instances, mlir::MLIRContext &context,
                                              const CompileOptions &options);

} // namespace kpkg::compiler
