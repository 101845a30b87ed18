// Emits the C entry of a kernel, which unpacks the call record and loops over the blocks of the task.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before:
//   tile.kernel @f(%x: !tile.view<1xf32>, %s: f32) {...}
// After:
//   llvm.func @f(%call: !llvm.ptr, %begin: i64, %end: i64) -> i32 { ...; scf.for %block = %begin to %end {...};
//   llvm.return %status }
//
// See kernel_abi.h for the record's layout.
#include "dialect/lower/cpu/KernelEmitter.h"
#include "dialect/lower/cpu/LowerCpu.h"
#include "dialect/tile/ir/KernelAttributes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace kpkg::lower::cpu {

namespace record { // Byte offsets in KpkgCpuCall.
enum { args = 0, grid = 8, scratch = 32, print = 40, printContext = 48 };
}

KernelEmitter::KernelEmitter(tile::KernelOp kernel, const CpuTarget &target, const RowBatch &batch)
    : kernel(kernel), target(target), batch(batch), builder(kernel), loc(kernel.getLoc()), lanes(target.lanes()) {
  kernel.walk([&](Operation *op) {
    if (!isa<tile::StoreOp, tile::ScatterOp, tile::AtomicOp>(op))
      return;
    if (auto argument = dyn_cast<BlockArgument>(tile::argumentOf(op->getOperand(1))))
      writtenArguments.insert(argument.getArgNumber());
  });
}

LLVM::LLVMFuncOp KernelEmitter::makeFunction(StringRef name, Type result, ArrayRef<Type> arguments) {
  builder.setInsertionPoint(kernel);
  auto function =
      LLVM::LLVMFuncOp::create(builder, kernel.getLoc(), name, LLVM::LLVMFunctionType::get(result, arguments));
  function.setNoUnwind(true);
  entryBlock = function.addEntryBlock(builder);
  builder.setInsertionPointToStart(entryBlock);
  constants.clear();
  scalars.clear();
  views.clear();
  buffers.clear();
  fillLines.clear();
  return function;
}

static Value loadWord(OpBuilder &builder, Location loc, Value base, int64_t byte, Type type) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Value at = LLVM::GEPOp::create(builder, loc, pointer, builder.getI8Type(), base,
                                 ArrayRef<LLVM::GEPArg>{int32_t(byte)}, LLVM::GEPNoWrapFlags::inbounds);
  return LLVM::LoadOp::create(builder, loc, type, at, /*alignment=*/8, false, false, /*isInvariant=*/true);
}

/// Loads a word of the argument array as an index.
Value KernelEmitter::argumentWord(Value words, int64_t position) {
  Value word = loadWord(builder, loc, words, position * 8, builder.getI64Type());
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), word);
}

void KernelEmitter::bindArguments(Value words) {
  auto optional = kernel->getAttrOfType<DenseI64ArrayAttr>(tile::optionalArguments);
  auto isOptional = [&](int64_t number) { return optional && llvm::is_contained(optional.asArrayRef(), number); };
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  int64_t position = 0;
  for (BlockArgument argument : kernel.getBody().getArguments()) {
    auto type = dyn_cast<tile::ViewType>(argument.getType());
    if (!type) {
      Type element = registerType(argument.getType());
      Value value = argumentWord(words, position++);
      if (!element.isIndex()) {
        unsigned width = element.getIntOrFloatBitWidth();
        value = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), value);
        if (width < 64)
          value = arith::TruncIOp::create(builder, loc, builder.getIntegerType(width), value);
        if (isa<FloatType>(element))
          value = arith::BitcastOp::create(builder, loc, element, value);
      }
      scalars[argument] = value;
      continue;
    }
    View view;
    view.element = type.getElementType();
    view.unit = type.getUnit();
    view.pointer = loadWord(builder, loc, words, position++ * 8, pointer);
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      view.shape.push_back(argumentWord(words, position++));
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      view.stride.push_back(dim == view.unit ? (++position, indexConstant(1)) : argumentWord(words, position++));
    if (type.getRank() == 0) // An absent tensor.
      view.valid = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, view.pointer,
                                        LLVM::ZeroOp::create(builder, loc, pointer));
    if (isOptional(argument.getArgNumber()) && type.getRank() > 0)
      view.absent = compare(arith::CmpIPredicate::eq, view.shape[0], indexConstant(0));
    views[argument] = view;
  }
}

