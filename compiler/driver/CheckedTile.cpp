// Generates the tile IR of kernels with the checks of `--sanitize`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/CheckedTile.h"
#include "dialect/tile/transforms/AddChecks.h"
#include "dialect/tile/transforms/AddShadowChecks.h"

namespace kpkg::compiler {

mlir::OwningOpRef<mlir::ModuleOp> checkedTile(const Program &program, const SourceManager &sources,
                                              const std::vector<InstanceRef> &instances, mlir::MLIRContext &context,
                                              const CompileOptions &options) {
  auto module = generateKernels(program, sources, instances, context);
  const tile::ShadowChecks shadows = {options.checkUninit, options.checkRace};
  if (!module || (!options.checkBounds && !options.checkNan && !shadows.perTensor()))
    return module;
  for (auto [kernel, ref] : llvm::zip(module->getOps<tile::KernelOp>(), instances)) {
    const KernelRecord &record = program.kernels()[ref.kernel];
    auto nameOf = [](const KernelArgument &argument) { return argument.name; };
    auto names = llvm::to_vector(llvm::map_range(record.arguments, nameOf));
    tile::addChecks(kernel, {options.checkBounds, options.checkNan}, names);
    if (shadows.perTensor() && &record != &program.fillOfShadows())
      tile::addShadowChecks(kernel, shadows, names);
  }
  return module;
}

} // namespace kpkg::compiler
