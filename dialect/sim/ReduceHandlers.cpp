// Handles reductions, scans and the matrix product.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/sim/Elementwise.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <cmath>

using namespace mlir;
using namespace kpkg;
using namespace kpkg::sim;

/// Combines elements [begin, end) by `combine(a, b)` in the order of the options.
template <typename T, typename Get, typename Combine>
static llvm::Expected<T> fold(SumOrder order, int64_t begin, int64_t end, const Get &get, const Combine &combine) {
  if (order == SumOrder::Pairwise && end - begin > 1) {
    int64_t middle = begin + (end - begin) / 2;
    llvm::Expected<T> low = fold<T>(order, begin, middle, get, combine);
    if (!low)
      return low.takeError();
    llvm::Expected<T> high = fold<T>(order, middle, end, get, combine);
    if (!high)
      return high.takeError();
    return combine(*low, *high);
  }
  bool backward = order == SumOrder::Backward;
  T total = get(backward ? end - 1 : begin);
  for (int64_t i = 1; i < end - begin; ++i) {
    llvm::Expected<T> next = combine(total, get(backward ? end - 1 - i : begin + i));
    if (!next)
      return next.takeError();
    total = *next;
  }
  return total;
}

/// An axis of a tile: element k of line (outer, inner) is cell (outer * extent + k) * inner count + inner.
struct Axis {
  int64_t outer = 1, extent, inner = 1;
  Axis(ArrayRef<int64_t> shape, int64_t axis) : extent(shape[axis]) {
    for (int64_t d = 0; d < axis; ++d)
      outer *= shape[d];
    for (size_t d = axis + 1; d < shape.size(); ++d)
      inner *= shape[d];
  }
  int64_t lines() const { return outer * inner; }
  int64_t cell(int64_t line, int64_t k) const { return (line / inner * extent + k) * inner + line % inner; }
};

/// Returns whether an extremum of zeros of both signs is -0. Another correct implementation may return the other zero.
static bool takesNegativeZero(tile::ReduceKind kind, Perturbation perturbation) {
  switch (perturbation) {
  case Perturbation::None:
  case Perturbation::Random:
    return kind == tile::ReduceKind::Min;
  case Perturbation::Up:
    return false;
  case Perturbation::Down:
    return true;
  }
  llvm_unreachable("all perturbations are listed");
}

static double floatReduce(tile::ReduceKind kind, double a, double b, Perturbation perturbation) {
  switch (kind) {
  case tile::ReduceKind::Sum:
    return a + b;
  case tile::ReduceKind::Prod:
    return a * b;
  default:
    break;
  }
  if (std::isnan(a) || std::isnan(b))
    return NAN;
  bool max = kind == tile::ReduceKind::Max;
  if (a == b)
    return std::signbit(a) == takesNegativeZero(kind, perturbation) ? a : b;
  return max ? std::max(a, b) : std::min(a, b);
}

/// Returns a bound on the effect of the order of a float reduction.
static double errorOf(tile::ReduceKind kind, const Tile &source, const Axis &axis, int64_t line, double total) {
  double magnitude = 0;
  if (kind == tile::ReduceKind::Sum)
    for (int64_t k = 0; k < axis.extent; ++k)
      magnitude += std::abs(source.cells[axis.cell(line, k)].f);
  else if (kind == tile::ReduceKind::Prod)
    magnitude = std::abs(total);
  return magnitude * static_cast<double>(axis.extent - 1) * Frame::roundoff(source.type);
}

static int64_t integerReduce(tile::ReduceKind kind, int64_t a, int64_t b, Type type) {
  bool unsignedLess = unsignedOf(a, type) < unsignedOf(b, type);
  switch (kind) {
    using enum tile::ReduceKind;
  case Sum:
    return wrapTo(int64_t(uint64_t(a) + uint64_t(b)), type);
  case Prod:
    return wrapTo(int64_t(uint64_t(a) * uint64_t(b)), type);
  case Max:
    return std::max(a, b);
  case Min:
    return std::min(a, b);
  case UMax:
    return unsignedLess ? b : a;
  case UMin:
    return unsignedLess ? a : b;
  case And:
    return a & b;
  case Or:
    return a | b;
  }
  llvm_unreachable("all kinds are listed");
}

