// One thread's code of a laid-out kernel: every tile becomes the registers that the thread holds of it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "dialect/lower/nvvm/AlongAxis.h"
#include "dialect/lower/nvvm/ThreadPlace.h"
#include "dialect/tile/ir/TileDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace kpkg::lower::nvvm {

/// A view argument, or a part of one, as values of the kernel's entry.
struct View {
  tile::ViewType type;
  mlir::Value pointer;                   ///< !llvm.ptr<1>
  llvm::SmallVector<mlir::Value> shape;  ///< index
  llvm::SmallVector<mlir::Value> stride; ///< index, in elements
  /// False where an index that made this part was outside of its dimension; null when it cannot be.
  mlir::Value valid;
};

/// Turns one `tile.kernel` into a `gpu.func` with scalar arith, math, scf, gpu, nvvm and llvm ops in its body.
/// Registers of a tile are in the order of its layout. What cannot be emitted is an error at the op's location.
class Emitter {
public:
  /// The function is put where `builder` stands.
  Emitter(tile::KernelOp kernel, mlir::OpBuilder &builder);
  mlir::LogicalResult run();

private:
  using Value = mlir::Value;
  using TileRegisters = llvm::SmallVector<Value>;

  // Entry.cpp
  mlir::LogicalResult makeFunction();
  /// Coordinate of this thread's kernel block.
  Value blockId(tile::GridAxis axis);
  /// !llvm.ptr: where the kernel's tensor map of this number is, of those that `kgpu.tensor_maps` lists.
  Value tensorMap(unsigned number) const { return tensorMaps[number]; }

  // Emitter.cpp: dispatch
  mlir::LogicalResult emitBlock(mlir::Block &block);
  mlir::LogicalResult emit(mlir::Operation *op);
  /// The registers of a tile; a scalar counts as one.
  mlir::ValueRange registersOf(Value value) const { return registers.find(value)->second; }
  Value scalar(Value value) const { return registersOf(value).front(); }
  const View &view(Value value) const { return views.find(value)->second; }
  void define(Value value, TileRegisters values) { registers[value] = std::move(values); }

  // Elementwise.cpp
  mlir::LogicalResult emitElementwise(mlir::Operation *op);
  mlir::LogicalResult emitConstant(mlir::arith::ConstantOp op);

  // Shape.cpp
  void emitIota(tile::IotaOp op);
  mlir::LogicalResult emitBroadcast(tile::BroadcastOp op);
  void emitHold(kgpu::HoldOp op);
  mlir::LogicalResult emitColumns(kgpu::ColumnsOp op);
  mlir::LogicalResult emitJoinColumns(kgpu::JoinColumnsOp op);
  mlir::LogicalResult emitOwnPart(kgpu::OwnPartOp op);
  mlir::LogicalResult emitReshape(tile::ReshapeOp op);
  mlir::LogicalResult emitPermute(tile::PermuteOp op);
  /// Gives result register r the operand register that holds `source`(coordinates of r), in every thread; an error when
  /// it is elsewhere.
  mlir::LogicalResult rename(mlir::Operation *op, Value operand, Value result,
                             llvm::function_ref<layout::Coordinates(layout::Coordinates)> source);
  mlir::LogicalResult emitConversion(kgpu::CvtLayoutOp op);

  // Memory.cpp
  class TileAccess;
  bool isNeverWritten(const View &part);
  Value hasElement(const View &part);
  mlir::LogicalResult emitDrop(tile::DropOp op);
  mlir::LogicalResult emitSlice(tile::SliceOp op);
  mlir::LogicalResult emitLoad(tile::LoadOp op);
  mlir::LogicalResult emitStore(tile::StoreOp op);

  // GatherScatter.cpp
  mlir::LogicalResult emitGather(tile::GatherOp op);
  mlir::LogicalResult emitScatter(tile::ScatterOp op);
  mlir::LogicalResult emitAtomic(tile::AtomicOp op);
  std::pair<Value, Value> elementAt(const View &part, mlir::ValueRange indices, Value mask, mlir::RankedTensorType type,
                                    unsigned reg);

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
  std::pair<Value, Value> rowMajorPlace(const layout::Layout &layout, kgpu::SharedType buffer, unsigned reg);
  Value sharedElement(Value base, Value distance);
  mlir::LogicalResult emitLocalStore(kgpu::LocalStoreOp op);
  mlir::LogicalResult storeToBuffer(mlir::Operation *op, Value value, Value to);
  mlir::LogicalResult emitRemoteStore(kgpu::RemoteStoreOp op);
  mlir::LogicalResult emitLocalLoad(kgpu::LocalLoadOp op);

