// What the command line names: source files, targets.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Inputs.h"
#include "compiler/source/Source.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/TargetParser/Host.h"
#include <algorithm>

using namespace llvm;

namespace kpkg::compiler {

namespace {

Error addFolder(const std::string &folder, std::vector<std::string> &paths) {
  std::error_code error;
  std::vector<std::string> found;
  for (sys::fs::recursive_directory_iterator entry(folder, error), end; entry != end && !error; entry.increment(error))
    if (sys::path::extension(entry->path()) == ".k")
      found.push_back(entry->path());
  if (error)
    return createStringError(error, "cannot read the folder %s", folder.c_str());
  if (found.empty())
    return createStringError("the folder %s has no .k files", folder.c_str());
  std::sort(found.begin(), found.end());
  paths.insert(paths.end(), found.begin(), found.end());
  return Error::success();
}

/// The best level of this processor, by the features that the levels stand for.
Expected<const lower::cpu::CpuTarget *> nativeTarget() {
  StringMap<bool> features = sys::getHostCPUFeatures();
  auto has = [&](std::initializer_list<const char *> names) {
    return all_of(names, [&](const char *name) { return features.lookup(name); });
  };
  const char *isa = nullptr;
#if defined(__aarch64__)
  isa = "aarch64";
#else
  if (has({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}))
    isa = "x86-64-v4";
  else if (has({"avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe"}))
    isa = "x86-64-v3";
#endif
  if (!isa)
    return createStringError("this processor is older than every CPU target; x86-64-v3 (AVX2, FMA, F16C) is the least");
  for (const lower::cpu::CpuTarget &target : lower::cpu::CpuTarget::all())
    if (target.isa == isa)
      return &target;
  return createStringError("this build has no target %s", isa);
}

} // namespace

Expected<std::vector<std::string>> findSources(ArrayRef<std::string> inputs) {
  std::vector<std::string> paths;
  for (const std::string &input : inputs) {
    if (sys::fs::is_directory(input)) {
      if (Error error = addFolder(input, paths))
        return std::move(error);
    } else if (sys::fs::exists(input)) {
      paths.push_back(input);
    } else {
      return createStringError("%s: no such file or folder", input.c_str());
    }
  }
  return paths;
}

Expected<std::vector<const lower::cpu::CpuTarget *>> resolveTargets(ArrayRef<std::string> names) {
  std::vector<const lower::cpu::CpuTarget *> targets;
  std::vector<std::string> wanted(names.begin(), names.end());
  if (wanted.empty())
    wanted.push_back("native");
  for (const std::string &name : wanted) {
    const lower::cpu::CpuTarget *target = nullptr;
    if (name == "native") {
      auto native = nativeTarget();
      if (!native)
        return native.takeError();
      target = *native;
    } else {
      for (const lower::cpu::CpuTarget &known : lower::cpu::CpuTarget::all())
        if (known.isa == name)
          target = &known;
      if (!target)
        return lower::cpu::CpuTarget::find(name).takeError(); // names the known ones
    }
    if (!is_contained(targets, target))
      targets.push_back(target);
  }
  return targets;
}

std::vector<PackedSource> packedSources(const SourceManager &sources) {
  std::vector<PackedSource> packed;
  StringMap<unsigned> uses;
  for (uint32_t i = 0; i < sources.fileCount(); ++i) {
    const SourceFile &file = sources.file(i);
    std::string name = sys::path::filename(file.path()).str();
    if (unsigned earlier = uses[name]++)
      name += "." + std::to_string(earlier);
    packed.push_back({name, std::string(file.text())});
  }
  return packed;
}

} // namespace kpkg::compiler
