// Notices calls that take too long.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace kpkg::command {

/// Calls `expire` from another thread if the object still lives after `seconds`; 0 is no limit. Nothing can stop a
/// kernel on a CPU, so `expire` ends the process.
class TimeLimit {
public:
  TimeLimit(int seconds, std::function<void()> expire);
  ~TimeLimit();
  TimeLimit(const TimeLimit &) = delete;
  TimeLimit &operator=(const TimeLimit &) = delete;

private:
  std::mutex mutex;
  std::condition_variable changed;
  bool isOver = false;
  std::thread waiting;
};

} // namespace kpkg::command
