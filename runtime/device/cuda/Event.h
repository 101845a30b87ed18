// Points in time of a stream.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_EVENT_H
#define KPKG_CUDA_EVENT_H

#include "runtime/device/cuda/Driver.h"

#include <utility>

namespace kpkg::cuda {

/// Of the context that was current when it was made.
class Event {
public:
  static Result<Event> create();
  Event(Event &&other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
  Event &operator=(Event &&other) noexcept { return std::swap(handle, other.handle), *this; }
  ~Event();

  /// When the stream gets here.
  Status record(Stream stream);
  /// Seconds from `start` to this one, about half a microsecond exact; both must have been reached.
  Result<double> secondsSince(const Event &start) const;

private:
  explicit Event(void *handle) : handle(handle) {}
  void *handle = nullptr;
};

} // namespace kpkg::cuda
#endif