llvm::Expected<Tile> kpkg::sim::reduced(Frame &frame, Operation &op, const Tile &source, tile::ReduceKind kind,
                                        int64_t dim) {
  Tile result{source.type, source.shape, {}};
  result.shape[dim] = 1;
  Axis axis(source.shape, dim);
  result.cells.resize(axis.lines());
  if (llvm::Error exceeded = frame.count(op, source.size()))
    return exceeded;
  Type type = source.type;
  // Floats narrower than f32 are reduced in f32 and rounded at the end.
  Type wide = isFloat(type) && !type.isF64() ? Float32Type::get(op.getContext()) : type;
  auto combine = [&](Cell a, Cell b) -> llvm::Expected<Cell> {
    if (isFloat(type))
      return Cell{.f = frame.result(floatReduce(kind, a.f, b.f, frame.options.perturbation), wide)};
    return Cell{.i = integerReduce(kind, a.i, b.i, type)};
  };
  for (int64_t line = 0; line < axis.lines(); ++line) {
    llvm::Expected<Cell> total = fold<Cell>(
        frame.options.sumOrder, 0, axis.extent, [&](int64_t k) { return source.cells[axis.cell(line, k)]; }, combine);
    if (!total)
      return total.takeError();
    double error = isFloat(type) ? errorOf(kind, source, axis, line, total->f) : 0;
    result.cells[line] = isFloat(type) ? Cell{.f = frame.result(frame.inexact(total->f, error), type)} : *total;
  }
  return result;
}

static llvm::Error reduce(Frame &frame, Operation &op) {
  auto reduce = cast<tile::ReduceOp>(op);
  llvm::Expected<Tile> result = reduced(frame, op, frame.tile(reduce.getValue()), reduce.getKind(), reduce.getAxis());
  if (!result)
    return result.takeError();
  frame.set(reduce.getResult(), std::move(*result));
  return llvm::Error::success();
}

/// Returns whether `candidate` is more extreme than `best` in the order of `kind`. The first NaN precedes all values.
static bool isBetter(tile::ArgReduceKind kind, Cell candidate, Cell best, Type type) {
  if (isFloat(type)) {
    if (std::isnan(best.f) || std::isnan(candidate.f))
      return !std::isnan(best.f);
    return kind == tile::ArgReduceKind::Max ? candidate.f > best.f : candidate.f < best.f;
  }
  switch (kind) {
    using enum tile::ArgReduceKind;
  case Max:
    return candidate.i > best.i;
  case Min:
    return candidate.i < best.i;
  case UMax:
    return unsignedOf(candidate.i, type) > unsignedOf(best.i, type);
  case UMin:
    return unsignedOf(candidate.i, type) < unsignedOf(best.i, type);
  }
  llvm_unreachable("all kinds are listed");
}

static llvm::Error argReduce(Frame &frame, Operation &op) {
  auto reduce = cast<tile::ArgReduceOp>(op);
  const Tile &source = frame.tile(reduce.getValue());
  Tile result = Tile::ofType(reduce.getType());
  Axis axis(source.shape, reduce.getAxis());
  if (llvm::Error exceeded = frame.count(op, source.size()))
    return exceeded;
  for (int64_t line = 0; line < axis.lines(); ++line) {
    int64_t best = 0;
    for (int64_t k = 1; k < axis.extent; ++k)
      if (isBetter(reduce.getKind(), source.cells[axis.cell(line, k)], source.cells[axis.cell(line, best)],
                   source.type))
        best = k;
    result.cells[line].i = best;
  }
  frame.set(reduce.getResult(), std::move(result));
  return llvm::Error::success();
}

