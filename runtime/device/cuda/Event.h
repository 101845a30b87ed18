// Declares points in time of a stream.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_EVENT_H
#define KPKG_CUDA_EVENT_H

#include "runtime/device/cuda/Driver.h"

#include <utility>

namespace kpkg::cuda {

/// Belongs to the context that was current at its creation.
class Event {
public:
  static Result<Event> create();
  Event(Event &&other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
  Event &operator=(Event &&other) noexcept { return std::swap(handle, other.handle), *this; }
  ~Event();

  /// Records the time at which the stream reaches this point.
  Status record(Stream stream);
  /// Returns the seconds since `start`, with a resolution of about half a microsecond. The stream must have reached
  /// both.
  Result<double> secondsSince(const Event &start) const;

private:
  explicit Event(void *handle) : handle(handle) {}
  void *handle = nullptr;
};

} // namespace kpkg::cuda
#endif
