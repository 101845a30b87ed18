// Declares scopes that release or hold Python's lock, also while Python ends.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <nanobind/nanobind.h>

#include <unistd.h>

namespace kpkg::python {

/// Python up to 3.13 unwinds threads that ask for its lock while it ends. C++ would end the process where the unwinding
/// passes code that does not throw. So this stops the thread, as later versions do; the process ends without it.
class StopWhenUnwound {
public:
  ~StopWhenUnwound() {
    while (!hasReturned)
      ::pause();
  }
  void done() { hasReturned = true; }

private:
  bool hasReturned = false;
};

/// Runs a function without Python's lock.
template <class Function> auto withoutGil(Function function) {
  PyThreadState *state = PyEval_SaveThread();
  auto result = function();
  StopWhenUnwound stop;
  PyEval_RestoreThread(state);
  stop.done();
  return result;
}

/// Holds Python's lock.
class HoldGil {
public:
  HoldGil() {
    StopWhenUnwound stop;
    state = PyGILState_Ensure();
    stop.done();
  }
  ~HoldGil() { PyGILState_Release(state); }
  HoldGil(const HoldGil &) = delete;

private:
  PyGILState_STATE state;
};

} // namespace kpkg::python
