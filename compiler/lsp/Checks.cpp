// Checks open files on a thread of their own.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/lsp/Checks.h"
#include <algorithm>

namespace kpkg::lsp {

/// So long nothing is typed before a check begins: it would be in vain within a word.
static constexpr std::chrono::milliseconds pause(120);

Checks::Checks(AnalysisOptions options, Client client)
    : options(std::move(options)), client(std::move(client)), thread([this] { run(); }) {}

Checks::~Checks() {
  {
    std::lock_guard lock(mutex);
    isEnding = isStale = true;
  }
  changed.notify_all();
  thread.join();
}

void Checks::request(const std::string &path, bool isNext) {
  {
    std::lock_guard lock(mutex);
    std::erase(waiting, path);
    if (isNext)
      waiting.push_front(path);
    else
      waiting.push_back(path);
    bool isInTheWay = isNext && !running.empty() && running != path && !isStale;
    if (isInTheWay && std::find(waiting.begin(), waiting.end(), running) == waiting.end())
      waiting.push_back(running);
    isStale |= running == path || isInTheWay;
    lastRequest = Clock::now();
  }
  changed.notify_all();
}

void Checks::forget(const std::string &path) {
  std::lock_guard lock(mutex);
  std::erase(waiting, path);
  isStale |= running == path;
}

std::optional<std::string> Checks::next() {
  std::unique_lock lock(mutex);
  running.clear();
  for (;;) {
    if (isEnding)
      return std::nullopt;
    if (waiting.empty()) {
      changed.wait(lock);
    } else if (Clock::now() < lastRequest + pause) {
      changed.wait_until(lock, lastRequest + pause);
    } else {
      running = waiting.front();
      waiting.pop_front();
      isStale = false;
      return running;
    }
  }
}

void Checks::run() {
  while (auto path = next()) {
    auto stale = [&] {
      std::lock_guard lock(mutex);
      return isStale;
    };
    analyse(
        *path, client.texts(), options, stale, [&](const Analysis &found) { client.early(*path, found); },
        [&](const Analysis &found) { client.done(*path, found); });
  }
}

} // namespace kpkg::lsp
