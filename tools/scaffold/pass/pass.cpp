// Drops additions of zero.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before:
//   %s = arith.addi %i, %c0 : index
//   use(%s)
// After:
//   use(%i)
//
// On entry: any verified kernel. On exit: no `arith.addi` has the constant 0 on its right.
#include "PASSES_FOLDER/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace NAMESPACE {
#define GEN_PASS_DEF_UPPER
#include "PASSES_FOLDER/Passes.h.inc"

using namespace mlir;

namespace {
struct CLASS final : impl::CLASSBase<CLASS> {
  void runOnOperation() override {
    getOperation()->walk([&](arith::AddIOp add) {
      if (!matchPattern(add.getRhs(), m_Zero()))
        return;
      add.replaceAllUsesWith(add.getLhs());
      add.erase();
      ++dropped;
    });
  }
};
} // namespace
} // namespace NAMESPACE
