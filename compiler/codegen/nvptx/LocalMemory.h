// Finds the lines of the source whose machine code uses a thread's local memory: spilled registers, and arrays.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/codegen/nvptx/PtxasReport.h"
#include "llvm/Support/Error.h"

namespace kpkg::compiler {

/// The bytes that the instructions of one line store to local memory and load from it. Each instruction counts once,
/// however often it runs.
struct LocalAccess {
  std::string place; ///< "rows.k:12", or empty for code without a line
  unsigned stored = 0;
  unsigned loaded = 0;

  bool operator==(const LocalAccess &) const = default;
};

struct LocalMemory {
  /// What local memory has. The machine code alone does not tell spills from arrays; the report of ptxas counts spills.
  enum class Content { Spills, Arrays, Both };
  Content content = Content::Spills;
  std::vector<LocalAccess> accesses; ///< most bytes first

  /// Says what one line does: "24 bytes stored, 24 loaded".
  static std::string describe(const LocalAccess &access);
  /// Lists the lines: "rows.k:12 (24 bytes stored, 24 loaded), rows.k:14 (24 bytes stored, 24 loaded)". What is not
  /// known to be spills begins with a word about that.
  std::string describe() const;
};

/// Reads the code of the kernel that `report` is about from a cubin with a line table. `cubin` may be damaged.
///
/// The error says why the lines cannot be told: there is no line table, or instructions of another encoding.
llvm::Expected<LocalMemory> readLocalMemory(llvm::StringRef cubin, const KernelReport &report);

} // namespace kpkg::compiler
