// Implements an open package: its file, its tables, and its loaded parts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Library.h"
#include "runtime/package/Devices.h"
#include "runtime/package/Environment.h"
#include "runtime/package/ReadTables.h"
#include "runtime/package/Tuning.h"

#include <algorithm>

namespace kpkg::package {

Library::Library(format::Reader opened, Trust trust, std::shared_ptr<const Tables> tables)
    : reader(std::move(opened)), trust(std::move(trust)), entries(std::move(tables)), manifest(reader.manifestText()) {}

Library::~Library() = default;

static std::string ofKind(const format::Section &section) {
  return "section '" + section.name + "', which is of kind '" + section.kind + "'";
}

/// Returns the driver of the devices that an instance is for; null if this runtime has none.
static const device::Driver *driverOf(const Instance &instance) {
  for (const device::Driver *driver : drivers())
    if (driver->isTarget(instance.target))
      return driver;
  return nullptr;
}

/// Returns "'cubin' or 'ptx'".
static std::string listKinds(std::span<const std::string_view> kinds) {
  std::string text;
  for (std::string_view kind : kinds)
    text += (text.empty() ? "'" : " or '") + std::string(kind) + "'";
  return text;
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
    const device::Driver *driver = driverOf(instance);
    if (!driver)
      continue;
    const format::Section *section = reader->find(instance.section);
    if (!section)
      return refuse(instance.label + " is said to be in section '" + instance.section + "', which is missing",
                    instance.label);
    const auto kinds = driver->traits.codeKinds;
    if (std::find(kinds.begin(), kinds.end(), section->kind) == kinds.end())
      return refuse(instance.label + " is said to be in " + ofKind(*section) + ", expected " + listKinds(kinds),
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
  for (const OpEntry &op : library->tables().ops) {
    library->packagedOps.push_back(std::make_unique<PackagedOp>(*library, op));
    noteOp(op.name);
  }
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

/// Returns the part of an instance that its device needs.
static device::KernelDescription describe(const Instance &instance, const Kernel &kernel) {
  device::KernelDescription description;
  description.symbol = instance.symbol;
  description.isPersistent = kernel.persistent;
  description.scratchBytes = instance.scratch;
  description.hasAsserts = !instance.asserts.empty();
  description.hasPrints = !instance.prints.empty();
  if (instance.launch) {
    const LaunchShape &shape = *instance.launch;
    description.shape = device::LaunchShape{shape.threads, shape.blocks,   shape.cluster, shape.occupancy,
                                            shape.shared,  shape.counters, shape.overlaps};
  }
  return description;
}

Result<const device::Kernel *> Library::load(const Instance &instance, device::Device &device, device::Stream stream,
                                             std::string_view image, bool &hasSection) const {
  std::lock_guard guard(lock);
  if (auto found = kernels.find({&instance, &device}); found != kernels.end())
    return found->second.get();
  device::Scope scope(device);
  if (!scope.ok())
    return scope.error();
  auto capturing = device.isCapturing(stream);
  if (!capturing)
    return capturing.error();
  if (*capturing)
    return Error{KPKG_ERROR_CAPTURE,
                 instance.label + " is not loaded yet, and cannot be while a graph is captured: prewarm the library, "
                                  "or call the op once before",
                 {},
                 instance.label,
                 {}};
  auto executable = executables.find({instance.section, &device});
  if (executable == executables.end()) {
    auto loaded = device.load(image, instance.section + "' of '" + name());
    if (!loaded)
      return loaded.error();
    executable = executables.try_emplace({instance.section, &device}, std::move(*loaded)).first;
  }
  hasSection = true;
  auto kernel = executable->second->kernel(describe(instance, entries->kernels[instance.kernel]));
  if (!kernel)
    return kernel.error();
  return kernels.try_emplace({&instance, &device}, std::move(*kernel)).first->second.get();
}

Result<const device::Kernel *> Library::kernel(const Instance &instance, device::Device &device,
                                               device::Stream stream) const {
  auto image = section(instance.section);
  if (!image)
    return image.error();
  bool hasSection = false;
  auto kernel = load(instance, device, stream, *image, hasSection);
  if (kernel)
    return kernel;
  Error error = kernel.error();
  error.instance = instance.label;
  if (error.status == KPKG_ERROR_UNSUPPORTED) // without the lock, because the log is the caller's
    refused.add(instance, device, !hasSection, error.message);
  return error;
}

Status Library::loadAll(device::Device &device) const {
  for (const auto &op : packagedOps)
    if (Status status = op->loadPrograms(); !status)
      return status;
  for (const Instance &instance : entries->instances)
    if (device.targetRank(instance.target) && refused.find(instance, device).empty())
      if (auto kernel = this->kernel(instance, device, nullptr);
          !kernel && kernel.error().status != KPKG_ERROR_UNSUPPORTED)
        return kernel.error();
  return {};
}

Status Library::verify() const {
  for (const format::Section &section : reader.sections())
    if (Status status = reader.checkDigest(section); !status)
      return status;
  return loadAll(hostDevice());
}

Status Library::prewarm(device::Device &device) const {
  if (Status status = loadAll(device); !status)
    return status;
  device.warmUp();
  return {};
}

} // namespace kpkg::package
