// Emits one tile.kernel as vector loops, and computes tiles where a loop needs them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tile value is one of
//   * lazy: its op (elementwise, broadcast, load, ...) is emitted again for each vector that a loop needs;
//   * a scalar: tiles of one element;
//   * a buffer in the task's scratch memory: results of reductions, dots and loops, and expensive shared values.
//
// "Sinks" (stores, reductions, dots, ...) create the loop nests. Independent reductions over one shape share a nest.
// Along a dimension a tile may be uniform from some run-time index on: a load beyond the view's end returns its fill.
// Loops end there, and reductions add the uniform tail as one scalar.
#pragma once
#include "dialect/lower/cpu/BatchRows.h"
#include "dialect/lower/cpu/CpuTarget.h"
#include "dialect/lower/cpu/Dot.h"
#include "dialect/lower/cpu/Elements.h"
#include "dialect/tile/ir/ThreadOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVector.h"
#include <functional>
#include <map>
#include <set>
#include <vector>

namespace kpkg::lower::cpu {

/// A tile.view at run time.
struct View {
  mlir::Value pointer;
  llvm::SmallVector<mlir::Value, 4> shape, stride; ///< index.
  mlir::Value valid;                               ///< i1; null means true. When false, no element exists.
  mlir::Value absent; ///< i1; null means false. When true, the tensor is absent and reads return fills.
  mlir::Type element;
  int64_t unit = -1;
};

/// A tile in scratch memory: row-major, without its dimensions of extent 1.
struct Buffer {
  mlir::Value pointer;
  llvm::SmallVector<int64_t, 4> stride; ///< Per dimension of the tile, in elements; 0 where the extent is 1.
  mlir::Type element;
  int clipped = -1; ///< The dimension along which only the part before the uniform tail was written, or -1.
};

/// The elements of a tile that a loop needs.
struct Position {
  llvm::SmallVector<mlir::Value, 4> index; ///< Per dimension; null means anywhere in the uniform tail.
  int vector = -1;                         ///< The dimension that runs along the lanes, starting at its index, or -1.
};

/// A consumer of the elements of a nest.
struct Sink {
  enum Kind { Reduce, Materialise, Store } kind;
  mlir::Value value;             ///< The tile, of the nest's shape.
  mlir::Operation *op = nullptr; ///< The tile.reduce or tile.store.
  Buffer buffer = {};            ///< The target of Materialise.
};

class KernelEmitter {
public:
  KernelEmitter(tile::KernelOp kernel, const CpuTarget &target, const RowBatch &batch);
  /// Emits the entry function (and `$tiles`) before the kernel, which the caller erases.
  mlir::LogicalResult run();

private:
  // Entry.cpp
  mlir::Value argumentWord(mlir::Value words, int64_t position);
  void bindArguments(mlir::Value words);
  void bindCall(mlir::Value call);
  void makeStatus();
  void finishEntry(mlir::LLVM::LLVMFuncOp function);
  mlir::LogicalResult emitTileCount(tile::ForTilesOp loop);
  mlir::LogicalResult emitTileLoopBody(tile::ForTilesOp loop);
  void openBlocks(mlir::Value begin, mlir::Value end, bool areTiles);
  mlir::LLVM::LLVMFuncOp makeFunction(llvm::StringRef name, mlir::Type result, llvm::ArrayRef<mlir::Type> arguments);

  // Blocks.cpp
  mlir::LogicalResult emitBlock(mlir::Block &block);
  mlir::LogicalResult emitOp(mlir::Operation &op);
  bool isLazy(mlir::Operation *op);
  mlir::LogicalResult emitScalarOp(mlir::Operation &op);
  mlir::LogicalResult emitScalarMemoryOp(mlir::Operation &op);
  /// Returns whether the kernel may write to the memory of a view.
  bool isWritten(mlir::Value view);
  View scratchMemory(tile::ScratchOp op);
  View dropDimensions(tile::DropOp op);
  View sliceDimension(tile::SliceOp op);

