// Implements the list of mutexes that a fork holds.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/ForkSafeMutex.h"

#include <chrono>
#include <pthread.h>
#include <thread>

namespace kpkg::package {

/// All mutexes. Never destroyed, because objects with static storage have some.
class ForkGate {
public:
  static ForkGate &get() {
    static ForkGate *gate = new ForkGate;
    return *gate;
  }

  void add(ForkSafeMutex &mutex) {
    std::lock_guard guard(lock);
    mutex.next = first;
    if (first)
      first->previous = &mutex;
    first = &mutex;
  }
  void remove(ForkSafeMutex &mutex) {
    std::lock_guard guard(lock);
    (mutex.previous ? mutex.previous->next : first) = mutex.next;
    if (mutex.next)
      mutex.next->previous = mutex.previous;
  }

private:
  ForkGate() {
    ::pthread_atfork([] { get().holdAll(); }, [] { get().releaseAll(); }, [] { get().releaseAll(); });
  }

  /// Threads take several mutexes in orders of their own. So this takes all or none, and waits without one. It gives up
  /// where a thread holds one for long, as when this thread forks in a callback that itself runs under one.
  void holdAll() {
    lock.lock();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (!tryHoldAll()) {
      if (std::chrono::steady_clock::now() > end)
        return;
      lock.unlock(); // a thread that holds one may be about to make or drop another
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      lock.lock();
    }
  }
  bool tryHoldAll() {
    for (ForkSafeMutex *mutex = first; mutex; mutex = mutex->next) {
      mutex->isHeldForFork = mutex->try_lock();
      if (mutex->isHeldForFork)
        continue;
      for (ForkSafeMutex *held = first; held != mutex; held = held->next)
        release(*held);
      return false;
    }
    return true;
  }
  void releaseAll() {
    for (ForkSafeMutex *mutex = first; mutex; mutex = mutex->next)
      if (mutex->isHeldForFork)
        release(*mutex);
    lock.unlock();
  }
  static void release(ForkSafeMutex &mutex) {
    mutex.isHeldForFork = false;
    mutex.unlock();
  }

  std::mutex lock;
  ForkSafeMutex *first = nullptr;
};

ForkSafeMutex::ForkSafeMutex() { ForkGate::get().add(*this); }
ForkSafeMutex::~ForkSafeMutex() { ForkGate::get().remove(*this); }

} // namespace kpkg::package