/// Returns whether a function body computes floats beyond selecting among its arguments. The order of calls then
/// affects the result.
static bool roundsInBody(Block &body) {
  return llvm::any_of(body.without_terminator(), [](Operation &op) {
    return !isa<arith::SelectOp, arith::MaximumFOp, arith::MinimumFOp, arith::ConstantOp>(op) &&
           llvm::any_of(op.getResultTypes(), llvm::IsaPred<FloatType>);
  });
}

/// Calls the body of a combine or scan: (lhs.., rhs..) -> one cell per input.
static llvm::Expected<SmallVector<Cell>> call(Frame &frame, Block &body, ArrayRef<Cell> lhs, ArrayRef<Cell> rhs) {
  for (auto [index, argument] : llvm::enumerate(body.getArguments())) {
    Cell cell = index < lhs.size() ? lhs[index] : rhs[index - lhs.size()];
    frame.set(argument, Tile::scalar(argument.getType(), cell));
  }
  if (llvm::Error failed = frame.runBlock(body))
    return failed;
  SmallVector<Cell> results;
  bool rounds = frame.options.perturbation != Perturbation::None && roundsInBody(body);
  for (Value value : body.getTerminator()->getOperands()) {
    Cell cell = frame.tile(value).cells[0];
    if (rounds && isFloat(value.getType()))
      cell.f = frame.result(frame.inexact(cell.f, 2 * std::abs(cell.f) * Frame::roundoffOf(value.getType())),
                            value.getType());
    results.push_back(cell);
  }
  return results;
}

static SmallVector<Cell> cellsAt(const Frame &frame, ValueRange inputs, int64_t cell) {
  SmallVector<Cell> cells;
  for (Value input : inputs)
    cells.push_back(frame.tile(input).cells[cell]);
  return cells;
}

static llvm::Error combine(Frame &frame, Operation &op) {
  auto combine = cast<tile::CombineOp>(op);
  Axis axis(frame.tile(combine.getInputs()[0]).shape, combine.getAxis());
  SmallVector<Tile> results;
  for (Value output : combine.getOutputs())
    results.push_back(Tile::ofType(output.getType()));
  auto apply = [&](ArrayRef<Cell> a, ArrayRef<Cell> b) { return call(frame, combine.getBody().front(), a, b); };
  SmallVector<Cell> inits = cellsAt(frame, combine.getInits(), 0);
  for (int64_t line = 0; line < axis.lines(); ++line) {
    auto get = [&](int64_t k) { return k < 0 ? inits : cellsAt(frame, combine.getInputs(), axis.cell(line, k)); };
    llvm::Expected<SmallVector<Cell>> total =
        fold<SmallVector<Cell>>(frame.options.sumOrder, -1, axis.extent, get, apply);
    if (!total)
      return total.takeError();
    for (auto [result, cell] : llvm::zip_equal(results, *total))
      result.cells[line] = cell;
  }
  for (auto [output, result] : llvm::zip_equal(combine.getOutputs(), results))
    frame.set(output, std::move(result));
  return llvm::Error::success();
}

static llvm::Error scan(Frame &frame, Operation &op) {
  auto scan = cast<tile::ScanOp>(op);
  Axis axis(frame.tile(scan.getInputs()[0]).shape, scan.getAxis());
  SmallVector<Tile> results;
  for (Value output : scan.getOutputs())
    results.push_back(Tile::ofType(output.getType()));
  for (int64_t line = 0; line < axis.lines(); ++line) {
    SmallVector<Cell> running;
    for (int64_t k = 0; k < axis.extent; ++k) {
      SmallVector<Cell> element = cellsAt(frame, scan.getInputs(), axis.cell(line, k));
      if (k == 0) {
        running = element;
      } else {
        llvm::Expected<SmallVector<Cell>> next = call(frame, scan.getBody().front(), running, element);
        if (!next)
          return next.takeError();
        running = *next;
      }
      for (auto [result, cell] : llvm::zip_equal(results, running))
        result.cells[axis.cell(line, k)] = cell;
    }
  }
  for (auto [output, result] : llvm::zip_equal(scan.getOutputs(), results))
    frame.set(output, std::move(result));
  return llvm::Error::success();
}

