// Writes notes on variants that are slow or omitted.
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
    LeftOut,     ///< no fast launch, or unsupported: more general variants or alternatives replace it
    Slow,        ///< its code is slow
    Outperformed ///< its code is slow, and an alternative's is not
  } kind = LeftOut;
  std::string target;
  std::string variant; ///< empty: all variants
  std::string why;
};

/// Returns a title such as "gemm_tiles[T=float32, BM=64]".
std::string title(const Program &program, InstanceRef ref);

/// Returns a line for each kernel with its place. The line has the numbers of omitted and slow variants, and an example
/// for each of some reasons. `notes` has the notes of each of `refs`.
std::vector<std::string> notesOnVariants(const Program &program, const SourceManager &sources,
                                         llvm::ArrayRef<InstanceRef> refs,
                                         llvm::ArrayRef<std::vector<VariantNote>> notes);

/// Returns the text without numbers, to group reasons that differ only in these.
std::string withoutNumbers(llvm::StringRef text);
/// Returns the text on one line.
std::string inOneLine(llvm::StringRef text);

} // namespace kpkg::compiler
