// Notices calls that take too long.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/TimeLimit.h"
#include <utility>

namespace kpkg::command {

TimeLimit::TimeLimit(int seconds, std::function<void()> expire) {
  if (seconds == 0)
    return;
  waiting = std::thread([this, seconds, expire = std::move(expire)] {
    std::unique_lock lock(mutex);
    if (!changed.wait_for(lock, std::chrono::seconds(seconds), [this] { return isOver; }))
      expire();
  });
}

TimeLimit::~TimeLimit() {
  if (!waiting.joinable())
    return;
  {
    std::lock_guard lock(mutex);
    isOver = true;
  }
  changed.notify_one();
  waiting.join();
}

} // namespace kpkg::command
