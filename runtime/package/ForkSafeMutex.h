// Declares a mutex that no thread holds in a forked child.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_FORKSAFEMUTEX_H
#define KPKG_PACKAGE_FORKSAFEMUTEX_H

#include <mutex>

namespace kpkg::package {

/// A mutex for the state of libraries and ops. A fork waits until it can hold all of them. So the child finds them free
/// and the state whole, although it has none of the other threads.
class ForkSafeMutex {
public:
  ForkSafeMutex();
  ~ForkSafeMutex();
  ForkSafeMutex(const ForkSafeMutex &) = delete;

  void lock() { mutex.lock(); }
  bool try_lock() { return mutex.try_lock(); }
  void unlock() { mutex.unlock(); }

private:
  friend class ForkGate;
  std::mutex mutex;
  ForkSafeMutex *next = nullptr, *previous = nullptr; ///< guarded by the list's lock
  bool isHeldForFork = false;
};

} // namespace kpkg::package
#endif