/// Emits `<symbol>$tiles`, which returns the product of the loop's trip counts, from the arguments alone.
LogicalResult KernelEmitter::emitTileCount(tile::ForTilesOp loop) {
  Type i64 = builder.getI64Type();
  std::string name = (kernel.getSymName() + tilesSuffix).str();
  LLVM::LLVMFuncOp function = makeFunction(name, i64, LLVM::LLVMPointerType::get(builder.getContext()));
  bindArguments(function.getArgument(0));
  for (Operation &op : *loop->getBlock()) {
    if (&op == loop.getOperation())
      break;
    auto isTile = llvm::IsaPred<TensorType>;
    if (llvm::any_of(op.getOperandTypes(), isTile) || llvm::any_of(op.getResultTypes(), isTile) || op.getNumRegions() ||
        isa<tile::LoadOp, tile::ScratchOp>(op))
      continue;
    if (isa<tile::BlockIdOp, tile::GridDimOp>(op))
      return error(&op, "a kernel with a loop over output tiles has no grid");
    // Values loaded from memory and a block's own memory are not available here. Neither is what is computed from them.
    if (!llvm::all_of(op.getOperands(), [&](Value operand) { return scalars.count(operand) || views.count(operand); }))
      continue;
    if (mlir::failed(emitScalarOp(op)))
      return failure();
  }
  Value total = indexConstant(1), zero = indexConstant(0);
  for (Value count : loop.getCounts()) {
    Value scalar = scalars.lookup(count);
    if (!scalar)
      return error(loop, "the number of output tiles must follow from shapes and scalar arguments");
    total = mul(total, smax(scalar, zero));
  }
  LLVM::ReturnOp::create(builder, loc, arith::IndexCastOp::create(builder, loc, i64, total).getResult());
  return success();
}

/// Emits a persistent kernel's loop body for one tile: the block number gives the coordinates, the last one fastest.
LogicalResult KernelEmitter::emitTileLoopBody(tile::ForTilesOp loop) {
  if (loop->getBlock() != &kernel.getBody().front())
    return error(loop, "a loop over output tiles inside of other control flow is not supported on the CPU yet");
  if (mlir::failed(prepareRegions(loop)))
    return failure();
  Value rest = blockIds[0];
  for (int dim = loop.getCounts().size(); dim-- > 0;) {
    Value count = scalars.at(loop.getCounts()[dim]);
    scalars[loop.getCoordinates()[dim]] = dim ? make<arith::RemUIOp>(rest, count) : rest;
    if (dim)
      rest = make<arith::DivUIOp>(rest, count);
  }
  return emitRegion(loop.getBody().front(), [](Operation *) { return success(); });
}

/// Opens the loops over the blocks [begin, end), in batches along x.
void KernelEmitter::openBlocks(Value begin, Value end, bool areTiles) {
  Value one = indexConstant(1);
  auto loop = [&](Value from, Value to, Value step) {
    auto blocks = scf::ForOp::create(builder, loc, from, to, step);
    builder.setInsertionPointToStart(blocks.getBody());
    return blocks.getInductionVar();
  };
  if (areTiles) {
    blockIds.assign(3, loop(begin, end, one));
    return;
  }
  if (batch.rows == 1) {
    Value block = loop(begin, end, one);
    Value line = make<arith::DivUIOp>(block, gridDims[0]);
    blockIds = {make<arith::RemUIOp>(block, gridDims[0]), make<arith::RemUIOp>(line, gridDims[1]),
                make<arith::DivUIOp>(line, gridDims[1])};
    return;
  }
  Value width = smax(gridDims[0], one); // An empty grid has no blocks, but the divisor must not be 0.
  Value line = loop(make<arith::DivUIOp>(begin, width), make<arith::CeilDivUIOp>(end, width), one);
  Value first = mul(line, width);
  Value stop = smin(sub(end, first), width);
  Value x = loop(smax(sub(begin, first), indexConstant(0)), stop, indexConstant(batch.rows));
  blockIds = {x, make<arith::RemUIOp>(line, gridDims[1]), make<arith::DivUIOp>(line, gridDims[1])};
  Value rowsEnd = smin(add(x, indexConstant(batch.rows)), stop);
  for (auto [number, dim] : batch.views) {
    Value &extent = views.at(kernel.getBody().getArgument(number)).shape[dim];
    extent = smin(extent, rowsEnd);
  }
}

