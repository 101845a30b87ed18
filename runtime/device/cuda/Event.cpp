// Implements points in time of a stream.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cuda/Event.h"
#include "runtime/device/cuda/Api.h"

namespace kpkg::cuda {

Result<Event> Event::create() {
  auto api = driver();
  if (!api)
    return api.error();
  void *made = nullptr;
  if (Status status = check((*api)->eventCreate(&made, 0), "cuEventCreate"); !status)
    return status.error();
  return Event(made);
}

Event::~Event() {
  if (handle)
    loadedApi().eventDestroy(handle);
}

Status Event::record(Stream stream) { return check(loadedApi().eventRecord(handle, stream), "cuEventRecord"); }

Result<double> Event::secondsSince(const Event &start) const {
  float milliseconds = 0;
  if (Status status = check(loadedApi().eventElapsed(&milliseconds, start.handle, handle), "cuEventElapsedTime");
      !status)
    return status.error();
  return double(milliseconds) * 1e-3;
}

} // namespace kpkg::cuda
