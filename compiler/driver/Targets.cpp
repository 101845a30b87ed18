// Resolves names of targets, and detects the targets of this machine.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Targets.h"
#include "compiler/diag/NearestName.h"
#include "compiler/driver/CompileOptions.h"
#include "dialect/kgpu/ir/TargetModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/DynamicLibrary.h"
#include "llvm/Support/Process.h"
#include "llvm/TargetParser/Host.h"

using namespace llvm;

namespace kpkg::compiler {

namespace {

/// Returns the names of all devices, in the order of their chips.
std::vector<std::pair<StringRef, const kgpu::TargetModel *>> namedDevices() {
  std::vector<std::pair<StringRef, const kgpu::TargetModel *>> devices;
  for (const kgpu::TargetModel &target : kgpu::allTargets())
    for (StringRef device : split(StringRef(target.devices), ' '))
      devices.emplace_back(device, &target);
  return devices;
}

/// Returns the chip of a named device; empty for other words.
StringRef chipOfDevice(StringRef name) {
  for (auto [device, target] : namedDevices())
    if (name.equals_insensitive(device))
      return target->name;
  return "";
}

/// Returns the oldest chip, whose PTX runs on every later one.
std::string ptxChip() { return std::string(kgpu::allTargets().front().name); }

/// Returns the highest level of this processor, by the features of each level.
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
    isa = !has({"avx512bf16"}) ? "x86-64-v4" : has({"amx-tile", "amx-bf16"}) ? "x86-64-v4-amx" : "x86-64-v4-bf16";
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

/// Returns the best chip model for code of compute capability `major`.`minor`, or an empty string.
std::string chipOf(int major, int minor) {
  std::string number = std::to_string(major) + std::to_string(minor);
  for (const char *suffix : {"a", ""})
    if (kgpu::findTarget("sm_" + number + suffix))
      return "sm_" + number + suffix;
  return "";
}

/// Returns the number of "sm_86" or "sm_90a"; 0 for other words.
unsigned numberOf(StringRef chip) {
  unsigned number = 0;
  return chip.consume_front("sm_") && !chip.consumeInteger(10, number) ? number : 0;
}

/// Returns the supported chips before and after `number`, or one of them.
std::string chipsAround(unsigned number) {
  std::string below, above;
  for (const kgpu::TargetModel &target : kgpu::allTargets())
    if (numberOf(target.name) <= number)
      below = std::string(target.name);
    else if (above.empty())
      above = std::string(target.name);
  return below + (below.empty() || above.empty() ? "" : " and ") + above;
}

Error unknownTarget(const std::string &name) {
  std::vector<std::string> gpus = targetNames(true), cpus = targetNames(false);
  std::string known = "GPUs are " + join(gpus, ", ") + ", devices such as a100, h200 or rtx4090, and ptx; CPUs are " +
                      join(cpus, ", ") + "; tpu is any TPU; native is this machine";
  if (unsigned number = numberOf(name))
    return make_error<WrongUse>("chip " + name + " is not served; the nearest " +
                                (number < numberOf(gpus.front()) || number > numberOf(gpus.back()) ? "is " : "are ") +
                                chipsAround(number) + "; " + known);
  std::vector<std::string> candidates = gpus;
  append_range(candidates, cpus);
  candidates.push_back("native");
  candidates.push_back("tpu");
  for (auto [device, target] : namedDevices())
    candidates.push_back(device.str());
  std::string nearest = nearestName(StringRef(name).lower(), candidates);
  return make_error<WrongUse>("unknown target '" + name + "'" + (nearest.empty() ? "" : "; the nearest is " + nearest) +
                              "; " + known);
}

} // namespace

std::vector<std::string> targetNames(bool ofGpus) {
  std::vector<std::string> names;
  if (ofGpus)
    for (const kgpu::TargetModel &target : kgpu::allTargets())
      names.emplace_back(target.name);
  else
    for (const lower::cpu::CpuTarget &target : lower::cpu::CpuTarget::all())
      names.push_back(target.isa.str());
  return names;
}

std::string BuildTargets::str() const {
  std::string text;
  auto add = [&](const std::string &name) { text += (text.empty() ? "" : ",") + name; };
  for (const lower::cpu::CpuTarget *target : cpus)
    add(target->isa.str());
  for (const std::string &chip : chips)
    add(chip);
  for (const std::string &chip : ptx)
    add("ptx/" + chip);
  if (tpu)
    add("tpu");
  return text;
}

std::vector<std::string> nativeChips() {
  // Calls the driver directly, so that no toolkit is needed. A machine without a driver has no GPUs.
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
    if (getDevice(&device, number) != 0 || getAttribute(&major, capabilityMajor, device) != 0 ||
        getAttribute(&minor, capabilityMinor, device) != 0)
      continue;
    if (std::string chip = chipOf(major, minor); !chip.empty() && !is_contained(chips, chip))
      chips.push_back(chip);
  }
  return chips;
}

/// Resolves targets in the order of their names.
static Expected<BuildTargets> resolveInOrder(ArrayRef<std::string> names) {
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
  auto addChip = [&](const std::string &chip) {
    add(targets.chips, chip);
    targets.areChipsNamed = true;
  };
  if (names.empty()) {
    if (Error error = addNative())
      return std::move(error);
    if (targets.hasGpu())
      targets.ptx.push_back(ptxChip());
    return targets;
  }
  for (const std::string &name : names) {
    const auto *cpu =
        find_if(lower::cpu::CpuTarget::all(), [&](const lower::cpu::CpuTarget &known) { return known.isa == name; });
    StringRef device = chipOfDevice(name);
    if (name == "native") {
      if (Error error = addNative())
        return std::move(error);
    } else if (name == "ptx") {
      add(targets.ptx, ptxChip());
    } else if (name == "tpu") {
      targets.tpu = true;
    } else if (cpu != lower::cpu::CpuTarget::all().end()) {
      add(targets.cpus, &*cpu);
    } else if (!device.empty()) {
      addChip(device.str());
    } else if (kgpu::findTarget(name)) {
      addChip(name);
    } else if (std::string own = name + "a"; kgpu::findTarget(own)) {
      addChip(own);
      targets.notes.push_back("target " + name + " means " + own +
                              ", with what only this chip has; other chips of its family run ptx");
    } else {
      return unknownTarget(name);
    }
  }
  return targets;
}

Expected<BuildTargets> resolveTargets(ArrayRef<std::string> names) {
  auto targets = resolveInOrder(names);
  if (!targets)
    return targets;
  // The order on the command line changes no byte of a package.
  sort(targets->cpus); // they are elements of one array
  sort(targets->chips,
       [](StringRef left, StringRef right) { return kgpu::findTarget(left) < kgpu::findTarget(right); });
  return targets;
}

} // namespace kpkg::compiler
