// Makes tables for calls of the manifest's records: kernels, their compiled instances (by CheckInstance.cpp), and ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/ReadTables.h"
#include "runtime/manifest/Read.h"
#include "runtime/package/Backward.h"
#include "runtime/package/CheckInstance.h"
#include "runtime/package/Schema.h"

#include <unordered_set>

namespace kpkg::package {

using manifest::Refusal;
using nlohmann::json;

static Kernel resolveKernel(manifest::Kernel record, size_t index) {
  Kernel kernel{std::move(record), {}, {}, {}, {}, {}};
  auto refuse = [&](const char *list, size_t i, const std::string &what) {
    throw Refusal{"kernels[" + std::to_string(index) + "]." + list + "[" + std::to_string(i) + "] " + what};
  };
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    const KernelParam &param = kernel.params[i];
    if (param.isTuned && param.kind != ParamValue::Kind::Int && param.kind != ParamValue::Kind::Bool)
      refuse("params", i, "is tuned, but neither an int nor a bool");
    if (param.isFunction && param.kind != ParamValue::Kind::String)
      refuse("params", i, "names functions, but its kind is not 'string'");
  }
  for (size_t i = 0; i < kernel.args.size(); ++i) {
    const KernelArgument &arg = kernel.args[i];
    if (isView(arg) && arg.rank < 0)
      refuse("args", i, "has no `rank`");
    // A parameter's name takes precedence: a kernel may have a parameter `index`.
    Kernel::ArgumentType &type = kernel.argumentTypes.emplace_back();
    type.param = kernel.paramIndex(arg.dtype);
    if (type.param >= 0) {
      if (kernel.params[size_t(type.param)].kind != ParamValue::Kind::DType)
        refuse("args", i, "has parameter '" + arg.dtype + "' as dtype, which is none");
    } else if (!arg.dtype.empty()) {
      type.fixed = arg.dtype == "index" ? plan::DType::Int64 : plan::dtypeFromName(arg.dtype);
      if (type.fixed == plan::DType::None)
        refuse("args", i, "has the unknown dtype '" + arg.dtype + "'");
    }
  }
  return kernel;
}

Result<std::shared_ptr<Tables>> readTables(const json &manifest) {
  auto tables = std::make_shared<Tables>();
  try {
    for (manifest::Kernel &record : manifest::readField(manifest, &manifest::Manifest::kernels))
      tables->kernels.push_back(resolveKernel(std::move(record), tables->kernels.size()));
    for (size_t i = 0; i < tables->kernels.size(); ++i)
      if (!tables->kernelByName.emplace(tables->kernels[i].name, i).second)
        throw Refusal{"kernel '" + tables->kernels[i].name + "' is listed twice"};
    for (manifest::Instance &record : manifest::readField(manifest, &manifest::Manifest::instances)) {
      uint32_t number = uint32_t(tables->instances.size());
      tables->instances.push_back(resolveInstance(std::move(record), number, *tables));
      tables->kernels[tables->instances.back().kernel].instances.push_back(number);
    }
    for (Kernel &kernel : tables->kernels)
      kernel.indexValues(tables->instances);
    for (manifest::Op &record : manifest::readField(manifest, &manifest::Manifest::ops)) {
      tables->ops.push_back(resolveOp(std::move(record)));
      if (std::string why = checkOp(tables->ops.back()); !why.empty())
        throw Refusal{"op '" + tables->ops.back().name + "' " + why};
    }
    tables->buildOptions = manifest::readField(manifest, &manifest::Manifest::producer).options;
  } catch (const Refusal &refusal) {
    return Error{KPKG_ERROR_FORMAT, refusal.why, {}, {}, {}};
  }
  for (const OpEntry &op : tables->ops)
    if (op.backward)
      if (std::string why = checkBackward(op, tables->ops); !why.empty())
        return Error{KPKG_ERROR_FORMAT, "op '" + op.name + "' " + why, {}, {}, {}};
  std::unordered_set<std::string_view> names, gradients;
  for (const OpEntry &op : tables->ops)
    if (op.backward)
      gradients.insert(op.backward->op);
  for (OpEntry &op : tables->ops) {
    op.isGradient = gradients.contains(op.name);
    if (!names.insert(op.name).second)
      return Error{KPKG_ERROR_FORMAT, "op '" + op.name + "' is listed twice", {}, {}, {}};
    referToTexts(op); // short strings are inside the object, which no longer moves
  }
  return tables;
}

} // namespace kpkg::package
