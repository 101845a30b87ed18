// Prepares the call of an op that a command line requests: package, op, arguments and place.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "tools/kpkg/Place.h"
#include <string>
#include <vector>

namespace kpkg::command {

struct CallRequest {
  std::string package, op;
  /// In the format of `--input`.
  std::vector<std::string> inputs;
  /// In the format of `--device`.
  std::string device;
  /// For random inputs without a seed.
  uint64_t seed = 0;
};

struct RequestedCall {
  Library library;
  Op op;
  Place place;
  /// The arguments on the host.
  std::vector<Named> given;
  /// The arguments at the place.
  std::vector<Named> placed;

  /// Opens the package, creates the arguments, and moves them to the call's place. Returns the first error.
  static Result<RequestedCall> prepare(const CallRequest &request);
  /// Returns "CPU (x86-64-v3, 2 threads)", with the reason for the place if it was not requested.
  std::string placeText() const { return place.name + (place.why.empty() ? "" : "; " + place.why); }
};

} // namespace kpkg::command