/// Rounds an f32 to the 10 bits of mantissa that tf32 keeps.
static double roundToTF32(double value) {
  if (!std::isfinite(value) || value == 0)
    return value;
  int quantum = std::max(std::ilogb(value), -126) - 10;
  return std::ldexp(std::nearbyint(std::ldexp(value, -quantum)), quantum);
}

/// Expands a 2:4 sparse operand to all of its elements, as tile.dot defines it.
static Tile spread(const Tile &kept, const Tile &positions) {
  Tile all = kept;
  all.shape[1] *= 2;
  all.cells.assign(2 * kept.cells.size(), Cell());
  for (size_t i = 0; i < kept.cells.size(); ++i)
    all.cells[i / 2 * 4 + (uint64_t(positions.cells[i / 8].i) >> (i % 8 * 2) & 3)] = kept.cells[i];
  return all;
}

static llvm::Error dot(Frame &frame, Operation &op) {
  auto dot = cast<tile::DotOp>(op);
  const Tile lhs =
      dot.getPositions() ? spread(frame.tile(dot.getLhs()), frame.tile(dot.getPositions())) : frame.tile(dot.getLhs());
  const Tile &rhs = frame.tile(dot.getRhs());
  Tile result = frame.tile(dot.getAccumulator());
  size_t rank = lhs.shape.size();
  int64_t batches = rank == 3 ? lhs.shape[0] : 1;
  int64_t rows = lhs.shape[rank - 2], inner = lhs.shape[rank - 1], columns = rhs.shape[rank - 1];
  if (llvm::Error exceeded = frame.count(op, batches * rows * columns * inner))
    return exceeded;
  bool narrow = dot.getPrecision() == tile::DotPrecision::TF32 && !frame.options.inDouble;
  bool isFloatDot = isFloat(lhs.type);
  auto operand = [&](Cell cell) { return narrow ? roundToTF32(cell.f) : cell.f; };
  auto add = [&](Cell a, Cell b) -> llvm::Expected<Cell> {
    if (isFloatDot)
      return Cell{.f = frame.result(a.f + b.f, result.type)};
    return Cell{.i = wrapTo(a.i + b.i, result.type)};
  };
  for (int64_t i = 0; i < result.size(); ++i) {
    int64_t row = i / columns, column = i % columns, batch = row / rows;
    auto term = [&](int64_t k) {
      if (k < 0)
        return result.cells[i];
      Cell a = lhs.cells[row * inner + k], b = rhs.cells[(batch * inner + k) * columns + column];
      if (!isFloatDot)
        return Cell{.i = a.i * b.i};
      return Cell{.f = frame.result(operand(a) * operand(b), result.type)};
    };
    llvm::Expected<Cell> total = fold<Cell>(frame.options.sumOrder, -1, inner, term, add);
    if (!total)
      return total.takeError();
    if (isFloatDot && frame.options.perturbation != Perturbation::None) {
      double magnitude = 0;
      for (int64_t k = -1; k < inner; ++k)
        magnitude += std::abs(term(k).f);
      double error = magnitude * static_cast<double>(inner + 1) * Frame::roundoff(result.type);
      if (narrow) // An implementation may keep all bits of both operands.
        error += magnitude * 0x1p-10;
      total->f = frame.result(frame.inexact(total->f, error), result.type);
    }
    result.cells[i] = *total;
  }
  frame.set(dot.getResult(), std::move(result));
  return llvm::Error::success();
}

void kpkg::sim::addReduceHandlers(HandlerTable &table) {
  table["tile.reduce"] = reduce;
  table["tile.arg_reduce"] = argReduce;
  table["tile.combine"] = combine;
  table["tile.scan"] = scan;
  table["tile.dot"] = dot;
}
