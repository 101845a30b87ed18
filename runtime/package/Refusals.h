// Remembers which code a device has refused, so that calls use other instances.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_REFUSALS_H
#define KPKG_PACKAGE_REFUSALS_H

#include "runtime/device/Device.h"
#include "runtime/package/ForkSafeMutex.h"
#include "runtime/package/Tables.h"

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace kpkg::package {

/// Of one package. Any number of threads may use it.
class Refusals {
public:
  /// Adds an instance, or with `wholeSection` all instances of its section. `reason` is the device's. Logs the first
  /// refusal of an instance or a section.
  void add(const Instance &instance, const device::Device &device, bool wholeSection, const std::string &reason);
  /// Returns why the device refuses the instance's code; empty if it has not done so.
  std::string find(const Instance &instance, const device::Device &device) const;

private:
  /// Read without the lock, because most packages have no refusals.
  std::atomic<bool> isEmpty = true;
  mutable ForkSafeMutex lock;
  std::map<std::pair<const Instance *, const device::Device *>, std::string> instances;
  std::map<std::pair<std::string, const device::Device *>, std::string> sections;
};

} // namespace kpkg::package
#endif
