// Declares the state of a loop nest over the elements of a tile.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/lower/cpu/KernelEmitter.h"

namespace kpkg::lower::cpu {

struct KernelEmitter::NestState {
  llvm::ArrayRef<int64_t> shape;
  llvm::SmallVector<Sink> sinks;
  llvm::SmallVector<const Sink *> reduces; ///< The sinks that are reductions.
  int reduceDim, vectorDim;
  llvm::SmallVector<int> outer; ///< The dimensions with loops around the others.
  int64_t unroll;
  Position position;
  llvm::SmallVector<mlir::Value> begin,
      end; ///< Per dimension, for stores and for tiles with given ends; empty otherwise.
  llvm::SmallVector<mlir::Value> linesEnd; ///< For reductions: the ends of the lines whose results are read.
  mlir::Value nonempty;                    ///< For a store: at least one element is inside the view.
  llvm::SmallVector<mlir::Value> results;  ///< For reductions in a nest without outer loops.
  llvm::SmallVector<mlir::Value>
      lastValues; ///< The operand of each reduction in the last chunk, including lanes beyond the end.

  /// Returns whether the reduction runs along another dimension than the vectors.
  bool isAcross() const { return reduceDim >= 0 && reduceDim != vectorDim; }
  /// Returns whether results of reductions have several elements, which go to buffers instead of SSA values.
  bool hasBuffers() const { return isAcross() || !outer.empty(); }
};

} // namespace kpkg::lower::cpu
