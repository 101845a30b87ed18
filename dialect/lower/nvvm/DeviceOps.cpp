// Builds ops of the GPU and NVVM dialects.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/DeviceOps.h"
#include "dialect/lower/nvvm/InlinePtx.h"
#include "dialect/lower/nvvm/ThreadBits.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

static Value asWord(ImplicitLocOpBuilder &builder, Value index) {
  return arith::IndexCastOp::create(builder, builder.getI32Type(), index);
}

static gpu::Dimension dimension(tile::GridAxis axis) {
  switch (axis) {
  case tile::GridAxis::x:
    return gpu::Dimension::x;
  case tile::GridAxis::y:
    return gpu::Dimension::y;
  case tile::GridAxis::z:
    return gpu::Dimension::z;
  }
  llvm_unreachable("an axis of a grid");
}

Value threadId(ImplicitLocOpBuilder &builder) {
  return asWord(builder, gpu::ThreadIdOp::create(builder, gpu::Dimension::x));
}

Value ctaOfCluster(ImplicitLocOpBuilder &builder) {
  return asWord(builder, gpu::ClusterBlockIdOp::create(builder, gpu::Dimension::x));
}

Value ctaId(ImplicitLocOpBuilder &builder, tile::GridAxis axis) {
  return asWord(builder, gpu::BlockIdOp::create(builder, dimension(axis)));
}

Value ctaCount(ImplicitLocOpBuilder &builder, tile::GridAxis axis) {
  return asWord(builder, gpu::GridDimOp::create(builder, dimension(axis)));
}

void ctaBarrier(ImplicitLocOpBuilder &builder) { gpu::BarrierOp::create(builder); }

void clusterBarrier(ImplicitLocOpBuilder &builder, bool isRelaxed) {
  if (isRelaxed)
    NVVM::ClusterArriveRelaxedOp::create(builder, UnitAttr());
  else
    NVVM::ClusterArriveOp::create(builder, UnitAttr());
  NVVM::ClusterWaitOp::create(builder, UnitAttr());
}

Value sharedOfCta(ImplicitLocOpBuilder &builder, Value address, unsigned rank) {
  return NVVM::MapaOp::create(builder, LLVM::LLVMPointerType::get(builder.getContext(), 7), address,
                              constantOf(builder, rank));
}

void waitForCluster(ImplicitLocOpBuilder &builder) {
  NVVM::ClusterArriveRelaxedOp::create(builder, /*aligned=*/UnitAttr());
  NVVM::ClusterWaitOp::create(builder, /*aligned=*/UnitAttr());
}

void letNextKernelStart(ImplicitLocOpBuilder &builder) {
  NVVM::GriddepcontrolOp::create(builder, NVVM::GridDepActionKind::launch_dependents);
}

void waitForKernelBefore(ImplicitLocOpBuilder &builder) {
  NVVM::GriddepcontrolOp::create(builder, NVVM::GridDepActionKind::wait);
}

void warpBarrier(ImplicitLocOpBuilder &builder) { NVVM::SyncWarpOp::create(builder, constantOf(builder, -1)); }

void asyncCopy(ImplicitLocOpBuilder &builder, Value shared, Value global, unsigned bytes, Value mask,
               bool isReadAgain) {
  // Only copies of 16 bytes can bypass the L1 cache, which is useless for data that is read once. Data that is read
  // again is 1.1 to 1.8 times as fast through L1 (convolutions on an H200).
  bool isOnce = bytes == 16 && !isReadAgain;
  if (mask)
    ptx::asyncCopyWhere(builder, shared, global, bytes, mask, isOnce);
  else if (isOnce)
    ptx::asyncCopyOnce(builder, shared, global);
  else
    NVVM::CpAsyncOp::create(builder, shared, global, bytes, NVVM::LoadCacheModifierKind::CA, /*cpSize=*/Value());
}

void commitAsyncCopies(ImplicitLocOpBuilder &builder) { NVVM::CpAsyncCommitGroupOp::create(builder); }

