// kpkg-opt: reads MLIR text, runs the passes named on the command line, prints the result.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/pipeline/Registration.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  kpkg::registerDialects(registry);
  kpkg::registerPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "kpkg-opt: runs passes on kpkg's dialects\n", registry));
}
