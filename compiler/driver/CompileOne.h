// Compiles one kernel instance to machine code for each target.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/codegen/nvptx/Ptxas.h"
#include "compiler/codegen/reproducer/Reproducer.h"
#include "compiler/driver/DropAlternatives.h"
#include "compiler/driver/IrMessages.h"
#include "compiler/driver/Targets.h"
#include "dialect/tile/transforms/Variants.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace kpkg::compiler {

/// Returns a context with all dialects, and without threads.
std::unique_ptr<mlir::MLIRContext> makeContext();

/// Returns the error, followed by MLIR's reports if there are any.
std::string withReports(llvm::Error error, const IrMessages &messages);

/// Returns the simplified tile IR of one or more instances.
mlir::OwningOpRef<mlir::ModuleOp> simplifiedTile(const Program &program, const SourceManager &sources,
                                                 llvm::ArrayRef<InstanceRef> instances, mlir::MLIRContext &context,
                                                 const CompileOptions &options);

/// Makes the variants that a build with these options compiles.
void makeVariants(mlir::ModuleOp module, tile::VariantKind kind, const CompileOptions &options);

/// The role of an instance among its alternatives.
struct Role {
  bool hasOthers;  ///< there are several alternatives
  bool isLast;     ///< no later alternative can replace it
  bool isGeneral;  ///< it has the variants that the others lack
  bool hasVectors; ///< it has vectorised variants
};

/// What the instances of a build share.
struct Job {
  const Program &program;
  const SourceManager &sources;
  const BuildTargets &targets;
  const Ptxas *ptxas; ///< null without ptxas
  const CompileOptions &options;
  const BeforeStage &beforeStage; ///< may be empty
};

/// Returns the code of an instance for all targets, and the targets without code.
JobResult compileOne(const Job &job, InstanceRef instance, Role role);

/// Returns the result of an instance without code for any target.
JobResult failedEverywhere(const BuildTargets &targets, const std::string &why);

} // namespace kpkg::compiler
