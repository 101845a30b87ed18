// Declares which instances and variants a build compiles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/driver/CompileOptions.h"
#include "compiler/irgen/Generate.h"
#include "mlir/IR/BuiltinOps.h"

namespace kpkg::compiler {

/// Returns an error if one of CompileOptions::dtypes does not exist.
llvm::Error checkDTypeNames(const CompileOptions &options);

/// Removes the instances that the options leave out: for other dtypes, and alternatives that a fast build does without.
void restrictInstances(const Program &program, const CompileOptions &options, std::vector<InstanceRef> &refs);

/// Returns the instances that a build with these options compiles. `notes` receives the kernels without any.
///
/// Kernels that no op launches could never run. A package without ops is for inspecting the code, and has all.
std::vector<InstanceRef> selectedInstances(const Program &program, const CompileOptions &options,
                                           std::vector<std::string> &notes);

/// Erases the variants that state facts about arguments, if there is one that states none.
void keepGeneralVariant(mlir::ModuleOp variants);

} // namespace kpkg::compiler
