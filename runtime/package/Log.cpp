// Sends messages to a sink that the process may set.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Log.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <shared_mutex>

namespace kpkg::package {

namespace {
struct Sink {
  std::shared_mutex lock;
  kpkg_log_fn function = nullptr;
  void *context = nullptr;
};
} // namespace

/// Never destroyed, because messages may arrive while the process exits.
static Sink &sink() {
  static Sink *const created = new Sink;
  return *created;
}

static kpkg_log_level limitOfEnvironment() {
  const char *text = std::getenv("KPKG_LOG");
  const char *const names[] = {"error", "warn", "info", "debug"};
  for (int level = KPKG_LOG_ERROR; text && level <= KPKG_LOG_DEBUG; ++level)
    if (std::strcmp(text, names[level]) == 0)
      return kpkg_log_level(level);
  return KPKG_LOG_WARN;
}

void setLog(kpkg_log_fn function, void *context) {
  std::unique_lock guard(sink().lock);
  sink().function = function;
  sink().context = context;
}

void log(kpkg_log_level level, const std::string &message) {
  std::shared_lock guard(sink().lock);
  if (sink().function) {
    sink().function(sink().context, level, message.c_str());
    return;
  }
  static const kpkg_log_level limit = limitOfEnvironment();
  if (level == KPKG_LOG_PRINT)
    std::fprintf(stderr, "%s\n", message.c_str());
  else if (level <= limit)
    std::fprintf(stderr, "kpkg: %s\n", message.c_str());
}

} // namespace kpkg::package
