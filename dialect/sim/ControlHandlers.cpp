// Handles scf, the grid, the persistent loop, print and assert.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/sim/Frame.h"
#include "dialect/tile/ir/CheckedPrint.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace kpkg;
using namespace kpkg::sim;

/// Binds `to` to the values of `from` in parallel, because they may overlap in a loop.
static void bind(Frame &frame, ValueRange to, ValueRange from) {
  SmallVector<Tile> copies;
  for (Value value : from)
    copies.push_back(frame.tile(value));
  for (auto [value, copy] : llvm::zip_equal(to, copies))
    frame.set(value, std::move(copy));
}

static llvm::Error runFor(Frame &frame, Operation &op) {
  auto loop = cast<scf::ForOp>(op);
  int64_t lower = frame.integer(loop.getLowerBound()), upper = frame.integer(loop.getUpperBound());
  int64_t step = frame.integer(loop.getStep());
  if (step <= 0)
    return frame.error(op, "step " + llvm::Twine(step) + " is not positive");
  bind(frame, loop.getRegionIterArgs(), loop.getInitArgs());
  for (int64_t i = lower; i < upper; i += step) {
    frame.setInteger(loop.getInductionVar(), i);
    if (llvm::Error failed = frame.runBlock(*loop.getBody()))
      return failed;
    if (llvm::Error exceeded = frame.count(op, 1))
      return exceeded;
    bind(frame, loop.getRegionIterArgs(), loop.getYieldedValues());
    if (step > upper - i)
      break; // i + step would exceed the bound, and could wrap.
  }
  bind(frame, loop.getResults(), loop.getRegionIterArgs());
  return llvm::Error::success();
}

static llvm::Error runIf(Frame &frame, Operation &op) {
  auto branch = cast<scf::IfOp>(op);
  Block *taken = frame.integer(branch.getCondition()) ? branch.thenBlock() : branch.elseBlock();
  if (!taken)
    return llvm::Error::success();
  if (llvm::Error failed = frame.runBlock(*taken))
    return failed;
  bind(frame, branch.getResults(), taken->getTerminator()->getOperands());
  return llvm::Error::success();
}

static llvm::Error runWhile(Frame &frame, Operation &op) {
  auto loop = cast<scf::WhileOp>(op);
  bind(frame, loop.getBeforeArguments(), loop.getInits());
  while (true) {
    if (llvm::Error failed = frame.runBlock(*loop.getBeforeBody()))
      return failed;
    if (llvm::Error exceeded = frame.count(op, 1))
      return exceeded;
    scf::ConditionOp condition = loop.getConditionOp();
    if (!frame.integer(condition.getCondition())) {
      bind(frame, loop.getResults(), condition.getArgs());
      return llvm::Error::success();
    }
    bind(frame, loop.getAfterArguments(), condition.getArgs());
    if (llvm::Error failed = frame.runBlock(*loop.getAfterBody()))
      return failed;
    bind(frame, loop.getBeforeArguments(), loop.getYieldOp().getOperands());
  }
}

/// Runs iteration i in block i modulo the number of blocks, so that one run of the grid covers all iterations.
static llvm::Error runForTiles(Frame &frame, Operation &op) {
  auto loop = cast<tile::ForTilesOp>(op);
  SmallVector<int64_t> counts;
  int64_t total = 1;
  for (Value count : loop.getCounts()) {
    counts.push_back(std::max<int64_t>(0, frame.integer(count)));
    if (llvm::MulOverflow(total, counts.back(), total))
      return frame.error(op, "the number of tiles overflows");
  }
  int64_t blocks = frame.grid[0] * frame.grid[1] * frame.grid[2];
  int64_t first = frame.block[0] + frame.grid[0] * (frame.block[1] + frame.grid[1] * frame.block[2]);
  for (int64_t iteration = first; iteration < total; iteration += blocks) {
    int64_t rest = iteration;
    for (size_t d = counts.size(); d-- > 0; rest /= counts[d])
      frame.setInteger(loop.getCoordinates()[d], rest % counts[d]);
    if (llvm::Error failed = frame.runBlock(loop.getBody().front()))
      return failed;
  }
  return llvm::Error::success();
}

static llvm::Error blockId(Frame &frame, Operation &op) {
  frame.setInteger(op.getResult(0), frame.block[static_cast<int>(cast<tile::BlockIdOp>(op).getAxis())]);
  return llvm::Error::success();
}

static llvm::Error gridDim(Frame &frame, Operation &op) {
  frame.setInteger(op.getResult(0), frame.grid[static_cast<int>(cast<tile::GridDimOp>(op).getAxis())]);
  return llvm::Error::success();
}

static llvm::Error print(Frame &frame, Operation &op) {
  auto print = cast<tile::PrintOp>(op);
  if (mlir::StringAttr message = tile::checkOf(print)) {
    bool holds = llvm::all_of(frame.tile(print.getValues().front()).cells, [](Cell cell) { return cell.i != 0; });
    return holds ? llvm::Error::success() : frame.error(op, message.getValue());
  }
  if (!frame.options.print)
    return llvm::Error::success();
  std::string text;
  llvm::raw_string_ostream stream(text);
  StringRef rest = print.getFormat();
  for (Value value : print.getValues()) {
    auto [before, after] = rest.split("{}");
    rest = after;
    stream << before;
    const Tile &tile = frame.tile(value);
    if (!tile.shape.empty())
      stream << "[";
    llvm::interleaveComma(tile.cells, stream, [&](Cell cell) {
      if (isFloat(tile.type))
        stream << llvm::format("%g", cell.f);
      else if (tile.type.isInteger(1))
        stream << (cell.i ? "True" : "False");
      else
        stream << cell.i;
    });
    if (!tile.shape.empty())
      stream << "]";
  }
  stream << rest;
  frame.options.print(text);
  return llvm::Error::success();
}

static llvm::Error check(Frame &frame, Operation &op) {
  auto check = cast<tile::AssertOp>(op);
  if (llvm::all_of(frame.tile(check.getCondition()).cells, [](Cell cell) { return cell.i != 0; }))
    return llvm::Error::success();
  return frame.error(op, check.getMessage());
}

void kpkg::sim::addControlHandlers(HandlerTable &table) {
  table["scf.for"] = runFor;
  table["scf.if"] = runIf;
  table["scf.while"] = runWhile;
  table["tile.for_tiles"] = runForTiles;
  table["tile.block_id"] = blockId;
  table["tile.grid_dim"] = gridDim;
  table["tile.print"] = print;
  table["tile.assert"] = check;
}
