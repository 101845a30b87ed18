// Emits one thread's code of a laid-out kernel: a tile becomes the registers that the thread holds.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "dialect/lower/nvvm/AlongAxis.h"
#include "dialect/lower/nvvm/ThreadPlace.h"
#include "dialect/tile/ir/ThreadOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

namespace kpkg::lower::nvvm {

/// A view of an argument, of shared memory, or a part of one.
struct View {
  tile::ViewType type;
  mlir::Value pointer;                   ///< !llvm.ptr<1>, or !llvm.ptr<3> in shared memory
  llvm::SmallVector<mlir::Value> shape;  ///< index.
  llvm::SmallVector<mlir::Value> stride; ///< index, in elements.
  /// False where an index that selected this part was outside its dimension. Null when all indices are known to be
  /// inside.
  mlir::Value valid;
};

/// Lowers one `tile.kernel` to a `gpu.func` with scalar arith, math, scf, gpu, nvvm and llvm ops in its body. The
/// registers of a tile are in the order of its layout. An op that cannot be emitted is an error at its location.
class Emitter {
public:
  /// Places the function at the insertion point of `builder`.
  Emitter(tile::KernelOp kernel, mlir::OpBuilder &builder);
  mlir::LogicalResult run();

private:
  using Value = mlir::Value;
  using TileRegisters = llvm::SmallVector<Value>;

  // Entry.cpp
  mlir::LogicalResult makeFunction();
  /// Returns this thread's kernel block along an axis.
  Value blockId(tile::GridAxis axis);
  /// Returns the number of blocks along an axis.
  Value gridDim(tile::GridAxis axis);
  /// Returns an !llvm.ptr to the kernel's tensor map of this number in `kgpu.tensor_maps`.
  Value tensorMap(unsigned number) const { return tensorMaps[number]; }

  // Emitter.cpp: dispatch
  mlir::LogicalResult emitBlock(mlir::Block &block);
  mlir::LogicalResult emit(mlir::Operation *op);
  mlir::LogicalResult emitTileOp(mlir::Operation *op);
  mlir::LogicalResult emitKgpuOp(mlir::Operation *op);
  mlir::LogicalResult emitStandardOp(mlir::Operation *op); ///< Ops of arith, math, scf and ub.
  Value asIndex(Value word);
  mlir::LogicalResult emitClusterId(kgpu::ClusterIdOp op);
  mlir::LogicalResult emitWarpAny(kgpu::WarpAnyOp op);
  mlir::LogicalResult emitPoison(mlir::ub::PoisonOp op);
  /// Returns the registers of a tile; a scalar has one.
  mlir::ValueRange registersOf(Value value) const { return registers.find(value)->second; }
  Value scalar(Value value) const { return registersOf(value).front(); }
  const View &view(Value value) const { return views.find(value)->second; }
  void define(Value value, TileRegisters values) { registers[value] = std::move(values); }
  mlir::LogicalResult emitAs(Value result, TileRegisters values) {
    define(result, std::move(values));
    return mlir::success();
  }

  // Elementwise.cpp
  mlir::LogicalResult emitElementwise(mlir::Operation *op);
  TileRegisters computedInPairs(mlir::Operation *op);
  mlir::LogicalResult emitConstant(mlir::arith::ConstantOp op);

  // Shape.cpp
  mlir::LogicalResult emitIota(tile::IotaOp op);
  mlir::LogicalResult emitBroadcast(tile::BroadcastOp op);
  mlir::LogicalResult emitHold(kgpu::HoldOp op);
  mlir::LogicalResult emitColumns(kgpu::ColumnsOp op);
  mlir::LogicalResult emitJoinColumns(kgpu::JoinColumnsOp op);
  mlir::LogicalResult emitOwnPart(kgpu::OwnPartOp op);
  mlir::LogicalResult emitReshape(tile::ReshapeOp op);
  mlir::LogicalResult emitPermute(tile::PermuteOp op);
  mlir::LogicalResult emitExtract(tile::ExtractOp op);
  mlir::LogicalResult emitJoin(tile::JoinOp op);
  /// Assigns to result register r the operand register that holds `source`(coordinates of r), in every thread. Fails
  /// when another thread holds the element.
  mlir::LogicalResult rename(mlir::Operation *op, Value operand, Value result,
                             llvm::function_ref<layout::Coordinates(layout::Coordinates)> source);
  mlir::LogicalResult emitConversion(kgpu::CvtLayoutOp op);

  // Unpack.cpp
  mlir::LogicalResult emitUnpack(tile::UnpackOp op);

  // Memory.cpp
  class TileAccess;
  bool isNeverWritten(const View &part);
  Value hasElement(const View &part);
  mlir::LogicalResult emitDrop(tile::DropOp op);
  mlir::LogicalResult emitSlice(tile::SliceOp op);
  mlir::LogicalResult emitLoad(tile::LoadOp op);
  mlir::LogicalResult emitStore(tile::StoreOp op);
  mlir::LogicalResult emitGenericLoad(tile::LoadOp op, Value fill);
  mlir::LogicalResult emitGenericStore(tile::StoreOp op, Value mask);

