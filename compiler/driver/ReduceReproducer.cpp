// Reduces reproducers: erases ops as long as the failure stays.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/CompileOne.h"
#include "compiler/driver/Reproduce.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace kpkg::compiler {

namespace {

/// A module whose ops are numbered in the order of its text, so that users and nested ops have higher numbers.
struct Numbered {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  SmallVector<mlir::Operation *> ops;
};

Numbered numbered(mlir::ModuleOp module) {
  Numbered result;
  result.module = module.clone();
  result.module->walk<mlir::WalkOrder::PreOrder>([&](mlir::Operation *op) {
    if (op != result.module->getOperation())
      result.ops.push_back(op);
  });
  return result;
}

/// Replaces the results of an op by operands of their types. Returns false if it has none for a result that is used.
bool replaceByOperands(mlir::Operation *op) {
  for (mlir::Value result : op->getResults()) {
    if (result.use_empty())
      continue;
    auto same = find_if(op->getOperands(), [&](mlir::Value operand) { return operand.getType() == result.getType(); });
    if (same == op->getOperands().end())
      return false;
    result.replaceAllUsesWith(*same);
  }
  return true;
}

std::string printed(mlir::ModuleOp module) {
  std::string text;
  raw_string_ostream stream(text);
  module->print(stream, mlir::OpPrintingFlags().enableDebugInfo());
  return text + "\n";
}

/// Erases the ops [first, first + count) from a copy, from the last one, as far as nothing uses their results. Returns
/// nothing if none can be erased.
mlir::OwningOpRef<mlir::ModuleOp> without(mlir::ModuleOp module, size_t first, size_t count) {
  Numbered copy = numbered(module);
  bool isChanged = false;
  for (size_t i = std::min(first + count, copy.ops.size()); i-- > first;) {
    mlir::Operation *op = copy.ops[i];
    bool isHeld = op->hasTrait<mlir::OpTrait::IsTerminator>() || !replaceByOperands(op);
    if (isHeld)
      continue;
    op->erase();
    isChanged = true;
  }
  if (!isChanged || failed(mlir::verify(*copy.module)))
    return nullptr;
  return std::move(copy.module);
}

} // namespace

Reproducer reduced(const Reproducer &reproducer, function_ref<bool(const Reproducer &)> fails,
                   function_ref<bool()> isLate) {
  if (reproducer.get("stage") == "ptxas")
    return reproducer;
  auto context = makeContext();
  IrMessages messages(*context); // of attempts that do not verify
  auto module = mlir::parseSourceString<mlir::ModuleOp>(reproducer.input, context.get());
  if (!module)
    return reproducer;
  Reproducer smallest = reproducer;
  // Halves first: chunks of many ops, from the end, then of one.
  for (size_t count = numbered(*module).ops.size(); count > 0 && !isLate(); count /= 2)
    for (size_t first = numbered(*module).ops.size(); first > 0 && !isLate();) {
      first = first > count ? first - count : 0;
      auto attempt = without(*module, first, count);
      if (!attempt)
        continue;
      Reproducer candidate = smallest;
      candidate.input = printed(*attempt);
      if (!fails(candidate))
        continue;
      smallest = std::move(candidate);
      module = std::move(attempt);
      first = std::min(first, numbered(*module).ops.size());
    }
  return smallest;
}

} // namespace kpkg::compiler
