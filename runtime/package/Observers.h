// Says whether calls are observed: by a profile, or by a record. Calls test both at once.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_OBSERVERS_H
#define KPKG_PACKAGE_OBSERVERS_H

#include <atomic>

namespace kpkg::package {

enum Observer : unsigned { Profiling = 1, Recording = 2 };

namespace detail {
inline std::atomic<unsigned> observers = 0;
}

/// Costs one load.
inline bool isObserved() { return detail::observers.load(std::memory_order_relaxed) != 0; }
inline bool isObservedBy(Observer one) { return detail::observers.load(std::memory_order_relaxed) & one; }
inline void setObserver(Observer one, bool isOn) {
  if (isOn)
    detail::observers.fetch_or(one);
  else
    detail::observers.fetch_and(~unsigned(one));
}

} // namespace kpkg::package
#endif