  // ControlFlow.cpp
  mlir::LogicalResult emitFor(mlir::scf::ForOp op);
  mlir::LogicalResult emitIf(mlir::scf::IfOp op);
  bool diesIn(mlir::Value tile, mlir::scf::IfOp op);
  mlir::LogicalResult emitWhile(mlir::scf::WhileOp op);
  bool staysScalar(mlir::Type type);
  mlir::Value scalarOf(mlir::Value value);
  mlir::LogicalResult prepareRegions(mlir::Operation *op);
  mlir::LogicalResult emitRegion(mlir::Block &block,
                                 llvm::function_ref<mlir::LogicalResult(mlir::Operation *terminator)> finish);
  /// `ends`: one list for each target, or empty.
  mlir::LogicalResult writeAll(llvm::ArrayRef<mlir::Value> values, llvm::ArrayRef<Buffer> targets,
                               llvm::ArrayRef<llvm::SmallVector<mlir::Value>> ends = {});
  bool readsElsewhere(mlir::Value value, const Buffer &own, llvm::ArrayRef<Buffer> targets);

  // Plan.cpp
  void planBlock(mlir::Block &block);
  struct Space {
    llvm::SmallVector<int64_t, 4> shape;
    int reduceDim = -1;
    bool operator==(const Space &other) const = default;
  };
  Space spaceOf(tile::ReduceOp op);
  void visitCone(mlir::Value root, llvm::function_ref<bool(mlir::Value, bool identity)> visit);
  bool isExpensive(mlir::Operation *op);
  bool dependsOnBlock(tile::LoadOp op);
  int64_t coneCost(mlir::Value value);
  bool clippable(mlir::Value tile, int dim);
  mlir::LogicalResult enqueue(tile::ReduceOp op);
  mlir::LogicalResult flush();
  mlir::LogicalResult materialisePlanned(mlir::Value root, const Space *space, llvm::SmallVectorImpl<Sink> *fused);

  // Demands.cpp
  bool followLine(mlir::OpOperand &use, int dim, llvm::function_ref<bool(mlir::Value, int)> follow);
  bool collectStores(mlir::Value tile, int dim, llvm::SmallDenseSet<std::pair<mlir::Value, int>> &seen,
                     llvm::SmallVectorImpl<std::pair<tile::StoreOp, int>> &stores);
  mlir::Value demandedEnd(mlir::ValueRange tiles, int dim);
  llvm::SmallVector<mlir::Value> demandedEnds(mlir::ValueRange tiles);

  // Nests.cpp
  struct NestState;
  /// `ends`: where the loops end in each dimension, or empty. A reduction ignores the end along its own dimension.
  mlir::LogicalResult emitNest(llvm::ArrayRef<int64_t> shape, int reduceDim, llvm::ArrayRef<Sink> sinks,
                               llvm::ArrayRef<mlir::Value> ends = {});
  void boundStore(NestState &nest, tile::StoreOp store);
  mlir::LogicalResult materialise(mlir::Value value, Buffer buffer, llvm::ArrayRef<mlir::Value> ends = {});
  void writeTail(mlir::Value value, const Buffer &buffer);
  mlir::FailureOr<Buffer> bufferOf(mlir::Value value);
  mlir::LogicalResult emitStore(tile::StoreOp op);

  void storeElement(const NestState &nest, tile::StoreOp store);
  int64_t unrollOf(const NestState &nest);
  void findFirstReads(const NestState &nest);
  void emitLoops(NestState &nest);
  void recordResults(const NestState &nest);
  llvm::SmallVector<mlir::Value> emitChunks(NestState &nest, mlir::Value base, int64_t chunks, bool checked,
                                            mlir::ValueRange accumulators);
  void outerLoops(llvm::ArrayRef<int> dims, NestState &nest, llvm::function_ref<void()> body);

