// Declares what the checks of a launch share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Frame.h"

namespace kpkg::compiler {

/// The parameters of a launch, one for each of the kernel. Parameters with several values that the launch does not give
/// have no value.
struct Elaborator::LaunchParameters {
  std::vector<Operand> values;
  std::vector<bool> isGiven, atLeast;
  std::vector<Node *> nodes;
  /// The kernel's arguments that are structs, by number; others have no type.
  std::vector<Operand> structs;
};

} // namespace kpkg::compiler
