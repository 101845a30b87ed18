// kpkg-reduce: reduces MLIR text as long as a script finds it interesting.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/pipeline/Registration.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  kpkg::registerDialects(registry);
  kpkg::registerPasses();
  mlir::MLIRContext context(registry);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context)) ? 1 : 0;
}
