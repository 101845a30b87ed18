// What a build says of variants of instances that are slow or left out.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Program.h"
#include "compiler/irgen/Generate.h"
#include "llvm/ADT/ArrayRef.h"
#include <string>
#include <vector>

namespace kpkg::compiler {

struct VariantNote {
  enum Kind : uint8_t {
    LeftOut,     ///< no launch is fast, or it cannot be done: more general variants or alternatives serve
    Slow,        ///< there is code, which is slow
    Outperformed ///< its code is slow, and that of an alternative is not
  } kind = LeftOut;
  std::string target;
  std::string variant; ///< empty: all of them
  std::string why;
};

/// A line for each kernel, with its place: how many variants of its instances are left out and how many are slow, with
/// an example of each of some reasons. `notes` has those of each of `refs`.
std::vector<std::string> notesOnVariants(const Program &program, const SourceManager &sources,
                                         llvm::ArrayRef<InstanceRef> refs,
                                         llvm::ArrayRef<std::vector<VariantNote>> notes);

/// What reasons that differ in numbers only have in common.
std::string withoutNumbers(llvm::StringRef text);
/// The text in one line.
std::string inOneLine(llvm::StringRef text);

} // namespace kpkg::compiler