  // NestLoops.cpp
  void emitAlongVector(NestState &nest);
  mlir::Value endAlong(const NestState &nest, const Position &along);
  llvm::SmallVector<mlir::Value> loopAlong(NestState &nest, mlir::Value from, mlir::Value to, int64_t chunks,
                                           bool checked, mlir::ValueRange inits);
  void combineGroup(const NestState &nest, llvm::SmallVectorImpl<mlir::Value> &accumulators);
  void finishAlong(NestState &nest, llvm::ArrayRef<mlir::Value> accumulators, llvm::ArrayRef<mlir::Value> lastOperands);
  void emitAcrossVector(NestState &nest);
  std::pair<mlir::Value, mlir::Value> endsAcross(const NestState &nest, mlir::Value width);
  void loopAcross(NestState &nest, mlir::Value end, mlir::Value from, mlir::Value to, int64_t chunks, bool checked);
  llvm::SmallVector<mlir::Value> neutralChunks(const NestState &nest, int64_t chunks);
  mlir::Value unmaskedEnd(llvm::ArrayRef<mlir::Value> tiles, const Position &position, mlir::Value end);
  mlir::Value wholeParts(mlir::Value length, int64_t size); ///< Returns `length` rounded down to a multiple of `size`.
  mlir::Value lastLane(mlir::Value vector, mlir::Value end, llvm::function_ref<mlir::Value()> emitOther);
  mlir::Value addTail(tile::ReduceKind kind, mlir::Value total, mlir::Value rest,
                      llvm::function_ref<mlir::Value()> emitElement);

  // Reduction.cpp
  mlir::Type accumulatorElement(mlir::Type element);
  mlir::Value neutral(tile::ReduceKind kind, mlir::Type type);
  mlir::Value accumulate(tile::ReduceKind kind, mlir::Value a, mlir::Value b);
  mlir::Value horizontal(tile::ReduceKind kind, mlir::Value vector);
  mlir::Value repeated(tile::ReduceKind kind, mlir::Value value, mlir::Value count);
  mlir::Value toAccumulator(mlir::Value value, mlir::Type element);
  mlir::Value fromAccumulator(mlir::Value value, mlir::Type element);

  // Values.cpp
  mlir::Value emit(mlir::Value tile, const Position &position);
  mlir::Value emitUncached(mlir::Value tile, const Position &position);
  mlir::Value emitReshape(tile::ReshapeOp op, const Position &position);
  mlir::Value emitExtract(tile::ExtractOp op, const Position &position);
  mlir::Value emitByLanes(mlir::Value tile, const Position &position, llvm::function_ref<Position(Position)> source);
  mlir::Value readBuffer(mlir::Value tile, const Buffer &buffer, const Position &position);
  void writeBuffer(const Buffer &buffer, const Position &position, mlir::Value value);
  std::optional<llvm::SmallVector<int>> unitReshape(tile::ReshapeOp op);
  Position operandPosition(mlir::Operation *op, mlir::Value operand, const Position &position);
  mlir::Value linearIndex(const Position &position, llvm::ArrayRef<int64_t> shape);

  // Extents.cpp
  /// Returns null when no uniform tail before the extent's end is known.
  mlir::Value extentOf(mlir::Value tile, Position position, int dim);
  mlir::Value computeExtent(mlir::Value tile, const Position &position, int dim);
  void unmaskedLimits(mlir::Value tile, const Position &position, llvm::SmallVectorImpl<mlir::Value> &limits,
                      bool assume);
  mlir::Value assumedComparison(mlir::arith::CmpIOp op, const Position &position);
  mlir::Value extractedExtent(tile::ExtractOp op, const Position &position, int dim);
  std::pair<Position, int> throughShape(mlir::Operation *op, const Position &position, int dim);
  mlir::Value uniformAlong(mlir::Value tile, const Position &position, int dim);
  std::optional<std::pair<mlir::Value, bool>> comparisonExtent(mlir::arith::CmpIOp op, const Position &position,
                                                               int dim);
  mlir::Value comparisonTail(mlir::arith::CmpIOp op, const Position &position);
  mlir::Value linearOffset(mlir::Value tile, const Position &position, int dim);

