// Registers every dialect and pass of this project for command-line tools that read MLIR.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/DialectRegistry.h"

namespace kpkg {
/// Adds the project's dialects and the upstream ones that its passes read or create.
void registerDialects(mlir::DialectRegistry &registry);
/// Registers every pass and pipeline under its command-line name. Call once.
void registerPasses();
} // namespace kpkg
