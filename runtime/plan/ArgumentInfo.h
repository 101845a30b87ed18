// Declares the arguments of a plan.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "runtime/plan/Evaluate.h"

namespace kpkg::plan {

/// The argument at a position of the schema.
struct ArgumentInfo {
  std::string_view name;
  Argument::Kind kind; ///< never None; a Tensor argument also takes None
  bool isMut = false;
  /// A scalar that only flows into launch arguments, and is not part of the key.
  bool passThrough = false;
};

} // namespace kpkg::plan
