// Makes a module with one function around buildDot, for tests and measurements.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/lower/cpu/Dot.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "test/dialect/lower/cpu/HostJit.h"

namespace kpkg::test {

/// An operand in the form that the generated code reads, with strides and bounds in elements.
struct DotArgument {
  const void *base;
  int64_t stride[2], begin[2], end[2];
};

using DotFunction = void(const DotArgument *a, const DotArgument *b, void *acc, void *scratch);

/// Makes `void dot(a, b, acc, scratch)` in the LLVM dialect. acc is contiguous.
inline mlir::OwningOpRef<mlir::ModuleOp> makeDotModule(mlir::MLIRContext *context, const lower::cpu::DotPlan &plan,
                                                       mlir::Type element) {
  using namespace mlir;
  Location loc = UnknownLoc::get(context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  ImplicitLocOpBuilder b(loc, context);
  b.setInsertionPointToEnd(module->getBody());
  Type pointer = LLVM::LLVMPointerType::get(context);
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), SmallVector<Type>(4, pointer));
  auto function = LLVM::LLVMFuncOp::create(b, "dot", type);
  Block *entry = function.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  auto word = [&](int argument, int position) -> Value {
    Value at =
        LLVM::GEPOp::create(b, pointer, b.getI64Type(), entry->getArgument(argument), ArrayRef<LLVM::GEPArg>{position});
    return arith::IndexCastOp::create(b, b.getIndexType(), Value(LLVM::LoadOp::create(b, b.getI64Type(), at)));
  };
  auto operand = [&](int argument) {
    lower::cpu::DotOperand result;
    result.base = LLVM::LoadOp::create(b, pointer, entry->getArgument(argument));
    result.stride = {word(argument, 1), word(argument, 2)};
    result.begin = {word(argument, 3), word(argument, 4)};
    result.end = {word(argument, 5), word(argument, 6)};
    result.elementType = element;
    return result;
  };
  lower::cpu::DotOperand first = operand(0), second = operand(1);
  lower::cpu::buildDot(b, loc, plan, first, second, entry->getArgument(2), plan.shape.n, entry->getArgument(3));
  LLVM::ReturnOp::create(b, ValueRange());
  lowerToLLVMDialect(*module);
  return module;
}

} // namespace kpkg::test
