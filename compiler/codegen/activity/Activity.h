// Records what each thread compiles in memory that a supervising process reads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <atomic>
#include <cstdint>

namespace kpkg::compiler {

/// What one thread does. Its texts are cut to their sizes. They may be torn if another process reads them before this
/// one has ended.
struct Activity {
  enum State : int { Free, Busy, Crashed };
  std::atomic<int> state = Free;
  std::atomic<int> tool = 0;      ///< the process ID of a tool that it waits for, or 0
  std::atomic<int64_t> began = 0; ///< in milliseconds of the steady clock
  int kind = 0, number = -1;      ///< of a kernel instance; number is -1 for other work
  int signal = 0;                 ///< if it crashed
  char what[256] = {};            ///< "softmax_rows[T=float32]"
  char target[48] = {};
  char step[96] = {}; ///< a pass, or a tool; empty between them
};

/// Shares the record of this process with its later children. Call before there are threads. Without a call nothing is
/// recorded.
void shareActivities();

/// Returns the record; empty without shareActivities().
llvm::MutableArrayRef<Activity> activities();

/// Forgets everything that was recorded.
void clearActivities();

/// Returns the steady clock in milliseconds.
int64_t steadyMilliseconds();

/// Records that this thread compiles something, as long as the object lives. It stays recorded after a crash.
class ActivityScope {
public:
  ActivityScope(int kind, int number, llvm::StringRef what);
  ~ActivityScope();
  ActivityScope(const ActivityScope &) = delete;
  ActivityScope &operator=(const ActivityScope &) = delete;
};

/// Add to the record of this thread, if there is one.
void recordTarget(llvm::StringRef target);
void recordStep(llvm::StringRef step);
void recordTool(int process);
void recordCrash(int signal);

/// Returns what this thread compiles; empty without a record.
llvm::StringRef recordedWork();

} // namespace kpkg::compiler
