// Writes notes on hints and launches that GPU code does not follow.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Program.h"
#include "compiler/pack/Package.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace kpkg::compiler {

/// Returns whether GPU code of this variant is for contiguous, aligned arguments with 32-bit offsets, which is the
/// fastest.
bool isForVectors(llvm::StringRef variant);

/// Returns a line for each kernel, hint and reason: the place, how many of its instances do not follow the hint, and
/// one of them.
///
/// There are also lines for products that warpgroups could have computed if ptxas had accepted that launch. Only
/// vectorised variants of an instance count, if it has some.
///
/// A hint without meaning for an instance is omitted if another instance of the kernel follows it. Lists of one
/// decorator are for dtypes and chips with different features.
std::vector<std::string> notesOnHints(const Program &program, const SourceManager &sources,
                                      llvm::ArrayRef<PackedInstance> instances);

} // namespace kpkg::compiler