  // Memory.cpp
  mlir::Value emitLoad(tile::LoadOp op, const Position &position);
  mlir::Value lineOfFills(tile::LoadOp op);
  void prefetchAhead(tile::LoadOp op, mlir::Value pointer);
  mlir::Value emitGather(tile::GatherOp op, const Position &position);
  mlir::LogicalResult emitScatter(tile::ScatterOp op);
  mlir::LogicalResult emitAtomic(tile::AtomicOp op);
  /// An update of one element. `expected` is null but for compare_exchange. `isOfBlock`: no other task accesses it.
  struct Update {
    tile::AtomicKind kind;
    mlir::Type element;
    mlir::Value value, expected;
    bool isOfBlock;
  };
  mlir::Value updateElement(const Update &update, mlir::Value pointer);
  mlir::Value addToNarrowFloat(mlir::Value pointer, mlir::Value value, mlir::Type element);
  /// Calls `function(pointer, valid, position)` for each element of index tiles of `shape`. For elements that must not
  /// be accessed, the pointer is `dummy`. A null `valid` means that all are accessed.
  void forEachIndexed(mlir::Value view, mlir::ValueRange indices, mlir::Value mask, llvm::ArrayRef<int64_t> shape,
                      llvm::function_ref<void(mlir::Value, mlir::Value, const Position &)> function);
  void storeChunk(tile::StoreOp op, const Position &position, mlir::Value value, mlir::Value end);
  mlir::Value elementPointer(mlir::Value base, mlir::Type element, mlir::Value offset);
  mlir::Value loadElements(mlir::Value pointer, mlir::Type element, int64_t lanes);
  void storeElements(mlir::Value value, mlir::Value pointer, mlir::Type element);
  mlir::Value loadScalarChecked(mlir::Value pointer, mlir::Value valid, mlir::Value fill, mlir::Type element);
  mlir::Value toMemory(mlir::Value value, mlir::Type element);
  mlir::Value fromMemory(mlir::Value value, mlir::Type element);
  mlir::Value outerValid(const View &view, mlir::ValueRange offsets, const Position &position, int except);
  mlir::Value laneMask(mlir::Value begin, mlir::Value end);

  // Sequential.cpp
  mlir::LogicalResult emitArgReduce(tile::ArgReduceOp op);
  mlir::LogicalResult emitCombine(tile::CombineOp op);
  mlir::LogicalResult emitScan(tile::ScanOp op);
  mlir::LogicalResult emitJoin(tile::JoinOp op);
  mlir::LogicalResult emitPrint(tile::PrintOp op);
  mlir::LogicalResult emitCheckedPrint(tile::PrintOp op);
  void putWord(mlir::Value value, mlir::Type element, mlir::Value memory, int64_t word);
  void callPrint(llvm::StringRef format, mlir::Value memory, int64_t words);
  mlir::LogicalResult emitAssert(tile::AssertOp op);
  mlir::LogicalResult inlineRegion(mlir::Region &region, mlir::ValueRange arguments,
                                   llvm::SmallVectorImpl<mlir::Value> &results);
  mlir::LogicalResult
  reduceSequentially(mlir::Operation *op, llvm::ArrayRef<int64_t> shape, int axis,
                     llvm::function_ref<mlir::LogicalResult(Position, llvm::SmallVectorImpl<mlir::Value> &)> body);
  void forEachElement(llvm::ArrayRef<int64_t> shape, int except, llvm::function_ref<void(Position)> body);

  // DotSinks.cpp
  mlir::LogicalResult emitDot(tile::DotOp op);
  mlir::FailureOr<DotOperand> dotOperand(mlir::Value tile, mlir::Value batch, bool isLeft);
  mlir::FailureOr<Buffer> accumulatorBuffer(tile::DotOp op);

