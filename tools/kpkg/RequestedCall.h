// The call of an op that a command line asks for: package, op, arguments and the place where it runs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "tools/kpkg/Place.h"
#include <string>
#include <vector>

namespace kpkg::command {

struct CallRequest {
  std::string package, op;
  /// As `--input` takes them.
  std::vector<std::string> inputs;
  /// As `--device` takes it.
  std::string device;
  /// Of random inputs without one of their own.
  uint64_t seed = 0;
};

struct RequestedCall {
  Library library;
  Op op;
  Place place;
  /// The arguments on the host.
  std::vector<Named> given;
  /// The same ones at the place.
  std::vector<Named> placed;

  /// Opens the package, makes the arguments and moves them to where the call runs; the first error.
  static Result<RequestedCall> prepare(const CallRequest &request);
  /// "CPU (x86-64-v3, 2 threads)", and why there where nobody asked for it.
  std::string placeText() const { return place.name + (place.why.empty() ? "" : "; " + place.why); }
};

} // namespace kpkg::command
