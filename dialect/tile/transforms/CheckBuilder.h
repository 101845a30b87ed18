// Builds the checks of one access: conditions, and reports that name the source's line, the kernel and the block.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"
#include "mlir/IR/Builders.h"
#include <string>

namespace kpkg::tile {

/// Inserts before one access of a kernel. Values are tiles of one shape, or scalars.
class CheckBuilder {
public:
  /// Messages name arguments by `names`, or by their numbers.
  CheckBuilder(KernelOp kernel, mlir::Operation *access, llvm::ArrayRef<std::string> names)
      : kernel(kernel), access(access), names(names), builder(access), loc(access->getLoc()) {}

  /// Returns where the indices of the dimensions `dims` lie in the view.
  mlir::Value inside(mlir::Value view, mlir::ValueRange indices, llvm::ArrayRef<int64_t> dims);
  /// Returns the condition, or true where the mask, which may be null, is false.
  mlir::Value where(mlir::Value condition, mlir::Value mask);
  /// Ends the launch with `message` unless `holds` is true in every element, and prints `values` at one where it is
  /// not. `format` has a `{}` for each value.
  void report(mlir::Value holds, const std::string &message, const std::string &format,
              llvm::ArrayRef<mlir::Value> values);

  /// Returns the name of the argument that a view is, or is a part of.
  std::string nameOf(mlir::Value view) const;
  /// Returns "[{}, {}]" for two values.
  static std::string holes(size_t count);

protected:
  KernelOp kernel;
  mlir::Operation *access;
  llvm::ArrayRef<std::string> names;
  mlir::OpBuilder builder;
  mlir::Location loc;

private:
  /// Returns the source's line and the kernel: "x.k:3: in `k`: ".
  std::string place();
  /// Appends the coordinates of the block, or of the tile in a persistent kernel, and returns their format.
  std::string addBlock(llvm::SmallVectorImpl<mlir::Value> &values);
};

} // namespace kpkg::tile
