// Tells authors of kernels which lines of the source spill registers on a GPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/codegen/nvptx/Ptxas.h"
#include "compiler/pack/PackageContents.h"

namespace kpkg::compiler {

struct LocalMemoryReport {
  std::string text;                  ///< for the end of a complaint of lint(): ": rows.k:12 (24 bytes stored, ...)"
  std::vector<PackedRemark> remarks; ///< one for each line, or the reason why lines cannot be told
};

/// Returns the bytes of registers and arrays in local memory; nothing if ptxas complains about anything else.
std::optional<unsigned> localBytes(const PtxasReport &report);

/// Returns whether a kernel spills registers, or has arrays in local memory.
bool usesLocalMemory(const KernelReport &report);

/// Reports on a kernel by its machine code with a line table. `report` is that of the code which the package has.
LocalMemoryReport reportLocalMemory(const KernelReport &report, llvm::Expected<Cubin> withLines);

} // namespace kpkg::compiler
