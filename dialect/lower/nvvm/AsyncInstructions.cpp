// Builds asynchronous instructions from ops of the NVVM dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/AsyncInstructions.h"
#include "dialect/lower/nvvm/ThreadBits.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

/// The address space of the shared memory of all CTAs of a cluster.
static constexpr unsigned clusterSpace = 7;

void barrierInit(ImplicitLocOpBuilder &builder, Value address, unsigned arrivals) {
  NVVM::MBarrierInitOp::create(builder, address, constantOf(builder, arrivals), /*predicate=*/Value());
}

void fenceBarrierInit(ImplicitLocOpBuilder &builder) { NVVM::FenceMbarrierInitOp::create(builder); }

void barrierExpect(ImplicitLocOpBuilder &builder, Value address, int64_t bytes) {
  NVVM::MBarrierArriveExpectTxOp::create(builder, /*res=*/Type(), address, constantOf(builder, bytes),
                                         NVVM::MemScopeKind::CTA, /*relaxed=*/false, /*predicate=*/Value());
}

RingUse ringUse(ImplicitLocOpBuilder &builder, Value barriers, int64_t slots, Value use) {
  Value count = constantOf(builder, slots);
  Value slot = arith::RemUIOp::create(builder, use, count), lap = arith::DivUIOp::create(builder, use, count);
  RingUse result;
  result.slot = slot;
  result.full = bytesBehind(builder, barriers,
                            arith::MulIOp::create(builder, slot, constantOf(builder, barrierBytes)).getResult());
  result.empty = bytesBehind(builder, result.full, slots * barrierBytes);
  result.parity = arith::AndIOp::create(builder, lap, constantOf(builder, 1));
  return result;
}

void sendNumber(ImplicitLocOpBuilder &builder, Value address, Value number, Value barrier) {
  LLVM::StoreOp::create(builder, number, address);
  NVVM::MBarrierArriveOp::create(builder, /*res=*/Type(), barrier, /*count=*/Value(), NVVM::MemScopeKind::CTA,
                                 /*relaxed=*/false);
}

Value countUpTo(ImplicitLocOpBuilder &builder, Value counter, Value last) {
  return LLVM::AtomicRMWOp::create(builder, LLVM::AtomicBinOp::uinc_wrap, counter, last,
                                   LLVM::AtomicOrdering::monotonic, /*syncscope=*/"device");
}

Value remoteAddress(ImplicitLocOpBuilder &builder, Value address, Value rank) {
  return NVVM::MapaOp::create(builder, LLVM::LLVMPointerType::get(builder.getContext(), clusterSpace), address, rank);
}

void tensorCopyOut(ImplicitLocOpBuilder &builder, Value source, Value map, ValueRange coordinates) {
  NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(builder, map, source, coordinates, /*l2CacheHint=*/Value(),
                                                     NVVM::TMAStoreMode::TILE, /*predicate=*/Value());
  NVVM::CpAsyncBulkCommitGroupOp::create(builder);
}

void tensorAddOut(ImplicitLocOpBuilder &builder, Value source, Value map, ValueRange coordinates) {
  NVVM::CpAsyncBulkTensorReduceOp::create(builder, map, source, NVVM::TMAReduxKind::ADD, NVVM::TMAStoreMode::TILE,
                                          coordinates, /*l2CacheHint=*/Value());
  NVVM::CpAsyncBulkCommitGroupOp::create(builder);
}

void tensorCopy(ImplicitLocOpBuilder &builder, Value destination, Value map, ValueRange coordinates, ValueRange moves,
                Value barrier, unsigned ctas) {
  // The CTA's shared memory has the same addresses in the cluster window. A cast of address spaces would emit code to
  // compute them.
  Value number = LLVM::PtrToIntOp::create(builder, builder.getI32Type(), destination);
  Value inCluster =
      LLVM::IntToPtrOp::create(builder, LLVM::LLVMPointerType::get(builder.getContext(), clusterSpace), number);
  Value everywhere =
      ctas > 1 ? arith::ConstantIntOp::create(builder, (int64_t(1) << ctas) - 1, 16).getResult() : Value();
  NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
      builder, inCluster, map, coordinates, barrier, moves, everywhere, /*l2CacheHint=*/Value(),
      moves.empty() ? NVVM::TMALoadMode::TILE : NVVM::TMALoadMode::IM2COL, /*isCTAOnly=*/false, /*group=*/nullptr,
      /*predicate=*/Value());
}

Value uniform(ImplicitLocOpBuilder &builder, Value value) {
  return gpu::ShuffleOp::create(builder, value, constantOf(builder, 0), constantOf(builder, 32), gpu::ShuffleMode::IDX)
      .getShuffleResult();
}

Value electLane(ImplicitLocOpBuilder &builder) {
  return NVVM::ElectSyncOp::create(builder, builder.getI1Type(), Value());
}

Value anyLane(ImplicitLocOpBuilder &builder, Value isTrue) {
  return NVVM::VoteSyncOp::create(builder, builder.getI1Type(), constantOf(builder, -1), isTrue,
                                  NVVM::VoteSyncKind::any);
}

void limitRegisters(ImplicitLocOpBuilder &builder, unsigned count, bool raises) {
  NVVM::SetMaxRegisterOp::create(builder, count,
                                 raises ? NVVM::SetMaxRegisterAction::increase : NVVM::SetMaxRegisterAction::decrease);
}

void namedBarrier(ImplicitLocOpBuilder &builder, Value id, unsigned threads) {
  NVVM::BarrierOp::create(builder, TypeRange(), id, constantOf(builder, threads), NVVM::BarrierReductionAttr(),
                          Value());
}

