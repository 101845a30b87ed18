// Remembers which code a device has refused, so that calls use other instances.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Refusals.h"
#include "runtime/package/Log.h"

namespace kpkg::package {

void Refusals::add(const Instance &instance, const device::Device &device, bool wholeSection,
                   const std::string &reason) {
  {
    std::lock_guard guard(lock);
    bool isNew = wholeSection ? sections.try_emplace({instance.section, &device}, reason).second
                              : instances.try_emplace({&instance, &device}, reason).second;
    isEmpty.store(false, std::memory_order_release);
    if (!isNew)
      return;
  }
  log(KPKG_LOG_WARN, device.driver().deviceName(device.index()) + " refuses " +
                         (wholeSection ? "section '" + instance.section + "', so calls use other instances than "
                                       : "an instance, so calls use others than ") +
                         instance.label + ": " + reason);
}

std::string Refusals::find(const Instance &instance, const device::Device &device) const {
  if (isEmpty.load(std::memory_order_acquire))
    return {};
  std::lock_guard guard(lock);
  if (auto found = instances.find({&instance, &device}); found != instances.end())
    return found->second;
  auto found = sections.find({instance.section, &device});
  return found == sections.end() ? std::string() : found->second;
}

} // namespace kpkg::package
