// Declares the interface of devices: memory, code, launches, events and graphs; and of the drivers that open them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DEVICE_DEVICE_H
#define KPKG_DEVICE_DEVICE_H

#include "runtime/device/Launch.h"
#include "runtime/device/Profiler.h"

#include <kpkg/kpkg.h>
#include <kpkg/result.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kpkg::device {

/// The plans of an op that a device executes: those that packages make for hosts or for GPUs.
enum class PlanKind : uint8_t { Host, Gpu };

/// What all devices of a driver have in common.
struct Traits {
  int32_t type;          ///< DLPack's number
  std::string_view name; ///< "cpu", "cuda"
  /// There is one device, whatever index a tensor has.
  bool isSingle;
  /// Its memory is that of the host, and a call has ended when it returns.
  bool hasHostMemory;
  /// Instances are chosen by the alignment of addresses, too: planned calls and outputs differ by it.
  bool plansByAlignment;
  PlanKind plans;
  /// Kinds of sections with its code.
  std::span<const std::string_view> codeKinds;
};

/// Facts for reports.
struct Description {
  std::string name;
  std::string target;
  int32_t processors = 0;
  int32_t driverVersion = 0; ///< 0: there is no driver
  uint64_t memoryBytes = 0;  ///< 0: unknown, like the next
  uint64_t cacheBytes = 0;   ///< of the cache that all processors share
};

/// A strided copy on one device. Addresses are those of the elements with all indices 0, strides are in elements. The
/// views must not overlap.
struct StridedCopy {
  const std::byte *from;
  std::span<const int64_t> fromStrides;
  std::byte *to;
  std::span<const int64_t> toStrides;
  std::span<const int64_t> shape;
  int64_t elementBytes; ///< 1, 2, 4 or 8
};

/// A point in time of a stream. Belongs to a device, which is entered.
class Event {
public:
  virtual ~Event() = default;
  /// Records the time at which the stream reaches this point.
  virtual Status record(Stream stream) = 0;
  /// Returns the seconds since `start`. The streams must have reached both.
  virtual Result<double> secondsSince(const Event &start) const = 0;
};

/// Captured work that can be replayed. Belongs to a device, which is entered.
class Graph {
public:
  virtual ~Graph() = default;
  /// Queues all of it on the stream.
  virtual Status replay(Stream stream) = 0;
};

/// Threads of the host that share the work of large launches.
class WorkerThreads {
public:
  virtual ~WorkerThreads() = default;
  virtual int most() const = 0;
  virtual int count() const = 0;
  /// Sets the number, 1 to most().
  virtual void setCount(int count) = 0;
  /// Asks `count` at each large launch, on its thread, until setCount is called; null ends that.
  virtual void follow(int (*count)()) = 0;
};

class Driver;

/// A device, which exists as long as the process. Any number of threads may use it.
///
/// Errors of its functions are KPKG_ERROR_DEVICE if a driver reports them, and name the driver's call, code and text.
/// All functions between `enter` and `leave` work on the thread's current device.
class Device {
public:
  Device(Driver &driver, int32_t index) : owner(driver), number(index) {}
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;
  virtual ~Device() = default;

  Driver &driver() const { return owner; }
  const Traits &traits() const;
  int32_t index() const { return number; }

  //===--- Code ---===//
  /// Returns the rank of a target among those that the device runs, 0 for the best, or nothing.
  virtual std::optional<size_t> targetRank(std::string_view target) const = 0;
  /// Returns the targets that it is named by, best first.
  virtual std::span<const std::string_view> targets() const = 0;
  /// Says in words for a refusal which code it runs: "this GPU is sm_90".
  virtual std::string runnableText() const = 0;
  /// Loads code. `imageName` is its name in messages.
  ///
  /// KPKG_ERROR_UNSUPPORTED: the device refuses this image; another instance may do. KPKG_ERROR_FORMAT: it is no valid
  /// image. The device is entered, and the stream of the call is not captured.
  virtual Result<std::unique_ptr<Executable>> load(std::string_view image, const std::string &imageName) = 0;
  /// Starts what the first launch would start.
  virtual void warmUp() {}