  // RowGathers.cpp
  bool canCopyRows(tile::GatherOp op);
  /// Returns the operand that a tile::rowGather reads. If rows run along the depth, it is a table of rows. Otherwise it
  /// is a copy, which requires canCopyRows.
  mlir::FailureOr<DotOperand> gatheredOperand(tile::GatherOp op, bool isTransposed, bool isLeft);
  mlir::Value fillRowTable(tile::GatherOp op, unsigned along, mlir::Value table);
  mlir::Value countLines(mlir::Value inside, int64_t count, mlir::Value line, mlir::Value counted);
  void fillBehindTable(mlir::Value table, int64_t rows, mlir::Value nothing);

  // Elementwise.cpp
  /// Emits `op` on operands in registers. The operands are all scalars, or all vectors if one is a vector.
  mlir::Value emitElementwise(mlir::Operation *op, llvm::SmallVector<mlir::Value> operands);
  mlir::Value emitHere(mlir::Operation *op, llvm::SmallVector<mlir::Value> operands);
  mlir::Value emitConversion(mlir::Operation *op, mlir::Value operand, mlir::Type resultElement);
  mlir::Value emitDivision(mlir::Operation *op, mlir::ValueRange operands);
  mlir::Value emitConstant(mlir::Attribute attribute, mlir::Type element);

  // Scopes (Scopes.cpp): the open loops. A value is hoisted into the outermost scope where it can be computed.
  struct Scope {
    mlir::Operation *op;
    bool barrier; ///< Nothing is hoisted out of the scope.
    std::map<std::vector<const void *>, mlir::Value> values;
    std::map<std::vector<const void *>, mlir::Value> extents; ///< Null: no extent.
  };
  void openScope(mlir::Operation *op, bool barrier = false);
  void closeScope();
  size_t levelOf(mlir::ValueRange values);
  /// Runs `build` with the insertion point in the outermost scope where all `operands` are defined.
  mlir::Value hoisted(mlir::ValueRange operands, llvm::function_ref<mlir::Value()> build);

  // Threads.cpp, ThreadExchange.cpp: kernels at thread level.
  /// What the threads of a cluster share: bytes and offsets in scratch memory, and values of the code of one thread.
  struct ThreadMemory {
    int64_t count = 0, cluster = 1; ///< threads of a block, blocks
    bool waits = false;             ///< threads wait for each other
    int64_t shared = 0, sharedBytes = 0;
    llvm::DenseMap<mlir::Operation *, int64_t> sharedOffsets; ///< of tile.scratch, in the memory of a block
    int64_t context = 0, sites = 0, phases = 0, slots = 0;
    int64_t slotWords = 0;        ///< words that a lane exchanges at once
    mlir::Value id, rank, number; ///< in the block; of the block in the cluster; in the cluster
    mlir::Value site;             ///< the address of the place where the thread waits
  };
  mlir::LogicalResult runThreads();
  void layOutThreads();
  void bindThread(mlir::Value number);
  mlir::LogicalResult emitCoroutine();
  void emitRunOfCluster(mlir::Value call);
  void declareOnce(llvm::StringRef name, mlir::LLVM::LLVMFunctionType type);
  void suspend(mlir::Operation *op, tile::ThreadScope scope);
  mlir::Value scratchAt(int64_t offset);
  mlir::Value wordAt(mlir::Value base, mlir::Value index, int64_t bytes);
  mlir::LogicalResult emitThreadOp(mlir::Operation &op);
  View sharedMemoryOf(tile::ScratchOp op);
  mlir::Value laneOfThread();
  mlir::Value exchange(mlir::Operation *op, llvm::ArrayRef<mlir::Value> words);
  mlir::Value wordOfLane(mlir::Value base, mlir::Value lane, int64_t number);
  mlir::Value toWord(mlir::Value value, mlir::Type element);
  mlir::Value fromWord(mlir::Value word, mlir::Type element);
  mlir::LogicalResult emitShuffle(tile::ShuffleOp op);
  mlir::LogicalResult emitVote(tile::VoteOp op);
  mlir::LogicalResult emitAtomicElement(tile::AtomicElementOp op);
  mlir::LogicalResult emitCopyAsync(tile::CopyAsyncOp op);
  mlir::LogicalResult emitThreadMma(tile::ThreadMmaOp op);

