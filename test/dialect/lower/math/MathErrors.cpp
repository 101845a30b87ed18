// Builds loops over arrays around one elementary function.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/dialect/lower/math/MathErrors.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

void kpkg::test::addFunction(ModuleOp module, StringRef name, Build build, bool wide, int64_t lanes) {
  MLIRContext *context = module.getContext();
  Location loc = UnknownLoc::get(context);
  ImplicitLocOpBuilder b(loc, context);
  b.setInsertionPointToEnd(module.getBody());
  Type element = wide ? Type(b.getF64Type()) : b.getF32Type();
  Type type = lanes == 1 ? element : VectorType::get(lanes, element);
  Type pointer = LLVM::LLVMPointerType::get(context);
  auto functionType =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), {pointer, pointer, pointer, b.getI64Type()});
  auto function = LLVM::LLVMFuncOp::create(b, name, functionType);
  Block *entry = function.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  Value zero = arith::ConstantIndexOp::create(b, 0), step = arith::ConstantIndexOp::create(b, lanes);
  Value end = arith::IndexCastOp::create(b, b.getIndexType(), entry->getArgument(3));
  auto loop = scf::ForOp::create(b, zero, end, step);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value i = arith::IndexCastOp::create(b, b.getI64Type(), loop.getInductionVar());
    auto at = [&](int argument) -> Value {
      return LLVM::GEPOp::create(b, pointer, element, entry->getArgument(argument), ArrayRef<LLVM::GEPArg>{i});
    };
    Value x = LLVM::LoadOp::create(b, type, at(0), wide ? 8 : 4);
    Value result;
    if (build) {
      result = build(b, loc, x);
    } else {
      Value y = LLVM::LoadOp::create(b, type, at(1), wide ? 8 : 4);
      result = math::PowFOp::create(b, x, y);
    }
    LLVM::StoreOp::create(b, result, at(2), wide ? 8 : 4);
  }
  LLVM::ReturnOp::create(b, ValueRange());
}
