// Emits kernels at thread level: loops over threads, or a coroutine for each thread where threads wait for each other.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before:
//   tile.kernel @f(%x: !tile.view<1xf32>) attributes {threads = array<i64: 64, 1, 1>} {... tile.barrier block ...}
// After:
//   llvm.func internal @f$thread(%frame: !llvm.ptr, %context: !llvm.ptr, %thread: i64) -> !llvm.ptr {
//     ...; llvm.call @kpkg.suspend(); ... }
//   llvm.func @f(%call: !llvm.ptr, %begin: i64, %end: i64) -> i32 {
//     scf.for %block = ... { llvm.call @kpkg.run_threads(@f$thread, ...) } }
//
// A task's scratch memory begins with the shared memory of each block of a cluster, and with what threads exchange. The
// frames of the coroutines follow. Only LLVM knows their size, which the global `f$frame_bytes` has.
#include "dialect/lower/cpu/Coroutines.h"
#include "dialect/lower/cpu/KernelEmitter.h"
#include "dialect/lower/cpu/LowerCpu.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kpkg::lower::cpu {

namespace {
/// Words of the context of a cluster that runs.
enum ContextWord : int32_t { CallWord, ClusterWord, YWord, ZWord, StatusWord, DummyWord, ContextWords };

constexpr int64_t kLanes = 32;
constexpr int32_t kScopeShift = 24;

/// Returns whether threads wait for each other at an op.
bool waits(Operation *op) { return isa<tile::BarrierOp, tile::ShuffleOp, tile::VoteOp, tile::ThreadMmaOp>(op); }
} // namespace

Value KernelEmitter::scratchAt(int64_t offset) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  return LLVM::GEPOp::create(builder, loc, pointer, builder.getI8Type(), scratch,
                             ArrayRef<LLVM::GEPArg>{int32_t(offset)}, LLVM::GEPNoWrapFlags::inbounds);
}

Value KernelEmitter::wordAt(Value base, Value index, int64_t bytes) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  return LLVM::GEPOp::create(builder, loc, pointer, builder.getIntegerType(unsigned(8 * bytes)), base,
                             ValueRange{builder.createOrFold<arith::IndexCastOp>(loc, builder.getI64Type(), index)});
}

/// Reserves scratch memory, and returns its offset.
static int64_t reserve(int64_t &used, int64_t bytes) {
  int64_t offset = llvm::alignTo(used, 64);
  used = offset + bytes;
  return offset;
}

void KernelEmitter::layOutThreads() {
  ThreadMemory &memory = threads;
  memory.count = tile::threadCount(kernel);
  memory.cluster = tile::clusterSize(kernel);
  int64_t all = memory.count * memory.cluster, words = 0;
  kernel.walk([&](Operation *op) {
    if (auto shared = dyn_cast<tile::ScratchOp>(op)) {
      int64_t bytes = llvm::product_of(shared.getShape()) * memoryBytes(shared.getType().getElementType());
      memory.sharedOffsets[op] = reserve(memory.sharedBytes, bytes);
    }
    memory.waits |= waits(op);
    if (auto product = dyn_cast<tile::ThreadMmaOp>(op))
      words = std::max<int64_t>(words, product.getA().size() + product.getB().size());
    if (isa<tile::ShuffleOp, tile::VoteOp>(op))
      words = std::max<int64_t>(words, 1);
  });
  memory.sharedBytes = llvm::alignTo(memory.sharedBytes, 64);
  memory.slotWords = words;
  memory.shared = reserve(scratchBytes, memory.sharedBytes * memory.cluster);
  if (memory.waits) {
    memory.context = reserve(scratchBytes, 8 * ContextWords);
    memory.sites = reserve(scratchBytes, 4 * all);
    memory.phases = reserve(scratchBytes, 8 * llvm::divideCeil(all, kLanes));
    memory.slots = reserve(scratchBytes, 2 * 8 * all * words);
  }
  scratchBytes = llvm::alignTo(scratchBytes, 64);
  scratchPeak = std::max(scratchPeak, scratchBytes);
}