  // Small builders.
  mlir::Value constant(mlir::TypedAttr attribute);
  mlir::Value settle(mlir::Value value);
  template <class Op, class... Arguments> mlir::Value make(Arguments... arguments) {
    llvm::SmallVector<mlir::Value> operands;
    auto collect = [&](auto argument) {
      if constexpr (std::is_convertible_v<decltype(argument), mlir::Value>)
        operands.push_back(argument);
    };
    (collect(arguments), ...);
    return hoisted(operands, [&] { return settle(builder.createOrFold<Op>(loc, arguments...)); });
  }
  mlir::Value choose(mlir::Value condition, mlir::Value a, mlir::Value b); ///< A null condition means true.
  mlir::Value indexConstant(int64_t value);
  mlir::Value splatTo(mlir::Value value, int64_t lanes);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value smin(mlir::Value a, mlir::Value b);
  mlir::Value smax(mlir::Value a, mlir::Value b);
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value a, mlir::Value b);
  mlir::Value both(mlir::Value a, mlir::Value b); ///< a && b; null means true.
  mlir::scf::ForOp openLoop(mlir::Value begin, mlir::Value end, mlir::Value step, mlir::ValueRange inits = {});
  void closeLoop(mlir::scf::ForOp loop, mlir::ValueRange results = {});
  Buffer allocate(mlir::Type tileType);
  mlir::Value allocateBytes(int64_t bytes);
  mlir::LogicalResult error(mlir::Operation *op, const llvm::Twine &message);

  tile::KernelOp kernel;
  const CpuTarget &target;
  const RowBatch &batch;
  mlir::OpBuilder builder;
  mlir::Location loc;
  int64_t lanes;

  // State of the function that is being emitted.
  mlir::Block *entryBlock = nullptr;
  llvm::DenseMap<mlir::Attribute, mlir::Value> constants;
  llvm::DenseMap<mlir::Value, mlir::Value> fillLines; ///< Vectors in memory, by the element that fills them.
  mlir::Value scratch, status, dummy, printFunction, printContext;
  llvm::SmallVector<mlir::Value, 3> blockIds, gridDims;
  mlir::Operation *current = nullptr; ///< The op that is being emitted.
  bool failed = false;

  llvm::DenseMap<mlir::Value, mlir::Value> scalars; ///< Scalars, and tiles of one element.
  llvm::DenseMap<mlir::Value, View> views;
  llvm::DenseMap<mlir::Value, Buffer> buffers;
  llvm::DenseSet<mlir::Value> planned; ///< Lazy tiles that get a buffer when they are first needed.
  /// Dots whose result a loop carries: the block argument and the buffer of the carried value.
  llvm::DenseMap<mlir::Value, std::pair<mlir::Value, Buffer>> preferred;
  llvm::DenseSet<unsigned> writtenArguments;

  llvm::SmallVector<Scope> scopes;
  bool alignedChunks = true;   ///< Vectors start at multiples of their length.
  bool throughBuffers = false; ///< extentOf also follows the ops of tiles that have a buffer.
  bool checkedLoads = true;    ///< False in loops where every lane is known to be inside every view.

  llvm::DenseSet<mlir::Operation *> firstReads,
      reads; ///< Loads that the current nest is the first to read; all loads read so far.
  std::set<std::vector<const void *>> limitsSeen; ///< The keys that unmaskedLimits has visited.
  /// Comparisons that are constant in unmasked loops, with the position of their evaluation. Empty: not constant.
  llvm::DenseMap<mlir::Operation *, std::vector<const void *>> assumed;

  Space pendingSpace;
  llvm::SmallVector<tile::ReduceOp> pending;

  int64_t scratchBytes = 0, scratchPeak = 0;
  llvm::SmallVector<mlir::Attribute> asserts, prints;
  ThreadMemory threads;
};

} // namespace kpkg::lower::cpu
