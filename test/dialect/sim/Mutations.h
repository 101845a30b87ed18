// Mutates compiled kernels; the verifier or the simulator must find each mutation.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_TEST_SIM_MUTATIONS_H
#define KPKG_TEST_SIM_MUTATIONS_H

#include "mlir/IR/BuiltinOps.h"
#include <functional>
#include <string>
#include <vector>

namespace kpkg {

/// A mutation of a compiled kernel, and its name.
struct Mutation {
  std::string name;
  std::function<void(mlir::ModuleOp)> apply;
};

/// Returns every single mutation that breaks the synchronisation or the addressing of the kernel.
std::vector<Mutation> mutations(mlir::ModuleOp module);

/// The number of mutations that the verifier and the simulator find.
struct Found {
  int64_t count = 0, proven = 0, simulated = 0, either = 0;
  std::string missed;
};

/// Tests for each mutation of a kernel whether the verifier refuses it and whether the simulator detects it.
Found search(mlir::ModuleOp module, llvm::function_ref<bool(mlir::ModuleOp)> isRefused,
             llvm::function_ref<bool(mlir::ModuleOp)> isSeen);

} // namespace kpkg
#endif
