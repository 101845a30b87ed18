// Generates IR from a checked program: tile.kernel for each kernel instance, plan.func for each op.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Program.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace kpkg::compiler {

/// One kernel instance of a program.
struct InstanceRef {
  size_t kernel = 0;
  size_t instance = 0;
};

/// Returns all checked instances of the program in order: kernels, then instances.
std::vector<InstanceRef> checkedInstances(const Program &program);

/// Returns a verified module with one `tile.kernel` for each of `instances`, which must be checked without errors.
///
/// It only reads the program, so that threads may generate shards concurrently, each with its own context. Null if the
/// module does not verify (a bug; MLIR's handler has the reason).
mlir::OwningOpRef<mlir::ModuleOp> generateKernels(const Program &program, const SourceManager &sources,
                                                  const std::vector<InstanceRef> &instances,
                                                  mlir::MLIRContext &context);

/// Returns a verified module with one `plan.func` for each op of the program.
mlir::OwningOpRef<mlir::ModuleOp> generateOps(const Program &program, const SourceManager &sources,
                                              mlir::MLIRContext &context);

} // namespace kpkg::compiler