void waitForAsyncCopies(ImplicitLocOpBuilder &builder, unsigned pending) {
  NVVM::CpAsyncWaitGroupOp::create(builder, pending);
}

static SmallVector<Value> parts(ImplicitLocOpBuilder &builder, Value all, unsigned count) {
  SmallVector<Value> values;
  for (unsigned i = 0; i < count; ++i)
    values.push_back(count == 1 ? all : LLVM::ExtractValueOp::create(builder, all, i).getResult());
  return values;
}

SmallVector<Value> loadMatrices(ImplicitLocOpBuilder &builder, Value address, unsigned count, bool isTransposed) {
  Type word = builder.getI32Type();
  Type result =
      count == 1 ? word : LLVM::LLVMStructType::getLiteral(builder.getContext(), SmallVector<Type>(count, word));
  Value loaded = NVVM::LdMatrixOp::create(
      builder, result, address, count, isTransposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(builder.getContext(), 8, 8), NVVM::LdStMatrixEltType::B16);
  return parts(builder, loaded, count);
}

Value roundToTf32(ImplicitLocOpBuilder &builder, Value value) {
  return NVVM::ConvertFloatToTF32Op::create(builder, builder.getI32Type(), value, NVVM::FPRoundingMode::RNA);
}

Value roundToE4M3(ImplicitLocOpBuilder &builder, Value low, Value high) {
  return NVVM::ConvertF32x2ToF8x2Op::create(builder, builder.getI16Type(), high, low, NVVM::FPRoundingMode::RN,
                                            NVVM::SaturationMode::SATFINITE, /*relu=*/false,
                                            Float8E4M3FNType::get(builder.getContext()));
}

/// Builds mma.sync of 8-bit floats as an intrinsic, because the verifier of the NVVM dialect's op rejects these types.
static Value mmaOfFloat8(ImplicitLocOpBuilder &builder, Type element, ValueRange operands, Type result) {
  StringRef name = isa<Float8E4M3FNType>(element) ? "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e4m3.f32"
                                                  : "llvm.nvvm.mma.m16n8k32.row.col.f32.e5m2.e5m2.f32";
  return LLVM::CallIntrinsicOp::create(builder, result, builder.getStringAttr(name), operands).getResult(0);
}

SmallVector<Value> mmaSync(ImplicitLocOpBuilder &builder, Type element, ValueRange left, ValueRange right,
                           ValueRange sum) {
  Type result = LLVM::LLVMStructType::getLiteral(builder.getContext(), SmallVector<Type>(4, sum.front().getType()));
  if (isa<Float8E4M3FNType, Float8E5M2Type>(element)) {
    SmallVector<Value> operands(left);
    llvm::append_range(operands, right);
    llvm::append_range(operands, sum);
    return parts(builder, mmaOfFloat8(builder, element, operands, result), 4);
  }
  unsigned bits = element.getIntOrFloatBitWidth();
  int64_t depth = 256 / bits;
  NVVM::MMATypes type = TypeSwitch<Type, NVVM::MMATypes>(element)
                            .Case([](IntegerType) { return NVVM::MMATypes::s8; })
                            .Case([](Float32Type) { return NVVM::MMATypes::tf32; })
                            .Case([](Float16Type) { return NVVM::MMATypes::f16; })
                            .Case([](BFloat16Type) { return NVVM::MMATypes::bf16; });
  // LLVM takes words of f16 as vectors.
  auto operands = [&](ValueRange words) {
    SmallVector<Value> values(words);
    if (element.isF16())
      for (Value &value : values)
        value = LLVM::BitcastOp::create(builder, VectorType::get(2, element), value);
    return values;
  };
  std::optional<NVVM::MMAIntOverflow> overflow;
  if (element.isInteger())
    overflow = NVVM::MMAIntOverflow::wrapped;
  return parts(builder,
               NVVM::MmaOp::create(builder, result, operands(left), operands(right), sum,
                                   ArrayRef<int64_t>{16, 8, depth}, /*b1Op=*/std::nullopt, overflow,
                                   std::array{type, type}, std::array{NVVM::MMALayout::row, NVVM::MMALayout::col}),
               4);
}