void arriveAtBarrier(ImplicitLocOpBuilder &builder, Value id, unsigned threads) {
  NVVM::BarrierArriveOp::create(builder, id, constantOf(builder, threads));
}

Value bytesBehind(ImplicitLocOpBuilder &builder, Value address, Value bytes) {
  return LLVM::GEPOp::create(builder, address.getType(), builder.getI8Type(), address, ValueRange{bytes});
}

Value bytesBehind(ImplicitLocOpBuilder &builder, Value address, int64_t bytes) {
  return bytes == 0 ? address : bytesBehind(builder, address, constantOf(builder, bytes));
}

void storeMatrices(ImplicitLocOpBuilder &builder, Value address, ValueRange words, bool turns) {
  NVVM::StMatrixOp::create(builder, address, words, turns ? NVVM::MMALayout::col : NVVM::MMALayout::row,
                           NVVM::LdStMatrixShapeAttr::get(builder.getContext(), 8, 8), NVVM::LdStMatrixEltType::B16);
}

void storePair(ImplicitLocOpBuilder &builder, Value address, ValueRange pair) {
  Value both = LLVM::PoisonOp::create(builder, VectorType::get(2, pair.front().getType()));
  for (auto [index, value] : llvm::enumerate(pair))
    both = LLVM::InsertElementOp::create(builder, both, value, constantOf(builder, index));
  LLVM::StoreOp::create(builder, both, address, /*alignment=*/8);
}

void fenceForCopies(ImplicitLocOpBuilder &builder) {
  NVVM::FenceProxyOp::create(builder, NVVM::ProxyKind::async_shared,
                             NVVM::SharedSpaceAttr::get(builder.getContext(), NVVM::SharedSpace::shared_cta));
}

void waitForBulkReads(ImplicitLocOpBuilder &builder, int64_t pending) {
  NVVM::CpAsyncBulkWaitGroupOp::create(builder, pending, /*read=*/builder.getUnitAttr());
}

void waitForBulkCopies(ImplicitLocOpBuilder &builder) {
  NVVM::CpAsyncBulkWaitGroupOp::create(builder, 0, /*read=*/UnitAttr());
}

Value descriptorAt(ImplicitLocOpBuilder &builder, const OperandDescriptor &operand, int64_t distance) {
  // PTX ISA, "Matrix descriptor": address, leading and stride offset in units of 16 bytes, with the swizzle mode in the
  // highest bits. Eight rows of a panel are 1024 bytes. The leading offset matters only where panels are adjacent along
  // rows or columns of the product. An address has 18 bits, so distances change the lower half only.
  int64_t strideOffset = (operand.isNarrow ? 512 : 1024) >> 4, upper = strideOffset | int64_t(operand.isNarrow ? 2 : 1)
                                                                                          << 30;
  int64_t leadingOffset = operand.isDepthLast ? 1 : operand.panelBytes >> 4;
  Value start = arith::AndIOp::create(builder, arith::ShRUIOp::create(builder, operand.address, constantOf(builder, 4)),
                                      constantOf(builder, 0x3FFF));
  Value lower = arith::AddIOp::create(builder, start, constantOf(builder, leadingOffset << 16 | distance >> 4));
  Type i64 = builder.getI64Type();
  return arith::OrIOp::create(builder, arith::ExtUIOp::create(builder, i64, lower),
                              arith::ConstantIntOp::create(builder, upper << 32, 64));
}

void wgmmaFence(ImplicitLocOpBuilder &builder) { NVVM::WgmmaFenceAlignedOp::create(builder); }

void wgmmaCommit(ImplicitLocOpBuilder &builder) { NVVM::WgmmaGroupSyncAlignedOp::create(builder); }

/// Returns the type of the operands, and the number of elements in 32 bytes of depth.
static std::pair<NVVM::WGMMATypes, int> wgmmaType(Type element) {
  using Types = std::pair<NVVM::WGMMATypes, int>;
  return TypeSwitch<Type, Types>(element)
      .Case([](BFloat16Type) { return Types(NVVM::WGMMATypes::bf16, 16); })
      .Case([](Float16Type) { return Types(NVVM::WGMMATypes::f16, 16); })
      .Case([](Float32Type) { return Types(NVVM::WGMMATypes::tf32, 8); })
      .Case([](Float8E4M3FNType) { return Types(NVVM::WGMMATypes::e4m3, 32); })
      .Case([](Float8E5M2Type) { return Types(NVVM::WGMMATypes::e5m2, 32); })
      .Case([](IntegerType) { return Types(NVVM::WGMMATypes::s8, 32); });
}

Value wgmma(ImplicitLocOpBuilder &builder, Value sums, Value lhs, bool lhsIsTransposed, Value rhs, bool rhsIsTransposed,
            Type element) {
  auto [type, depth] = wgmmaType(element);
  int columns = 2 * cast<LLVM::LLVMStructType>(sums.getType()).getBody().size();
  // `col` means transposed for the left operand, and not transposed for the right one.
  return NVVM::WgmmaMmaAsyncOp::create(
      builder, sums.getType(), sums, lhs, rhs, NVVM::MMAShapeAttr::get(builder.getContext(), 64, columns, depth), type,
      type, element.isInteger() ? NVVM::WGMMATypes::s32 : NVVM::WGMMATypes::f32, NVVM::WGMMAScaleOut::one,
      NVVM::WGMMAScaleIn::one, NVVM::WGMMAScaleIn::one, lhsIsTransposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      rhsIsTransposed ? NVVM::MMALayout::row : NVVM::MMALayout::col, NVVM::MMAIntOverflowAttr());
}

} // namespace kpkg::lower::nvvm
