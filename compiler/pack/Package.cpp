// Writes the results of a build to one .kpkg file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/pack/Package.h"
#include "compiler/pack/Manifest.h"
#include "compiler/pack/RemarkSections.h"
#include "runtime/format/Writer.h"

namespace kpkg::compiler {

namespace {

llvm::Error toError(const kpkg::Error &error) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "cannot write the package: %s", error.message.c_str());
}

} // namespace

llvm::Expected<std::string> writePackage(const PackageContents &contents) {
  format::Writer writer;
  auto add = [&](std::string name, const char *kind, const std::string &bytes, bool required) -> llvm::Error {
    if (Status status = writer.add(std::move(name), kind, bytes, format::Compression::Zstd, required); !status)
      return toError(status.error());
    return llvm::Error::success();
  };
  for (const PackedObject &object : contents.objects)
    if (llvm::Error error = add(object.section, object.kind.c_str(), object.bytes, true))
      return std::move(error);
  for (const PackedPlan &plan : contents.plans) {
    if (llvm::Error error = add(planSectionName(plan.op), "plan", plan.plan, true))
      return std::move(error);
    if (llvm::Error error = add(shapePlanSectionName(plan.op), "plan", plan.shapePlan, true))
      return std::move(error);
    if (!plan.gpuPlan.empty())
      if (llvm::Error error = add(gpuPlanSectionName(plan.op), "plan", plan.gpuPlan, true))
        return std::move(error);
    if (!plan.gpuShapePlan.empty())
      if (llvm::Error error = add(gpuShapePlanSectionName(plan.op), "plan", plan.gpuShapePlan, true))
        return std::move(error);
  }
  if (llvm::Error error = add("ir/tile", "ir", contents.tileBytecode, false))
    return std::move(error);
  for (const PackedSource &source : contents.sources)
    if (llvm::Error error = add("source/" + source.name, "source", source.text, false))
      return std::move(error);

  for (const auto &[name, text] : remarkSections(contents.instances))
    if (llvm::Error error = add(name, "docs", text, false))
      return std::move(error);

  if (!contents.tuning.empty()) {
    nlohmann::json rows = nlohmann::json::array();
    for (const auto &[key, choice] : contents.tuning) {
      rows.push_back(nlohmann::json::parse(key));
      rows.back()["choice"] = nlohmann::json::parse(choice);
    }
    if (llvm::Error error =
            add("tuning", "tuning", nlohmann::json{{"format", 1}, {"rows", std::move(rows)}}.dump(), false))
      return std::move(error);
  }

  auto bytes = writer.finish(makeManifest(contents));
  if (!bytes)
    return toError(bytes.error());
  return std::move(*bytes);
}

} // namespace kpkg::compiler
