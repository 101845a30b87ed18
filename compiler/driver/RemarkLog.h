// Collects the remarks of passes while a kernel is laid out.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/pack/Package.h"
#include "mlir/IR/MLIRContext.h"

namespace kpkg::compiler {

/// During its lifetime, remarks of the passes of `context` are collected. There is one log of a context at a time.
class RemarkLog {
public:
  explicit RemarkLog(mlir::MLIRContext &context);
  ~RemarkLog();
  RemarkLog(const RemarkLog &) = delete;
  RemarkLog &operator=(const RemarkLog &) = delete;

  /// Returns the remarks so far, each once, in the order of the passes.
  std::vector<PackedRemark> take() { return std::move(remarks); }

private:
  mlir::MLIRContext &context;
  std::vector<PackedRemark> remarks;
};

} // namespace kpkg::compiler