void setLaunchBounds(gpu::GPUFuncOp function, const kgpu::Launch &launch) {
  Builder builder(function.getContext());
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  function.setKnownBlockSizeAttr(builder.getDenseI32ArrayAttr({int32_t(launch.threads), 1, 1}));
  // setmaxnreg moves registers between roles, so ptxas must know with how many a thread starts.
  if (unsigned ctas = launch.consumers ? std::max(launch.minCtas, 1u) : launch.minCtas)
    function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), builder.getI32IntegerAttr(ctas));
  if (launch.cluster > 1)
    function.setKnownClusterSizeAttr(builder.getDenseI32ArrayAttr({int32_t(launch.cluster), 1, 1}));
}

void startWithShareOfRegisters(ImplicitLocOpBuilder &builder) {
  Operation *around = builder.getInsertionBlock()->getParentOp();
  auto function = dyn_cast<gpu::GPUFuncOp>(around);
  if (!function)
    function = around->getParentOfType<gpu::GPUFuncOp>();
  if (!function->hasAttr(NVVM::NVVMDialect::getMinctasmAttrName()))
    function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), builder.getI32IntegerAttr(1));
}

void setByValue(gpu::GPUFuncOp function, unsigned number, unsigned bytes, unsigned alignment) {
  Builder builder(function.getContext());
  Type type = LLVM::LLVMArrayType::get(builder.getI8Type(), bytes);
  function.setArgAttr(number, LLVM::LLVMDialect::getByValAttrName(), TypeAttr::get(type));
  function.setArgAttr(number, LLVM::LLVMDialect::getAlignAttrName(), builder.getI64IntegerAttr(alignment));
}

static constexpr unsigned globalSpace = 1, sharedSpace = 3;

/// Returns the address of a variable, and declares it in the module around `builder` if needed.
static Value addressOfVariable(ImplicitLocOpBuilder &builder, StringRef name, Type type, LLVM::Linkage linkage,
                               unsigned alignment, unsigned space = sharedSpace, Attribute value = {}) {
  Operation *module = builder.getInsertionBlock()->getParentOp()->getParentWithTrait<OpTrait::SymbolTable>();
  if (!SymbolTable::lookupSymbolIn(module, name)) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&module->getRegion(0).front());
    LLVM::GlobalOp::create(builder, type, /*isConstant=*/false, linkage, name, value, alignment, space);
  }
  return LLVM::AddressOfOp::create(builder, LLVM::LLVMPointerType::get(builder.getContext(), space), name);
}

Value addressOfCounter(ImplicitLocOpBuilder &builder, Value number) {
  Type word = builder.getI32Type();
  auto zeros =
      DenseElementsAttr::get(RankedTensorType::get({kgpu::kCounters}, word), builder.getI32IntegerAttr(0).getValue());
  Value all = addressOfVariable(builder, "kpkg_counters", LLVM::LLVMArrayType::get(word, kgpu::kCounters),
                                LLVM::Linkage::Internal, /*alignment=*/128, globalSpace, zeros);
  return LLVM::GEPOp::create(builder, all.getType(), word, all, ValueRange{number});
}

Value addressOfSharedMemory(ImplicitLocOpBuilder &builder) {
  // External, so that the launch decides its size.
  return addressOfVariable(builder, "kpkg_shared", LLVM::LLVMArrayType::get(builder.getI8Type(), 0),
                           LLVM::Linkage::External, 1024);
}

bool isShared(Value pointer) { return cast<LLVM::LLVMPointerType>(pointer.getType()).getAddressSpace() == sharedSpace; }

Value addressOfPrintPlace(ImplicitLocOpBuilder &builder) {
  return addressOfVariable(builder, "kpkg_print_place", builder.getI64Type(), LLVM::Linkage::Internal, 8);
}

} // namespace kpkg::lower::nvvm
