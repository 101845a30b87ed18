// Implements NVIDIA's GPUs as devices.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/Api.h"
#include "runtime/device/cuda/CudaExecutable.h"
#include "runtime/device/cuda/CudaTarget.h"
#include "runtime/device/cuda/Event.h"
#include "runtime/device/cuda/Graph.h"
#include "runtime/device/cuda/LaunchTimes.h"
#include "runtime/device/cuda/Memory.h"
#include "runtime/device/cuda/StridedCopy.h"
#include "runtime/device/cuda/TensorMap.h"

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

namespace kpkg::cuda {

namespace {

constexpr std::string_view codeKinds[] = {"cubin", "ptx"};
constexpr device::Traits gpuTraits = {KPKG_DEVICE_CUDA, "cuda", false, false, true, device::PlanKind::Gpu, codeKinds};

uint64_t addressOf(const std::byte *memory) { return reinterpret_cast<uint64_t>(memory); }

class StreamEvent : public device::Event {
public:
  explicit StreamEvent(cuda::Event event) : event(std::move(event)) {}
  Status record(device::Stream stream) override { return event.record(stream); }
  Result<double> secondsSince(const device::Event &start) const override {
    return event.secondsSince(static_cast<const StreamEvent &>(start).event);
  }

private:
  cuda::Event event;
};

class CudaDevice : public device::Device {
public:
  CudaDevice(device::Driver &driver, int32_t index, DeviceProperties found)
      : Device(driver, index), properties(std::move(found)),
        target("sm_" + std::to_string(properties.major * 10 + properties.minor)), targetView(target) {}

  std::optional<size_t> targetRank(std::string_view of) const override {
    return cuda::targetRank(of, properties.major, properties.minor);
  }
  std::span<const std::string_view> targets() const override { return {&targetView, 1}; }
  std::string runnableText() const override { return "this GPU is " + target; }
  Result<std::unique_ptr<device::Executable>> load(std::string_view image, const std::string &imageName) override {
    auto loaded = loadImage(image, imageName);
    if (!loaded)
      return loaded.error();
    return std::unique_ptr<device::Executable>(
        std::make_unique<CudaExecutable>(*loaded, index(), properties.multiprocessors));
  }

  Result<device::Description> describe() const override {
    auto details = deviceDetails(index());
    if (!details)
      return details.error();
    auto version = driverVersion();
    if (!version)
      return version.error();
    return device::Description{properties.name,
                               target,
                               properties.multiprocessors,
                               *version,
                               uint64_t(details->memoryBytes),
                               uint64_t(details->cacheBytes)};
  }
  const device::TensorMapLimits *tensorMaps() const override { return &tensorMapLimits; }
  int64_t processors() const override { return properties.multiprocessors; }
  int64_t planProcessors() const override { return properties.multiprocessors; }
  std::string tuningName() const override { return properties.name; }

  bool enter(std::optional<Error> &failure) override {
    auto entered = enterContext(index());
    if (!entered)
      failure = entered.error();
    return entered && *entered;
  }
  void leave() override { leaveContext(); }

  Result<std::byte *> allocate(size_t bytes, device::Stream stream) override {
    auto memory = cuda::allocate(index(), int64_t(bytes), stream);
    if (!memory)
      return memory.error();
    return reinterpret_cast<std::byte *>(*memory);
  }
  Status release(std::byte *memory, device::Stream stream) override { return cuda::release(addressOf(memory), stream); }
  Status copy(std::byte *to, const std::byte *from, size_t bytes, device::Stream stream) override {
    return cuda::copy(addressOf(to), addressOf(from), int64_t(bytes), stream);
  }
  Status copyStrided(const device::StridedCopy &copy, device::Stream stream) override {
    return stridedCopy(addressOf(copy.from), copy.fromStrides, addressOf(copy.to), copy.toStrides, copy.shape,
                       copy.elementBytes, stream);
  }
  Status copyFromHost(std::byte *to, const void *from, size_t bytes, device::Stream stream) override {
    return copyToDevice(addressOf(to), from, int64_t(bytes), stream);
  }
  Status copyToHost(void *to, const std::byte *from, size_t bytes, device::Stream stream) override {
    return cuda::copyToHost(to, addressOf(from), int64_t(bytes), stream);
  }

  Result<device::Stream> createStream() override { return cuda::createStream(); }
  Status destroyStream(device::Stream stream) override { return cuda::destroyStream(stream); }
  Status synchronize(device::Stream stream) override { return cuda::synchronize(stream); }
  Result<std::unique_ptr<device::Event>> createEvent() override {
    auto event = cuda::Event::create();
    if (!event)
      return event.error();
    return std::unique_ptr<device::Event>(std::make_unique<StreamEvent>(std::move(*event)));
  }
  Result<bool> isCapturing(device::Stream stream) override { return cuda::isCapturing(stream); }
  Status beginCapture(device::Stream stream) override { return cuda::beginCapture(stream); }
  Result<std::unique_ptr<device::Graph>> endCapture(device::Stream stream) override { return cuda::endCapture(stream); }

private:
  DeviceProperties properties;
  std::string target;
  std::string_view targetView;
};

class CudaDriver : public device::Driver {
public:
  CudaDriver() : Driver(gpuTraits) {}
  Result<int32_t> deviceCount() override { return cuda::deviceCount(); }
  Result<device::Device *> device(int32_t index) override;
  bool isTarget(std::string_view target) const override { return isGpuTarget(target); }
  device::Profiler *profiler() override { return &times; }
  device::LoadCounts loadCounts() const override { return cuda::loadCounts(); }

  void forget() {
    std::lock_guard guard(lock);
    for (auto &device : current)
      device.store(nullptr, std::memory_order_release);
  }

private:
  LaunchTimes times;
  std::mutex lock;
  std::array<std::atomic<CudaDevice *>, maxDevices> current = {};
  std::vector<std::unique_ptr<CudaDevice>> all; ///< also forgotten ones, which callers may still have
};

} // namespace

Result<device::Device *> CudaDriver::device(int32_t index) {
  const bool isValid = index >= 0 && index < maxDevices;
  if (isValid)
    if (CudaDevice *known = current[size_t(index)].load(std::memory_order_acquire))
      return known;
  auto properties = deviceProperties(index);
  if (!properties)
    return properties.error();
  std::lock_guard guard(lock);
  if (CudaDevice *known = current[size_t(index)].load(std::memory_order_relaxed))
    return known;
  all.push_back(std::make_unique<CudaDevice>(*this, index, std::move(*properties)));
  current[size_t(index)].store(all.back().get(), std::memory_order_release);
  return all.back().get();
}

static CudaDriver &sharedDriver() {
  static auto *driver = new CudaDriver; // never destroyed: static destructors may make calls
  return *driver;
}

device::Driver &gpuDriver() { return sharedDriver(); }

void forgetDevices() { sharedDriver().forget(); }

} // namespace kpkg::cuda