  // GatherScatter.cpp
  mlir::LogicalResult emitGather(tile::GatherOp op);
  mlir::LogicalResult emitScatter(tile::ScatterOp op);
  mlir::LogicalResult emitAtomic(tile::AtomicOp op);
  /// An update of one element. `expected` is null but for compare_exchange.
  struct Update {
    tile::AtomicKind kind;
    mlir::Type element;
    Value value, expected;
    bool hasOld;
  };
  Value updateElement(const Update &update, Value pointer);
  std::pair<Value, Value> elementAt(const View &part, mlir::ValueRange indices, Value mask, mlir::RankedTensorType type,
                                    unsigned reg);

  // Threads.cpp: kernels at thread level
  static bool isGeneric(Value pointer);
  mlir::LogicalResult emitThreadOp(mlir::Operation *op);
  void emitThreadBarrier(tile::ThreadScope scope);
  mlir::LogicalResult emitSharedOfRank(tile::SharedOfRankOp op);
  mlir::LogicalResult emitShuffle(tile::ShuffleOp op);
  mlir::LogicalResult emitVote(tile::VoteOp op);
  mlir::LogicalResult emitAtomicElement(tile::AtomicElementOp op);
  mlir::LogicalResult emitCopyAsync(tile::CopyAsyncOp op);
  mlir::LogicalResult emitThreadMma(tile::ThreadMmaOp op);

  // AsyncCopy.cpp
  mlir::LogicalResult emitAsyncCopy(kgpu::AsyncCopyOp op);
  mlir::LogicalResult emitAsyncGather(kgpu::AsyncGatherOp op);
  mlir::LogicalResult emitFetch(kgpu::FetchOp op);
  mlir::LogicalResult emitTouch(kgpu::TouchOp op);
  mlir::LogicalResult emitFetched(kgpu::FetchedOp op);

  // Exchange.cpp
  mlir::LogicalResult emitExchangeInit(kgpu::ExchangeInitOp op);
  mlir::LogicalResult emitExchange(kgpu::ExchangeOp op);

  // Mma.cpp
  mlir::LogicalResult emitMma(kgpu::MmaOp op);

  // Shared.cpp
  mlir::LogicalResult emitAlloc(kgpu::AllocOp op);
  mlir::LogicalResult emitSlot(kgpu::SlotOp op);
  mlir::LogicalResult emitSliceBuffer(kgpu::SliceBufferOp op);
  std::pair<Value, Value> placeByStrides(const layout::Layout &layout, kgpu::SharedType buffer, unsigned reg);
  Value sharedElement(Value base, Value distance);
  mlir::LogicalResult emitLocalStore(kgpu::LocalStoreOp op);
  mlir::LogicalResult storeToBuffer(mlir::Operation *op, Value value, Value to);
  mlir::LogicalResult emitRemoteStore(kgpu::RemoteStoreOp op);
  mlir::LogicalResult emitViewBuffer(kgpu::ViewBufferOp op);
  mlir::LogicalResult emitLocalLoad(kgpu::LocalLoadOp op);

  // Async.cpp
  mlir::LogicalResult emitRing(kgpu::RingOp op);
  unsigned arrivalsToEmpty(kgpu::RingOp op);
  mlir::LogicalResult emitRoles(kgpu::RolesOp op);
  mlir::LogicalResult emitRegion(mlir::Region &region);
  mlir::LogicalResult emitProducers(kgpu::RolesOp op, unsigned registersOfThread);
  void signalFirstWarpgroup();
  mlir::LogicalResult emitPingPongWait(kgpu::PingPongWaitOp op);
  mlir::LogicalResult emitPingPongSignal(kgpu::PingPongSignalOp op);
  mlir::LogicalResult emitAcquire(kgpu::AcquireOp op);
  mlir::LogicalResult emitAwait(kgpu::AwaitOp op);
  mlir::LogicalResult emitRelease(kgpu::ReleaseOp op);
  mlir::LogicalResult emitPublishAll(kgpu::PublishAllOp op); // Share.cpp
  mlir::LogicalResult emitPublish(kgpu::PublishOp op);
  mlir::LogicalResult emitTensorLoad(kgpu::TensorLoadOp op);
  mlir::LogicalResult emitClearOutside(kgpu::ClearOutsideOp op);
  mlir::LogicalResult emitSchedulingFence(kgpu::SchedulingFenceOp op);

