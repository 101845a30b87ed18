// Changes of a compiled kernel that its verifier or the simulator has to find.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_TEST_SIM_MUTATIONS_H
#define KPKG_TEST_SIM_MUTATIONS_H

#include "mlir/IR/BuiltinOps.h"
#include <functional>
#include <string>
#include <vector>

namespace kpkg {

/// A change of a compiled kernel, and its name.
struct Mutation {
  std::string name;
  std::function<void(mlir::ModuleOp)> apply;
};

/// Every way to break the synchronisation and the addressing of the kernel that one change can.
std::vector<Mutation> mutations(mlir::ModuleOp module);

/// How many changes of a kernel are found, and by whom.
struct Found {
  int64_t count = 0, proven = 0, simulated = 0, either = 0;
  std::string missed;
};

/// Asks of each change of a kernel whether the verifier refuses it and whether the simulator sees it.
Found search(mlir::ModuleOp module, llvm::function_ref<bool(mlir::ModuleOp)> isRefused,
             llvm::function_ref<bool(mlir::ModuleOp)> isSeen);

} // namespace kpkg
#endif
