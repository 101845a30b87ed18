// What the command line tools for MLIR text know: every dialect and pass of this project.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/DialectRegistry.h"

namespace kpkg {
/// Adds the project's dialects and the upstream ones that its passes read or make.
void registerDialects(mlir::DialectRegistry &registry);
/// Makes every pass and pipeline known by its command line name. Call once.
void registerPasses();
} // namespace kpkg