  // WarpgroupProducts.cpp
  class WarpgroupProduct;
  mlir::LogicalResult emitWgmma(kgpu::WgmmaOp op);
  llvm::SmallVector<Value> leftFragment(Value tile, int64_t row, int64_t column);
  llvm::SmallVector<Value> positionWords(Value tile, int64_t row);
  mlir::LogicalResult emitWgmmaWait(kgpu::WgmmaWaitOp op);

  // TensorStore.cpp
  class PanelStores;
  mlir::LogicalResult emitTensorStore(kgpu::TensorStoreOp op);

  // Tiles.cpp
  mlir::LogicalResult emitNextTile(kgpu::NextTileOp op);
  mlir::LogicalResult emitPublishIndex(kgpu::PublishIndexOp op);
  mlir::LogicalResult emitConsumeIndex(kgpu::ConsumeIndexOp op);
  /// Synchronises all threads that run this code.
  void emitBarrier();

  // Reduction.cpp
  mlir::LogicalResult emitReduce(mlir::Operation *op, tile::ReduceKind kind, Value value, int64_t axis);
  mlir::LogicalResult emitCombine(mlir::Operation *op, mlir::ValueRange inputs, mlir::ValueRange inits, int64_t axis);
  /// Combines the elements along `axis` that this warp holds, and defines the results of `op`.
  mlir::LogicalResult reduceInWarp(mlir::Operation *op, mlir::ValueRange inputs, mlir::ValueRange neutral,
                                   unsigned axis, Combine combine);

  /// Emits the body of a combine or scan on two groups of scalars.
  mlir::FailureOr<llvm::SmallVector<Value>> emitCombination(mlir::Block &body, mlir::ValueRange left,
                                                            mlir::ValueRange right);

  // Report.cpp
  void numberReports();
  Value isElement(const layout::Layout &layout, llvm::ArrayRef<int64_t> shape, unsigned reg);
  mlir::LogicalResult emitAssert(tile::AssertOp op);
  mlir::LogicalResult emitPrint(tile::PrintOp op);
  void printElements(Value value, int64_t shown, Value firstWord, Value hasRoom);

  // Scan.cpp
  mlir::LogicalResult emitScan(tile::ScanOp op);
  mlir::LogicalResult emitPartialScan(kgpu::PartialScanOp op);
  mlir::LogicalResult emitPutBefore(kgpu::PutBeforeOp op);
  /// Scans the elements along `axis` that this warp holds, with the body of `op`.
  mlir::FailureOr<Scanned> scanInWarp(mlir::Operation *op, mlir::ValueRange inputs, unsigned axis, mlir::Block &body,
                                      ScanKind kind);

  // ControlFlow.cpp
  mlir::LogicalResult emitFor(mlir::scf::ForOp op);
  mlir::LogicalResult emitIf(mlir::scf::IfOp op);
  mlir::LogicalResult emitWhile(mlir::scf::WhileOp op);
  /// Returns the values' registers, with narrow elements of a tile packed into shared registers.
  TileRegisters flatten(mlir::ValueRange values);
  /// Inverse of `flatten`: defines `values` from the registers in `flat`.
  void defineFrom(mlir::ValueRange values, mlir::ValueRange flat);
  /// Emits the ops of `from` at the end of `to`, whose terminator the caller creates.
  mlir::LogicalResult emitInto(mlir::Block &from, mlir::Block *to);

  tile::KernelOp kernel;
  mlir::ImplicitLocOpBuilder builder;
  kgpu::Launch launch;
  ThreadPlace place;
  /// The kernel's logical grid, which tile.grid_dim returns.
  std::array<Value, 3> grid;
  /// i1: whether this thread's kernel block lies in the grid. Null when it always does. It may not if a CTA runs
  /// several blocks.
  Value inGrid;
  /// i32: the number of this warpgroup, uniform over its threads, in a kernel with roles. Null before the roles branch.
  Value warpgroup;
  /// i32: the named barrier of this warpgroup. Null before the roles branch.
  Value ownBarrier;
  /// True when threads have started copies from shared memory to global memory.
  bool storesByMaps = false;
  /// True when warpgroups read tiles that other warpgroups compute.
  bool sharesTiles = false;
  /// True when CTAs of the cluster fill each other's rings (multicast).
  bool sharesCopies = false;
  /// !llvm.ptr<3> to the CTA's shared memory, or null without any.
  Value sharedMemory;
  mlir::Operation *lastLoop = nullptr; ///< The next kernel may start after this loop; null means at once.
  /// !llvm.ptr<1>: the counter of this launch, or null in kernels that need none.
  Value counter;
  /// !llvm.ptr<1>: the report of asserts and prints, or null without any; then the number of each of them.
  Value report;
  llvm::DenseMap<mlir::Operation *, int32_t> reportNumbers;
  llvm::SmallVector<Value> tensorMaps;
  llvm::DenseMap<Value, TileRegisters> registers;
  llvm::DenseMap<Value, View> views;
};

} // namespace kpkg::lower::nvvm
