// Runs MLIR's canonicalizer and CSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Simplify.h"
#include "compiler/driver/Guard.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace kpkg::compiler {

mlir::OwningOpRef<mlir::ModuleOp> simplified(mlir::OwningOpRef<mlir::ModuleOp> module) {
  if (!module)
    return nullptr;
  mlir::PassManager passes(module->getContext());
  tracePasses(passes);
  passes.addPass(mlir::createCanonicalizerPass());
  passes.addPass(mlir::createCSEPass());
  if (failed(passes.run(*module)))
    return nullptr;
  return module;
}

} // namespace kpkg::compiler