  // Async.cpp
  mlir::LogicalResult emitRing(kgpu::RingOp op);
  unsigned arrivalsToEmpty(kgpu::RingOp op);
  mlir::LogicalResult emitRoles(kgpu::RolesOp op);
  mlir::LogicalResult emitRegion(mlir::Region &region);
  mlir::LogicalResult emitProducers(kgpu::RolesOp op, unsigned registersOfThread);
  void giveFirstTurn();
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
  mlir::LogicalResult emitWgmma(kgpu::WgmmaOp op);
  llvm::SmallVector<Value> leftFragment(Value tile, int64_t row, int64_t column);
  llvm::SmallVector<Value> positionWords(Value tile, int64_t row);
  mlir::LogicalResult emitWgmmaWait(kgpu::WgmmaWaitOp op);

  mlir::LogicalResult emitTensorStore(kgpu::TensorStoreOp op); // TensorStore.cpp

  // Tiles.cpp
  mlir::LogicalResult emitNextTile(kgpu::NextTileOp op);
  mlir::LogicalResult emitPublishIndex(kgpu::PublishIndexOp op);
  mlir::LogicalResult emitConsumeIndex(kgpu::ConsumeIndexOp op);
  /// All threads that run this code wait for each other.
  void emitBarrier();

  // Reduction.cpp
  mlir::LogicalResult emitReduce(mlir::Operation *op, tile::ReduceKind kind, Value value, int64_t axis);
  mlir::LogicalResult emitCombine(mlir::Operation *op, mlir::ValueRange inputs, mlir::ValueRange inits, int64_t axis);
  /// Combines what this warp holds along `axis` and defines the results of `op`.
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
  /// Scans what this warp holds along `axis`, by the body of `op`.
  mlir::FailureOr<Scanned> scanInWarp(mlir::Operation *op, mlir::ValueRange inputs, unsigned axis, mlir::Block &body,
                                      ScanKind kind);

  // ControlFlow.cpp
  mlir::LogicalResult emitFor(mlir::scf::ForOp op);
  mlir::LogicalResult emitIf(mlir::scf::IfOp op);
  mlir::LogicalResult emitWhile(mlir::scf::WhileOp op);
  /// The values' registers; narrow elements of a tile share one.
  TileRegisters flatten(mlir::ValueRange values);
  /// Gives `values` their parts of `flat`, which is what `flatten` makes of them.
  void defineFrom(mlir::ValueRange values, mlir::ValueRange flat);
  /// Emits the ops of `from` at the end of `to`, whose terminator the caller makes.
  mlir::LogicalResult emitInto(mlir::Block &from, mlir::Block *to);

  tile::KernelOp kernel;
  mlir::ImplicitLocOpBuilder builder;
  kgpu::Launch launch;
  ThreadPlace place;
  /// The kernel's logical grid: what tile.grid_dim gives.
  std::array<Value, 3> grid;
  /// i1: this thread's kernel block is one of the grid's; null when it always is. A CTA that runs several blocks
  /// overshoots.
  Value inGrid;
  /// i32: number of this warpgroup, the same in all its threads, in a kernel with roles; null before they part.
  Value warpgroup;
  /// i32: the barrier of this warpgroup's threads; null before roles part.
  Value ownBarrier;
  /// Some threads have started copies from shared memory to global memory.
  bool storesByMaps = false;
  /// Warpgroups read what others compute.
  bool sharesTiles = false;
  /// CTAs of the cluster fill rings of each other.
  bool sharesCopies = false;
  /// The beginning of the CTA's shared memory, !llvm.ptr<3>; null without any.
  Value sharedMemory;
  mlir::Operation *lastLoop = nullptr; ///< behind which the next kernel may start; null = it may at once
  /// !llvm.ptr<1>: the counter of this launch; null in kernels that need none.
  Value counter;
  /// !llvm.ptr<1>: where asserts and prints go; null without any. And the number of each of them.
  Value report;
  llvm::DenseMap<mlir::Operation *, int32_t> reportNumbers;
  llvm::SmallVector<Value> tensorMaps;
  llvm::DenseMap<Value, TileRegisters> registers;
  llvm::DenseMap<Value, View> views;
};

} // namespace kpkg::lower::nvvm