/// Binds the arguments and the grid of a call record.
void KernelEmitter::bindCall(Value call) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  scratch = loadWord(builder, loc, call, record::scratch, pointer);
  printFunction = loadWord(builder, loc, call, record::print, pointer);
  printContext = loadWord(builder, loc, call, record::printContext, pointer);
  gridDims.clear();
  for (int axis = 0; axis < 3; ++axis) {
    Value dim = loadWord(builder, loc, call, record::grid + 8 * axis, builder.getI64Type());
    gridDims.push_back(arith::IndexCastOp::create(builder, loc, builder.getIndexType(), dim));
  }
  bindArguments(loadWord(builder, loc, call, record::args, pointer));
}

/// Makes the status of the task, and a location for accesses that must not happen, large enough for any element.
void KernelEmitter::makeStatus() {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Type i64 = builder.getI64Type(), i32 = builder.getI32Type();
  Value one = LLVM::ConstantOp::create(builder, loc, i64, 1);
  dummy = LLVM::AllocaOp::create(builder, loc, pointer, i64, one, 8);
  LLVM::StoreOp::create(builder, loc, LLVM::ConstantOp::create(builder, loc, i64, 0), dummy, 8);
  status = LLVM::AllocaOp::create(builder, loc, pointer, i32, one, 4);
  LLVM::StoreOp::create(builder, loc, LLVM::ConstantOp::create(builder, loc, i32, 0), status, 4);
}

/// Ends the kernel's entry, and describes it for the package.
void KernelEmitter::finishEntry(LLVM::LLVMFuncOp function) {
  builder.setInsertionPointToEnd(entryBlock);
  loc = kernel.getLoc();
  LLVM::ReturnOp::create(builder, loc, LLVM::LoadOp::create(builder, loc, builder.getI32Type(), status).getResult());
  function->setAttr(attributes::kernel, builder.getUnitAttr());
  function->setAttr(attributes::scratch, builder.getI64IntegerAttr(scratchPeak));
  if (threads.waits)
    function->setAttr(attributes::threads, builder.getI64IntegerAttr(threads.count * threads.cluster));
  function->setAttr(attributes::asserts, builder.getArrayAttr(asserts));
  function->setAttr(attributes::prints, builder.getArrayAttr(prints));
}

LogicalResult KernelEmitter::run() {
  if (tile::isOfThreads(kernel))
    return runThreads();
  if (!kernel.getBody().hasOneBlock())
    return error(kernel, "kernels with unstructured control flow are not supported on the CPU");
  Block &body = kernel.getBody().front();
  tile::ForTilesOp tiles;
  for (Operation &op : body) {
    auto loop = dyn_cast<tile::ForTilesOp>(op);
    bool effects = loop || isa<tile::StoreOp, tile::ScatterOp, tile::AtomicOp, tile::PrintOp, tile::AssertOp>(op);
    if (effects && tiles)
      return error(&op, "a loop over output tiles must be all that a kernel does: not supported on the CPU yet");
    if (loop)
      tiles = loop;
  }
  if (tiles) {
    for (Operation &op : body)
      if (isa<tile::StoreOp, tile::ScatterOp, tile::AtomicOp, tile::PrintOp, tile::AssertOp>(op))
        return error(&op, "a loop over output tiles must be all that a kernel does: not supported on the CPU yet");
    if (mlir::failed(emitTileCount(tiles)))
      return failure();
  }

  MLIRContext *context = builder.getContext();
  auto pointer = LLVM::LLVMPointerType::get(context);
  Type i64 = builder.getI64Type(), i32 = builder.getI32Type();
  LLVM::LLVMFuncOp function = makeFunction(kernel.getSymName(), i32, {pointer, i64, i64});
  bindCall(function.getArgument(0));
  makeStatus();
  Value begin = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), function.getArgument(1));
  Value end = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), function.getArgument(2));
  openBlocks(begin, end, bool(tiles));
  if (mlir::failed(emitBlock(body)))
    return failure();
  finishEntry(function);
  if (tiles)
    function->setAttr(attributes::persistent, builder.getUnitAttr());
  return success();
}

} // namespace kpkg::lower::cpu
