// What a package is built for: names of targets, and what this machine is.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Targets.h"
#include "dialect/kgpu/ir/TargetModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/DynamicLibrary.h"
#include "llvm/Support/Process.h"
#include "llvm/TargetParser/Host.h"

using namespace llvm;

namespace kpkg::compiler {

namespace {

/// The chip of a device that people name; empty for other words.
StringRef chipOfDevice(StringRef name) {
  return StringSwitch<StringRef>(name.lower())
      .Cases({"a100", "a30"}, "sm_80")
      .Cases({"a10", "a40", "rtx3090", "rtxa6000"}, "sm_86")
      .Cases({"l4", "l40", "l40s", "rtx4090"}, "sm_89")
      .Cases({"h100", "h200", "gh200"}, "sm_90a")
      .Cases({"b100", "b200", "gb200"}, "sm_100a")
      .Cases({"rtx5090", "rtxpro6000"}, "sm_120")
      .Default("");
}

/// The oldest chip that PTX is written for: it runs on every later one.
constexpr StringLiteral PtxChip = "sm_80";

/// The best level of this processor, by the features that the levels stand for.
Expected<const lower::cpu::CpuTarget *> nativeCpu() {
  StringMap<bool> features = sys::getHostCPUFeatures();
  auto has = [&](std::initializer_list<const char *> names) {
    return all_of(names, [&](const char *name) { return features.lookup(name); });
  };
  StringRef isa;
#if defined(__aarch64__)
  isa = "aarch64";
#else
  if (has({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}))
    isa = features.lookup("avx512bf16") ? "x86-64-v4-bf16" : "x86-64-v4";
  else if (has({"avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe"}))
    isa = "x86-64-v3";
#endif
  if (isa.empty())
    return createStringError("this processor is older than every CPU target; x86-64-v3 (AVX2, FMA, F16C) is the least");
  for (const lower::cpu::CpuTarget &target : lower::cpu::CpuTarget::all())
    if (target.isa == isa)
      return &target;
  return createStringError("this build has no target %s", isa.str().c_str());
}

/// The chip model that runs code for compute capability `major`.`minor` best, or empty.
std::string chipOf(int major, int minor) {
  std::string number = std::to_string(major) + std::to_string(minor);
  for (const char *suffix : {"a", ""})
    if (kgpu::findTarget("sm_" + number + suffix))
      return "sm_" + number + suffix;
  return "";
}

std::string knownNames() {
  std::string names;
  for (const lower::cpu::CpuTarget &target : lower::cpu::CpuTarget::all())
    names += target.isa.str() + ", ";
  for (const kgpu::TargetModel &target : kgpu::allTargets())
    names += target.chip.str() + ", ";
  return names + "ptx, native, and devices such as a100 or h200";
}

} // namespace

std::string BuildTargets::str() const {
  std::string text;
  auto add = [&](const std::string &name) { text += (text.empty() ? "" : ",") + name; };
  for (const lower::cpu::CpuTarget *target : cpus)
    add(target->isa.str());
  for (const std::string &chip : chips)
    add(chip);
  for (const std::string &chip : ptx)
    add("ptx/" + chip);
  return text;
}

std::vector<std::string> nativeChips() {
  // The driver's own functions: no toolkit is needed, and a machine without a driver simply has none.
  std::string error;
  std::string name = sys::Process::GetEnv("KPKG_CUDA_DRIVER").value_or("");
  sys::DynamicLibrary driver = sys::DynamicLibrary::getLibrary(name.empty() ? "libcuda.so.1" : name.c_str(), &error);
  if (!driver.isValid())
    return {};
  auto initialise = reinterpret_cast<int (*)(unsigned)>(driver.getAddressOfSymbol("cuInit"));
  auto countDevices = reinterpret_cast<int (*)(int *)>(driver.getAddressOfSymbol("cuDeviceGetCount"));
  auto getDevice = reinterpret_cast<int (*)(int *, int)>(driver.getAddressOfSymbol("cuDeviceGet"));
  auto getAttribute = reinterpret_cast<int (*)(int *, int, int)>(driver.getAddressOfSymbol("cuDeviceGetAttribute"));
  if (!initialise || !countDevices || !getDevice || !getAttribute || initialise(0) != 0)
    return {};
  constexpr int capabilityMajor = 75, capabilityMinor = 76;
  std::vector<std::string> chips;
  int count = 0;
  countDevices(&count);
  for (int number = 0; number < count; ++number) {
    int device = 0, major = 0, minor = 0;
    if (getDevice(&device, number) != 0 || getAttribute(&major, capabilityMajor, device) != 0 || getAttribute(&minor, capabilityMinor, device) != 0)
      continue;
    if (std::string chip = chipOf(major, minor); !chip.empty() && !is_contained(chips, chip))
      chips.push_back(chip);
  }
  return chips;
}

Expected<BuildTargets> resolveTargets(ArrayRef<std::string> names) {
  BuildTargets targets;
  auto add = [](auto &list, auto item) {
    if (!is_contained(list, item))
      list.push_back(item);
  };
  auto addNative = [&]() -> Error {
    auto cpu = nativeCpu();
    if (!cpu)
      return cpu.takeError();
    add(targets.cpus, *cpu);
    for (const std::string &chip : nativeChips())
      add(targets.chips, chip);
    return Error::success();
  };
  if (names.empty()) {
    if (Error error = addNative())
      return std::move(error);
    if (targets.hasGpu())
      targets.ptx.push_back(PtxChip.str());
    return targets;
  }
  for (const std::string &name : names) {
    const auto *cpu = find_if(lower::cpu::CpuTarget::all(), [&](const lower::cpu::CpuTarget &known) { return known.isa == name; });
    StringRef device = chipOfDevice(name);
    if (name == "native") {
      if (Error error = addNative())
        return std::move(error);
    } else if (name == "ptx") {
      add(targets.ptx, PtxChip.str());
    } else if (cpu != lower::cpu::CpuTarget::all().end()) {
      add(targets.cpus, &*cpu);
    } else if (!device.empty()) {
      add(targets.chips, device.str());
    } else if (kgpu::findTarget(name)) {
      add(targets.chips, name);
    } else if (StringRef(name).starts_with("sm_")) {
      return createStringError("chip %s is not served: the CUDA toolkit's ptxas knows %s", name.c_str(), knownNames().c_str());
    } else {
      return createStringError("unknown target '%s'; known: %s", name.c_str(), knownNames().c_str());
    }
  }
  return targets;
}

} // namespace kpkg::compiler
