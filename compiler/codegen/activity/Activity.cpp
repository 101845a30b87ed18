// Records what each thread compiles in memory that a supervising process reads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/activity/Activity.h"
#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <sys/mman.h>

using namespace llvm;

namespace kpkg::compiler {

/// Threads beyond this number are not recorded.
static constexpr size_t kMostActivities = 512;

static Activity *&table() {
  static Activity *memory = nullptr;
  return memory;
}

/// Returns the record of this thread, or null.
static Activity *&own() {
  thread_local Activity *activity = nullptr;
  return activity;
}

void shareActivities() {
  if (table())
    return;
  void *memory =
      ::mmap(nullptr, kMostActivities * sizeof(Activity), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return; // failures then have shorter messages
  table() = static_cast<Activity *>(memory);
  for (size_t i = 0; i < kMostActivities; ++i)
    new (table() + i) Activity();
}

MutableArrayRef<Activity> activities() {
  return table() ? MutableArrayRef<Activity>(table(), kMostActivities) : MutableArrayRef<Activity>();
}

void clearActivities() {
  for (Activity &each : activities())
    each.state = Activity::Free;
  own() = nullptr;
}

int64_t steadyMilliseconds() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

template <size_t N> static void write(char (&field)[N], StringRef text) {
  size_t size = std::min(text.size(), N - 1);
  std::memcpy(field, text.data(), size);
  field[size] = 0;
}

ActivityScope::ActivityScope(int kind, int number, StringRef what) {
  for (Activity &each : activities()) {
    int isFree = Activity::Free;
    if (!each.state.compare_exchange_strong(isFree, Activity::Busy))
      continue;
    own() = &each;
    each.kind = kind;
    each.number = number;
    each.signal = 0;
    each.tool = 0;
    each.began = steadyMilliseconds();
    write(each.what, what);
    write(each.target, "");
    write(each.step, "");
    return;
  }
}

ActivityScope::~ActivityScope() {
  if (own() && own()->state == Activity::Busy)
    own()->state = Activity::Free;
  own() = nullptr;
}

void recordTarget(StringRef target) {
  if (own())
    write(own()->target, target);
}

void recordStep(StringRef step) {
  if (own())
    write(own()->step, step);
}

void recordTool(int process) {
  if (own())
    own()->tool = process;
}

void recordCrash(int signal) {
  if (!own())
    return;
  own()->signal = signal;
  own()->state = Activity::Crashed;
}

StringRef recordedWork() { return own() ? StringRef(own()->what) : StringRef(); }

} // namespace kpkg::compiler
