// Declares the thread that checks open files while requests are answered.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/lsp/Analysis.h"
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace kpkg::lsp {

/// Checks files one after the other. A request for a file whose check runs ends that check. So does a request for a
/// file that is next, and the other check waits again. Edits in quick succession lead to one check.
class Checks {
public:
  struct Client {
    std::function<OpenTexts()> texts;
    /// Receives results, also early ones. Called from the thread.
    std::function<void(const std::string &path, const Analysis &)> early, done;
  };
  Checks(AnalysisOptions options, Client client);
  ~Checks();

  /// Requests a check of an open file: next, or after those that wait.
  void request(const std::string &path, bool isNext);
  /// Forgets a file that was closed.
  void forget(const std::string &path);

private:
  using Clock = std::chrono::steady_clock;
  const AnalysisOptions options;
  const Client client;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> waiting;
  Clock::time_point lastRequest;
  std::string running;
  bool isStale = false, isEnding = false;
  std::thread thread;

  void run();
  std::optional<std::string> next();
};

} // namespace kpkg::lsp
