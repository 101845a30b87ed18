// Tells where the GPU code of a kernel keeps its tiles: in which registers of which threads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/irgen/Generate.h"
#include "dialect/kgpu/launch/Hints.h"
#include <vector>

namespace kpkg::compiler {

/// One tile, distributed over the threads of a block.
struct TileLayout {
  /// Where the expression begins, or the name of the variable that it is assigned to: lines and columns from 1.
  std::string path;
  unsigned line = 0, column = 0;
  std::string type;       ///< `Tile[float32, 64, 64]`
  std::string layout;     ///< the text of layout::Layout
  unsigned elements = 0;  ///< of one thread
  unsigned registers = 0; ///< of 32 bits
};

struct KernelLayouts {
  unsigned threads = 0;
  std::vector<TileLayout> tiles; ///< in the order of the code, each once
  std::vector<kgpu::DroppedHint> dropped;
};

/// Lays out a checked instance for `chip`, for contiguous and aligned arguments, with the most promising launch. The
/// assembler does not run, so that hints which it would refuse do not count as dropped. Nothing if the kernel cannot be
/// laid out.
std::optional<KernelLayouts> layOut(const Program &program, const SourceManager &sources, InstanceRef instance,
                                    llvm::StringRef chip);

} // namespace kpkg::compiler
