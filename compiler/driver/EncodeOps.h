// Ops to plan bytecode.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/pack/Package.h"

namespace kpkg::compiler {

class SourceManager;

/// Bytecode of every op, and of the slice of it that decides shapes.
llvm::Expected<std::vector<PackedPlan>> encodeOps(const Program &program, const SourceManager &sources);

/// All ops as plan IR, as text.
llvm::Expected<std::string> emitPlan(const Program &program, const SourceManager &sources);

} // namespace kpkg::compiler
