// Fuzz target: reads any text as IR of the dialects `tile`, `plan` and `kgpu`, verifies it, and prints what is
// accepted.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "dialect/plan/ir/Plan.h"
#include "dialect/tile/ir/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "test/fuzz/MutateSource.h"
#include <cstdlib>
#include <memory>

using namespace mlir;

/// A context keeps every type and attribute that it has seen, and takes longer to make than to use.
static MLIRContext &freshContext() {
  static std::unique_ptr<MLIRContext> context;
  static unsigned uses = 0;
  if (!context || ++uses % 4096 == 0) {
    DialectRegistry registry;
    registry.insert<kpkg::plan_ir::PlanDialect, kpkg::tile::TileDialect, kpkg::kgpu::KgpuDialect, arith::ArithDialect,
                    cf::ControlFlowDialect, math::MathDialect, scf::SCFDialect, ub::UBDialect, vector::VectorDialect>();
    context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
    context->loadAllAvailableDialects();
    context->getDiagEngine().registerHandler([](Diagnostic &) { return success(); });
  }
  return *context;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MLIRContext &context = freshContext();
  const std::string text(reinterpret_cast<const char *>(data), size); // the lexer reads the zero behind it
  auto module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return 0;
  std::string printed;
  llvm::raw_string_ostream stream(printed);
  module->print(stream);
  if (!parseSourceString<ModuleOp>(printed, &context))
    std::abort(); // what is printed is read again
  return 0;
}

/// Words that a sample of IR may lack.
static constexpr std::string_view words =
    "!tile.tile<4x8xf32> tensor<2xi32> vector<4xf32> memref<?x?xf32> index f16 bf16 i1 i64 none dense<0> #tile #kgpu "
    "arith.addf arith.constant arith.select math.exp scf.for scf.if scf.yield cf.br vector.broadcast ub.poison "
    "builtin.module builtin.unrealized_conversion_cast affine_map<(d0) -> (d0)> loc(\"a\":1:2) array<i64: 1> unit "
    "{a = 1 : i64} @symbol ^bb0(%x: i32): -> : = , ( ) [ ] < > ? \"a\" 0xFF -1 1.0e+00 true false";

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  return kpkg::fuzz::mutateInput(data, size, maxSize, seed, words);
}
