// Selects the instances and variants that a build compiles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/SelectInstances.h"
#include "compiler/check/Program.h"
#include "compiler/comptime/DType.h"
#include "compiler/diag/NearestName.h"
#include "compiler/driver/DropAlternatives.h"
#include "dialect/tile/ir/TileDialect.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace kpkg::compiler {

namespace {

/// The kinds of dtypes that `--dtypes` restricts independently.
enum class Kind { Float, Integer, Bool };

Kind kindOf(DType dtype) {
  switch (classOf(dtype)) {
  case DTypeClass::Float:
    return Kind::Float;
  case DTypeClass::Bool:
    return Kind::Bool;
  default:
    return Kind::Integer;
  }
}

/// Returns whether the dtypes among the parameters are listed, or of a kind of which none is listed.
bool hasListedDTypes(const KernelInstance &instance, ArrayRef<DType> listed) {
  return all_of(instance.parameters, [&](const Value &value) {
    return !value.isDType() || is_contained(listed, value.asDType()) ||
           none_of(listed, [&](DType other) { return kindOf(other) == kindOf(value.asDType()); });
  });
}

/// Removes alternatives without the variant for any arguments, if others have it.
void keepGeneralAlternatives(const Program &program, std::vector<InstanceRef> &refs) {
  std::vector<bool> isGeneral = generalAlternatives(program, refs);
  std::vector<bool> isServed = haveGeneralAlternatives(program, refs);
  std::vector<InstanceRef> kept;
  for (auto [i, ref] : enumerate(refs))
    if (isGeneral[i] || !isServed[i])
      kept.push_back(ref);
  refs = std::move(kept);
}

} // namespace

Error checkDTypeNames(const CompileOptions &options) {
  for (const std::string &name : options.dtypes) {
    if (dtypeOfValueName(name))
      continue;
    std::vector<std::string> known;
    for (const std::string &type : dtypeTypeNames())
      if (std::optional<DType> dtype = dtypeOfTypeName(type); dtype && *dtype != DType::Int)
        known.emplace_back(valueNameOf(*dtype));
    std::string nearest = nearestName(name, known);
    return make_error<WrongUse>("--dtypes: there is no dtype '" + name + "', but " + join(known, ", ") +
                                (nearest.empty() ? "" : "; did you mean '" + nearest + "'?"));
  }
  return Error::success();
}

void restrictInstances(const Program &program, const CompileOptions &options, std::vector<InstanceRef> &refs) {
  SmallVector<DType> listed;
  for (const std::string &name : options.dtypes)
    listed.push_back(*dtypeOfValueName(name));
  erase_if(refs, [&](InstanceRef ref) {
    return !hasListedDTypes(program.kernels()[ref.kernel].instances[ref.instance], listed);
  });
  if (options.fast)
    keepGeneralAlternatives(program, refs);
}

std::vector<InstanceRef> selectedInstances(const Program &program, const CompileOptions &options,
                                           std::vector<std::string> &notes) {
  std::vector<InstanceRef> refs = checkedInstances(program);
  if (!program.ops().empty())
    erase_if(refs, [&](InstanceRef ref) { return !program.kernels()[ref.kernel].isLaunched; });
  if (!options.onlyKernel.empty())
    erase_if(refs, [&](InstanceRef ref) { return program.kernels()[ref.kernel].name != options.onlyKernel; });
  std::vector<InstanceRef> all = refs;
  restrictInstances(program, options, refs);
  for (size_t i = 0; i < all.size(); ++i)
    if ((i == 0 || all[i - 1].kernel != all[i].kernel) &&
        none_of(refs, [&](InstanceRef ref) { return ref.kernel == all[i].kernel; }))
      notes.push_back("`" + program.kernels()[all[i].kernel].name +
                      "` has no instance for --dtypes=" + join(options.dtypes, ",") + ", so that its launches fail");
  return refs;
}

void keepGeneralVariant(mlir::ModuleOp variants) {
  SmallVector<tile::KernelOp> kernels(variants.getOps<tile::KernelOp>());
  if (none_of(kernels, [](tile::KernelOp kernel) { return kernel.getVariant() == "any"; }))
    return;
  for (tile::KernelOp kernel : kernels)
    if (kernel.getVariant() != "any")
      kernel.erase();
}

} // namespace kpkg::compiler
