// Implements the host as a device: memory of the process, kernels of host objects, and launches that end at once.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cpu/CpuExecutable.h"
#include "runtime/device/cpu/CpuTarget.h"
#include "runtime/device/cpu/Grid.h"
#include "runtime/device/cpu/StridedCopy.h"
#include "runtime/plan/Evaluate.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

namespace kpkg::cpu {

namespace {

constexpr std::align_val_t memoryAlignment{64};
constexpr std::string_view codeKinds[] = {"host-object"};
constexpr device::Traits hostTraits = {KPKG_DEVICE_CPU, "cpu", true, true, false, device::PlanKind::Host, codeKinds};

/// Launches have ended when a call returns, so a point in time is the host's.
class HostEvent : public device::Event {
public:
  Status record(device::Stream) override {
    time = std::chrono::steady_clock::now();
    return {};
  }
  Result<double> secondsSince(const device::Event &start) const override {
    return std::chrono::duration<double>(time - static_cast<const HostEvent &>(start).time).count();
  }

private:
  std::chrono::steady_clock::time_point time;
};

class HostThreads : public device::WorkerThreads {
public:
  int most() const override { return mostThreads; }
  int count() const override { return threadCount(); }
  void setCount(int count) override { setThreadCount(count); }
  void follow(int (*count)()) override { followThreadCount(count); }
};

Error noGraphs() {
  return {KPKG_ERROR_UNSUPPORTED, "the CPU runs launches at once: it has no graphs to capture them into", {}, {}, {}};
}

class HostDevice : public device::Device {
public:
  explicit HostDevice(device::Driver &driver) : Device(driver, 0) {}

  std::optional<size_t> targetRank(std::string_view target) const override { return cpu::targetRank(target); }
  std::span<const std::string_view> targets() const override { return runnableTargets(); }
  std::string runnableText() const override {
    std::string text;
    for (std::string_view target : runnableTargets())
      text += (text.empty() ? "" : ", ") + std::string(target);
    return "this CPU runs " + (text.empty() ? "none of kpkg's targets" : text);
  }
  Result<std::unique_ptr<device::Executable>> load(std::string_view image, const std::string &imageName) override {
    auto object = HostObject::load(image, imageName);
    if (!object)
      return object.error();
    return std::unique_ptr<device::Executable>(std::make_unique<CpuExecutable>(std::move(*object), imageName));
  }
  void warmUp() override { startThreads(); }

  Result<device::Description> describe() const override {
    auto all = runnableTargets();
    device::Description description;
    description.name = "CPU";
    description.target = all.empty() ? std::string_view() : all.front();
    description.processors = threadCount();
    return description;
  }
  int64_t processors() const override { return threadCount(); }
  int64_t planProcessors() const override { return plan::hostProcessors; }
  std::string tuningName() const override { return std::to_string(threadCount()) + " threads"; }
  device::WorkerThreads *threads() override { return &pool; }

  bool enter(std::optional<Error> &) override { return false; }
  void leave() override {}

  Result<std::byte *> allocate(size_t bytes, device::Stream) override {
    return static_cast<std::byte *>(::operator new(bytes ? bytes : 1, memoryAlignment));
  }
  Status release(std::byte *memory, device::Stream) override {
    ::operator delete(memory, memoryAlignment);
    return {};
  }
  Status copy(std::byte *to, const std::byte *from, size_t bytes, device::Stream) override {
    std::memmove(to, from, bytes);
    return {};
  }
  Status copyStrided(const device::StridedCopy &copy, device::Stream) override {
    stridedCopy(copy.from, copy.fromStrides, copy.to, copy.toStrides, copy.shape, size_t(copy.elementBytes));
    return {};
  }
  Status copyFromHost(std::byte *to, const void *from, size_t bytes, device::Stream stream) override {
    return copy(to, static_cast<const std::byte *>(from), bytes, stream);
  }
  Status copyToHost(void *to, const std::byte *from, size_t bytes, device::Stream stream) override {
    return copy(static_cast<std::byte *>(to), from, bytes, stream);
  }

  Result<device::Stream> createStream() override { return device::Stream(); }
  Status destroyStream(device::Stream) override { return {}; }
  Status synchronize(device::Stream) override { return {}; }
  Result<std::unique_ptr<device::Event>> createEvent() override {
    return std::unique_ptr<device::Event>(std::make_unique<HostEvent>());
  }
  Result<bool> isCapturing(device::Stream) override { return false; }
  Status beginCapture(device::Stream) override { return noGraphs(); }
  Result<std::unique_ptr<device::Graph>> endCapture(device::Stream) override { return noGraphs(); }

private:
  HostThreads pool;
};

class HostDriver : public device::Driver {
public:
  HostDriver() : Driver(hostTraits), host(*this) {}
  Result<int32_t> deviceCount() override { return 1; }
  Result<device::Device *> device(int32_t) override { return &host; }
  bool isTarget(std::string_view target) const override { return isCpuTarget(target); }

private:
  HostDevice host;
};

} // namespace

device::Driver &hostDriver() {
  static auto *driver = new HostDriver; // never destroyed: static destructors may make calls
  return *driver;
}

} // namespace kpkg::cpu