  //===--- Limits and properties ---===//
  virtual Result<Description> describe() const = 0;
  /// Returns the tensor maps that kernels may use; null: none.
  virtual const TensorMapLimits *tensorMaps() const { return nullptr; }
  /// Returns the processors that compute side by side.
  virtual int64_t processors() const = 0;
  /// Returns the number of processors that plans see. It does not depend on settings of the process.
  virtual int64_t planProcessors() const = 0;
  /// Returns its name in tuning tables.
  virtual std::string tuningName() const = 0;
  /// Null if the host's threads do not compute its launches.
  virtual WorkerThreads *threads() { return nullptr; }

  //===--- Context ---===//
  /// Makes the device current for this thread; use Scope. Returns whether `leave` must follow.
  virtual bool enter(std::optional<Error> &failure) = 0;
  virtual void leave() = 0;

  //===--- Memory ---===//
  /// Allocates memory in stream order, aligned to at least 64 bytes. 0 bytes may give null.
  virtual Result<std::byte *> allocate(size_t bytes, Stream stream) = 0;
  /// Frees memory in stream order; null is allowed.
  virtual Status release(std::byte *memory, Stream stream) = 0;
  /// Copies within the device.
  virtual Status copy(std::byte *to, const std::byte *from, size_t bytes, Stream stream) = 0;
  virtual Status copyStrided(const StridedCopy &copy, Stream stream) = 0;
  /// The host's memory may be changed or read once the stream is synchronised.
  virtual Status copyFromHost(std::byte *to, const void *from, size_t bytes, Stream stream) = 0;
  virtual Status copyToHost(void *to, const std::byte *from, size_t bytes, Stream stream) = 0;

  //===--- Streams, events and graphs ---===//
  /// Creates a stream that does not wait for the default stream. Null if there is only one.
  virtual Result<Stream> createStream() = 0;
  virtual Status destroyStream(Stream stream) = 0;
  virtual Status synchronize(Stream stream) = 0;
  virtual Result<std::unique_ptr<Event>> createEvent() = 0;
  /// Returns whether work on the stream is captured into a graph.
  virtual Result<bool> isCapturing(Stream stream) = 0;
  /// Captures the work of `beginCapture` to `endCapture` on a created stream instead of running it.
  /// KPKG_ERROR_UNSUPPORTED: the device has no graphs.
  virtual Status beginCapture(Stream stream) = 0;
  virtual Result<std::unique_ptr<Graph>> endCapture(Stream stream) = 0;

private:
  Driver &owner;
  int32_t number;
};

/// Counts of images that this process passed to a driver.
struct LoadCounts {
  uint64_t loads = 0;
  uint64_t compilations = 0; ///< those of them that the driver had to compile
};

/// Opens the devices of one type.
class Driver {
public:
  explicit Driver(const Traits &traits) : traits(traits) {}
  Driver(const Driver &) = delete;
  Driver &operator=(const Driver &) = delete;
  virtual ~Driver() = default;

  const Traits traits;

  /// Fails if the machine lacks the driver.
  virtual Result<int32_t> deviceCount() = 0;
  /// Returns the same device for the same index, or why there is none.
  virtual Result<Device *> device(int32_t index) = 0;
  /// Returns whether the target is one of its devices', runnable here or not.
  virtual bool isTarget(std::string_view target) const = 0;
  /// Null if calls last as long as their launches.
  virtual Profiler *profiler() { return nullptr; }
  virtual LoadCounts loadCounts() const { return {}; }

  /// Returns "cuda:0", or "cpu" for a single device.
  std::string deviceName(int32_t index) const {
    std::string name(traits.name);
    return traits.isSingle ? name : name + ":" + std::to_string(index);
  }
};

inline const Traits &Device::traits() const { return owner.traits; }

/// Makes a device current for its scope.
class Scope {
public:
  explicit Scope(Device &device) : device(device), isEntered(device.enter(failure)) {}
  Scope(const Scope &) = delete;
  Scope &operator=(const Scope &) = delete;
  ~Scope() {
    if (isEntered)
      device.leave();
  }
  bool ok() const { return !failure; }
  const Error &error() const { return *failure; }

private:
  Device &device;
  std::optional<Error> failure;
  bool isEntered;
};

} // namespace kpkg::device
#endif