/// Binds the ids of a thread, whose number counts all threads of the cluster.
void KernelEmitter::bindThread(Value number) {
  Value count = indexConstant(threads.count);
  threads.rank = threads.cluster == 1 ? indexConstant(0) : make<arith::DivUIOp>(number, count);
  threads.number = number;
  threads.id = threads.cluster == 1 ? number : make<arith::RemUIOp>(number, count);
  if (threads.cluster == 1)
    return;
  Value size = indexConstant(threads.cluster);
  blockIds[0] = add(mul(blockIds[0], size), threads.rank);
  gridDims[0] = mul(gridDims[0], size);
}

LogicalResult KernelEmitter::runThreads() {
  layOutThreads();
  if (threads.waits && mlir::failed(emitCoroutine()))
    return failure();
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Type i64 = builder.getI64Type();
  loc = kernel.getLoc();
  LLVM::LLVMFuncOp function = makeFunction(kernel.getSymName(), builder.getI32Type(), {pointer, i64, i64});
  bindCall(function.getArgument(0));
  makeStatus();
  Value begin = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), function.getArgument(1));
  Value end = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), function.getArgument(2));
  openBlocks(begin, end, /*areTiles=*/false);
  if (threads.waits) {
    emitRunOfCluster(function.getArgument(0));
  } else {
    auto loop = scf::ForOp::create(builder, loc, indexConstant(0), indexConstant(threads.count * threads.cluster),
                                   indexConstant(1));
    builder.setInsertionPointToStart(loop.getBody());
    bindThread(loop.getInductionVar());
    if (mlir::failed(emitBlock(kernel.getBody().front())))
      return failure();
  }
  finishEntry(function);
  return success();
}

/// Emits the code of one thread as a function that LLVM makes a coroutine of. It returns its handle when it waits.
LogicalResult KernelEmitter::emitCoroutine() {
  MLIRContext *context = builder.getContext();
  auto pointer = LLVM::LLVMPointerType::get(context);
  Type i64 = builder.getI64Type(), index = builder.getIndexType();
  std::string name = (kernel.getSymName() + coroutineSuffix).str();
  builder.setInsertionPoint(kernel);
  std::string frameBytes = (kernel.getSymName() + frameBytesSuffix).str();
  LLVM::GlobalOp::create(builder, loc, i64, /*isConstant=*/true, LLVM::Linkage::External, frameBytes, Attribute());
  addThreadDriver(kernel->getParentOfType<ModuleOp>());
  declareOnce(suspendName, LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), {}));
  declareOnce(frameSizeName, LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), {pointer, i64}));
  LLVM::LLVMFuncOp function = makeFunction(name, pointer, {pointer, pointer, i64});
  function.setLinkage(LLVM::Linkage::Internal);
  function.setPassthroughAttr(builder.getStrArrayAttr({"presplitcoroutine", "noinline"}));
  function->setAttr(attributes::coroutine, builder.getUnitAttr());
  Value null = LLVM::ZeroOp::create(builder, loc, pointer);
  Value zero = LLVM::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
  Value id = LLVM::CoroIdOp::create(builder, loc, LLVM::LLVMTokenType::get(context), zero, null, null, null);
  Value size = LLVM::CoroSizeOp::create(builder, loc, i64);
  Value own = LLVM::AddressOfOp::create(builder, loc, pointer, frameBytes);
  LLVM::CallOp::create(builder, loc, TypeRange(), frameSizeName, ValueRange{own, size});
  Value handle = LLVM::CoroBeginOp::create(builder, loc, pointer, id, function.getArgument(0));
  auto word = [&](ContextWord number, Type type) -> Value {
    Value at = LLVM::GEPOp::create(builder, loc, pointer, i64, function.getArgument(1),
                                   ArrayRef<LLVM::GEPArg>{int32_t(number)}, LLVM::GEPNoWrapFlags::inbounds);
    Value loaded = LLVM::LoadOp::create(builder, loc, type.isIndex() ? i64 : type, at, 8);
    return type.isIndex() ? arith::IndexCastOp::create(builder, loc, index, loaded).getResult() : loaded;
  };
  bindCall(word(CallWord, pointer));
  blockIds = {word(ClusterWord, index), word(YWord, index), word(ZWord, index)};
  status = word(StatusWord, pointer);
  dummy = word(DummyWord, pointer);
  bindThread(arith::IndexCastOp::create(builder, loc, index, function.getArgument(2)));
  threads.site = wordAt(scratchAt(threads.sites), threads.number, 4);
  if (mlir::failed(emitBlock(kernel.getBody().front())))
    return failure();
  builder.setInsertionPointToEnd(entryBlock);
  loc = kernel.getLoc();
  LLVM::StoreOp::create(builder, loc, LLVM::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0)),
                        threads.site, 4);
  LLVM::ReturnOp::create(builder, loc, handle);
  return success();
}

