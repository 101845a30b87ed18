// Implements an open package: its file, its tables, and its loaded parts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Library.h"
#include "runtime/device/cpu/CpuTarget.h"
#include "runtime/device/cpu/Grid.h"
#include "runtime/device/cuda/Driver.h"
#include "runtime/package/Choice.h"
#include "runtime/package/Environment.h"
#include "runtime/package/PackagedOp.h"
#include "runtime/package/Tuning.h"

#include <algorithm>
#include <set>

namespace kpkg::package {

/// Dynamic shared memory that every kernel may use.
static constexpr int64_t defaultShared = 48 << 10;

Library::Library(format::Reader opened, Trust trust, std::shared_ptr<const Tables> tables)
    : reader(std::move(opened)), trust(std::move(trust)), entries(std::move(tables)), manifest(reader.manifestText()) {}

Library::~Library() = default;

static std::string ofKind(const format::Section &section) {
  return "section '" + section.name + "', which is of kind '" + section.kind + "'";
}

Result<std::shared_ptr<Library>> Library::open(Result<format::Reader> reader, Trust trust) {
  if (!reader)
    return reader.error();
  if (const std::string &flag = environment().unknownRequire; !flag.empty())
    return Error{KPKG_ERROR_USE,
                 "KPKG_REQUIRE has '" + flag + "', which is not understood (deterministic, batch_invariant or exact)",
                 {},
                 {},
                 {}};
  if (trust.level == KPKG_TRUST_SIGNED)
    if (Status status = reader->checkSignature(trust.keys); !status)
      return status.error();
  auto tables = readTables(reader->manifest());
  auto refuse = [&](const std::string &why, const std::string &instance = {}) {
    return Error{KPKG_ERROR_FORMAT, "'" + reader->name() + "' is refused: " + why, {}, instance, {}};
  };
  if (!tables)
    return refuse(tables.error().message);
  for (const Instance &instance : (*tables)->instances) {
    if (!cpu::isCpuTarget(instance.target) && !instance.launch)
      continue;
    const format::Section *section = reader->find(instance.section);
    if (!section)
      return refuse(instance.label + " is said to be in section '" + instance.section + "', which is missing",
                    instance.label);
    bool isHost = cpu::isCpuTarget(instance.target);
    bool isCode = isHost ? section->kind == "host-object" : section->kind == "cubin" || section->kind == "ptx";
    if (!isCode)
      return refuse(instance.label + " is said to be in " + ofKind(*section) + ", expected " +
                        (isHost ? "'host-object'" : "'cubin' or 'ptx'"),
                    instance.label);
  }
  for (const OpEntry &op : (*tables)->ops)
    for (const std::string *name : {&op.plan, &op.shapePlan, &op.gpuPlan, &op.gpuShapePlan})
      if (const format::Section *section = reader->find(*name); section && section->kind != "plan")
        return refuse("the plan of " + op.name + " is said to be in " + ofKind(*section) + ", expected 'plan'");
  if (const format::Section *tuning = reader->find(tuningSection)) {
    if (tuning->kind != "tuning")
      return refuse("the tuning table is said to be in " + ofKind(*tuning) + ", expected 'tuning'");
    auto text = reader->read(*tuning, trust.level != KPKG_TRUST_ANY);
    if (!text)
      return text.error();
    if (Status status = readTuning(text->bytes, **tables); !status)
      return refuse(status.error().message);
  }
  std::shared_ptr<Library> library(new Library(std::move(*reader), std::move(trust), std::move(*tables)));
  for (const OpEntry &op : library->tables().ops)
    library->packagedOps.push_back(std::make_unique<PackagedOp>(*library, op));
  return library;
}

Result<std::string_view> Library::section(std::string_view name) const {
  std::lock_guard guard(lock);
  if (auto found = contents.find(name); found != contents.end())
    return found->second.bytes;
  const format::Section *section = reader.find(name);
  if (!section)
    return Error{KPKG_ERROR_NOT_FOUND, "'" + this->name() + "' has no section '" + std::string(name) + "'", {}, {}, {}};
  auto read = reader.read(*section, trust.level != KPKG_TRUST_ANY);
  if (!read)
    return read.error();
  return contents.emplace(name, std::move(*read)).first->second.bytes;
}

Result<const void *> Library::symbol(const Instance &instance, const std::string &name) const {
  auto image = section(instance.section);
  if (!image)
    return image.error();
  std::lock_guard guard(lock);
  auto found = objects.find(instance.section);
  if (found == objects.end()) {
    auto object = cpu::HostObject::load(*image, instance.section + "' of '" + this->name());
    if (!object)
      return object.error();
    found = objects.emplace(instance.section, std::make_unique<cpu::HostObject>(std::move(*object))).first;
  }
  const void *address = found->second->find(name);
  if (!address)
    return Error{KPKG_ERROR_FORMAT,
                 "host object '" + instance.section + "' of '" + this->name() + "' has no function '" + name + "'",
                 {},
                 instance.label,
                 {}};
  return address;
}

Result<KpkgCpuKernel> Library::kernel(const Instance &instance) const {
  auto address = symbol(instance, instance.symbol);
  if (!address)
    return address.error();
  return reinterpret_cast<KpkgCpuKernel>(const_cast<void *>(*address));
}

Result<KpkgCpuTileCount> Library::tileCount(const Instance &instance) const {
  auto address = symbol(instance, instance.symbol + "$tiles");
  if (!address)
    return address.error();
  return reinterpret_cast<KpkgCpuTileCount>(const_cast<void *>(*address));
}

Result<GpuFunction> Library::gpuFunction(const Instance &instance, int32_t device, void *stream) const {
  auto image = section(instance.section);
  if (!image)
    return image.error();
  std::lock_guard guard(lock);
  auto found = gpuFunctions.find({&instance, device});
  if (found != gpuFunctions.end())
    return found->second;
  cuda::DeviceScope scope(device);
  if (!scope.status())
    return scope.status().error();
  auto capturing = cuda::isCapturing(stream);
  if (!capturing)
    return capturing.error();
  if (*capturing)
    return Error{KPKG_ERROR_CAPTURE,
                 instance.label + " is not loaded yet, and cannot be while a graph is captured: prewarm the library, "
                                  "or call the op once before",
                 {},
                 instance.label,
                 {}};
  auto loaded = gpuImages.find({instance.section, device});
  if (loaded == gpuImages.end()) {
    auto made = cuda::loadImage(*image, instance.section + "' of '" + name());
    if (!made)
      return made.error();
    loaded = gpuImages.try_emplace({instance.section, device}, *made).first;
  }
  auto function = cuda::findFunction(loaded->second, instance.symbol);
  if (!function)
    return function.error();
  if (int64_t shared = instance.launch->shared; shared > defaultShared)
    if (Status status = cuda::allowShared(*function, shared); !status)
      return status.error();
  GpuFunction result{*function};
  if (const LaunchShape &shape = *instance.launch; shape.occupancy && shape.cluster > 1) {
    auto clusters = cuda::residentClusters(*function, shape.cluster, shape.threads, shape.shared);
    if (!clusters)
      return clusters.error();
    result.residentClusters = *clusters;
  }
  return gpuFunctions[{&instance, device}] = result;
}

Status Library::prewarmGpu(int32_t device) const {
  for (const auto &op : packagedOps)
    if (Status status = op->loadPrograms(); !status)
      return status;
  auto properties = cuda::deviceProperties(device);
  if (!properties)
    return properties.error();
  ExecutionDevice own{true, device, properties->major, properties->minor, properties->multiprocessors};
  for (const Instance &instance : entries->instances)
    if (instance.launch && runsOn(instance, own))
      if (auto function = gpuFunction(instance, device, nullptr); !function)
        return function.error();
  return {};
}

Status Library::loadAll() const {
  for (const auto &op : packagedOps)
    if (Status status = op->loadPrograms(); !status)
      return status;
  auto targets = cpu::runnableTargets();
  for (const Instance &instance : entries->instances)
    if (std::find(targets.begin(), targets.end(), instance.target) != targets.end()) {
      if (auto kernel = this->kernel(instance); !kernel)
        return kernel.error();
      if (entries->kernels[instance.kernel].persistent)
        if (auto tiles = tileCount(instance); !tiles)
          return tiles.error();
    }
  return {};
}

Status Library::verify() const {
  for (const format::Section &section : reader.sections())
    if (Status status = reader.checkDigest(section); !status)
      return status;
  return loadAll();
}

Status Library::prewarmCpu() const {
  if (Status status = loadAll(); !status)
    return status;
  cpu::startThreads();
  return {};
}

} // namespace kpkg::package
