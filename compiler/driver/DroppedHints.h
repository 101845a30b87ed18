// What a build says of hints and launches that GPU code does without.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Program.h"
#include "compiler/pack/Package.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace kpkg::compiler {

/// Whether GPU code of this variant is for contiguous, aligned arguments with 32-bit offsets: the fastest.
bool isForVectors(llvm::StringRef variant);

/// A line for each kernel, hint and reason, with the place, how many of its instances lack the hint, and one of them;
/// the same for products that warpgroups could have computed, had ptxas not refused that launch. Of the variants of an
/// instance those for vectors count, where it has such. A hint that means nothing for an instance is left out where
/// another instance of the kernel has it: lists of one decorator serve dtypes and chips that differ in what they can.
std::vector<std::string> notesOnHints(const Program &program, const SourceManager &sources,
                                      llvm::ArrayRef<PackedInstance> instances);

} // namespace kpkg::compiler