/// Emits the run of all threads of the cluster `blockIds`, and records the barrier where threads are left behind.
void KernelEmitter::emitRunOfCluster(Value call) {
  MLIRContext *context = builder.getContext();
  auto pointer = LLVM::LLVMPointerType::get(context);
  Type i64 = builder.getI64Type(), i32 = builder.getI32Type();
  Value record = scratchAt(threads.context);
  auto put = [&](ContextWord number, Value value) {
    if (value.getType().isIndex())
      value = arith::IndexCastOp::create(builder, loc, i64, value);
    Value at = LLVM::GEPOp::create(builder, loc, pointer, i64, record, ArrayRef<LLVM::GEPArg>{int32_t(number)},
                                   LLVM::GEPNoWrapFlags::inbounds);
    LLVM::StoreOp::create(builder, loc, value, at, 8);
  };
  put(CallWord, call);
  put(ClusterWord, blockIds[0]);
  put(YWord, blockIds[1]);
  put(ZWord, blockIds[2]);
  put(StatusWord, status);
  put(DummyWord, dummy);
  auto number = [&](int64_t value) -> Value {
    return LLVM::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
  };
  std::string symbol = kernel.getSymName().str();
  Value body = LLVM::AddressOfOp::create(builder, loc, pointer, symbol + coroutineSuffix.str());
  Value bytesAt = LLVM::AddressOfOp::create(builder, loc, pointer, symbol + frameBytesSuffix.str());
  Value bytes = LLVM::LoadOp::create(builder, loc, i64, bytesAt, 8);
  Value frames = scratchAt(scratchPeak);
  Value left =
      LLVM::CallOp::create(builder, loc, TypeRange{i32}, runThreadsName,
                           ValueRange{body, record, frames, bytes, number(threads.count * threads.cluster),
                                      number(threads.count), scratchAt(threads.sites), scratchAt(threads.phases)})
          .getResult();
  Value old = LLVM::LoadOp::create(builder, loc, i32, status, 4);
  Value none = LLVM::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
  Value fresh = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, old, none);
  LLVM::StoreOp::create(builder, loc, LLVM::SelectOp::create(builder, loc, fresh, left, old), status, 4);
}

void KernelEmitter::declareOnce(StringRef name, LLVM::LLVMFunctionType type) {
  auto module = kernel->getParentOfType<ModuleOp>();
  if (!module.lookupSymbol(name))
    LLVM::LLVMFuncOp::create(builder, kernel.getLoc(), name, type);
}

/// Waits until the threads of the scope have come to this op.
void KernelEmitter::suspend(Operation *op, tile::ThreadScope scope) {
  auto line = op->getLoc()->findInstanceOf<FileLineColLoc>();
  std::string place = line ? line.getFilename().str() + ":" + std::to_string(line.getLine()) + ": " : "";
  StringRef what = scope == tile::ThreadScope::Warp ? "warp" : scope == tile::ThreadScope::Block ? "block" : "cluster";
  asserts.push_back(builder.getStringAttr(place + "in `" + kernel.getKernel().value_or(kernel.getSymName()).str() +
                                          "`: some threads of the " + what.str() +
                                          " wait here, and others have ended or wait elsewhere"));
  int32_t site = int32_t(scope) << kScopeShift | int32_t(asserts.size());
  LLVM::StoreOp::create(builder, loc, LLVM::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(site)),
                        threads.site, 4);
  LLVM::CallOp::create(builder, loc, TypeRange(), suspendName, ValueRange());
}

} // namespace kpkg::lower::cpu
