// Generates random kernels: choices, arguments, control flow and the frame of a kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KernelGenerator.h"

using namespace mlir;
using namespace kpkg;
using namespace kpkg::sim::test;

RandomKernel kpkg::sim::test::generateKernel(ModuleOp module, uint64_t seed, CallStyle style) {
  return KernelGenerator(module, seed, style).generate();
}

KernelGenerator::KernelGenerator(ModuleOp module, uint64_t seed, CallStyle style)
    : style(style), random(seed * 0x9E3779B97F4A7C15u + 1),
      b(module.getLoc(), OpBuilder::atBlockEnd(module.getBody())) {
  result.seed = seed;
  result.kernel = tile::KernelOp::create(b, "p" + std::to_string(seed), TypeRange());
  result.hasSpecialValues = chance(10);
  b.setInsertionPointToEnd(&result.kernel.getBody().front());
}

Type KernelGenerator::pickFloat() {
  int64_t choice = below(10);
  return choice < 5   ? Type(b.getF32Type())
         : choice < 7 ? Type(b.getBF16Type())
         : choice < 9 ? Type(b.getF16Type())
                      : Type(b.getF64Type());
}

Type KernelGenerator::pickInteger() {
  Type types[] = {b.getI32Type(), b.getIndexType(), b.getI64Type(), b.getI8Type(), b.getI16Type()};
  return pick(types);
}

int64_t KernelGenerator::pickExtent() {
  if (style == CallStyle::Vectors) {
    int64_t extents[] = {1, 1, 2, 4, 8, 8, 16, 16, 24, 32, 64, 80, 128, 256, 1024, 2048};
    return pick(extents);
  }
  int64_t extents[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31};
  return pick(extents);
}

int64_t KernelGenerator::pickDotExtent() { return std::min<int64_t>(pickExtent(), 64); }

Shape KernelGenerator::pickShape(int64_t rank) {
  Shape shape;
  int64_t count = 1;
  for (int64_t d = 0; d < rank; ++d) {
    shape.push_back(pickExtent());
    if ((count *= shape.back()) > mostElements()) {
      count /= shape.back();
      shape.back() = 1;
    }
  }
  return shape;
}

Known KernelGenerator::pickTile(function_ref<bool(const Known &)> accepts) {
  for (int attempt = 0; attempt < 6 && !tiles.empty(); ++attempt) {
    // Newer tiles are likelier, so that programs become deep instead of wide.
    int64_t back = std::min(below(tiles.size()), below(tiles.size()));
    const Known &tile = tiles[tiles.size() - 1 - back];
    if (accepts(tile))
      return tile;
  }
  return {};
}

Known KernelGenerator::add(Value value, double magnitude) {
  Known known{value, magnitude};
  if (isa<FloatType>(getElementTypeOrSelf(value)) && !result.hasSpecialValues && magnitude > 1000)
    known = {clamp(known, 50), 50};
  if (isa<RankedTensorType>(value.getType()))
    tiles.push_back(known);
  return known;
}

Value KernelGenerator::addIndex(Value x, int64_t y) { return y ? arith::AddIOp::create(b, x, index(y)) : x; }

Value KernelGenerator::constant(Type type, double value) {
  Type element = getElementTypeOrSelf(type);
  TypedAttr scalar =
      isa<FloatType>(element)
          ? TypedAttr(b.getFloatAttr(element, value))
          : TypedAttr(b.getIntegerAttr(element, element.isInteger(1) ? value > 0 : static_cast<int64_t>(value)));
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return arith::ConstantOp::create(b, DenseElementsAttr::get(tensor, Attribute(scalar)));
  return arith::ConstantOp::create(b, scalar);
}

Value KernelGenerator::clamp(Known tile, double limit) {
  Type type = tile.value.getType();
  Value low = arith::MaximumFOp::create(b, tile.value, constant(type, -limit));
  return arith::MinimumFOp::create(b, low, constant(type, limit));
}

/// Places a view in a buffer: any order of the dimensions, gaps, negative strides, and for inputs strides of 0.
ViewArgument KernelGenerator::layout(tile::ViewType type, Shape shape) {
  size_t rank = shape.size();
  if (style == CallStyle::Vectors) {
    int64_t vector = 16 / storageSize(type.getElementType());
    ViewArgument view{type, shape, Shape(rank, 1), chance(90) ? vector : 3, 0};
    int64_t step = 1;
    for (size_t d = rank; d-- > 0; step *= std::max<int64_t>(1, shape[d]))
      view.strides[d] = step;
    view.count = step + 2 * view.offset;
    return view;
  }
  auto order = llvm::to_vector(llvm::seq<size_t>(0, rank));
  if (chance(30))
    std::shuffle(order.begin(), order.end(), random);
  ViewArgument view{type, shape, Shape(rank, 1), 3, 0};
  int64_t step = chance(15) ? 2 : 1;
  for (size_t d : llvm::reverse(order)) {
    bool repeat = !type.getIsMut() && chance(5);
    view.strides[d] = repeat ? 0 : step;
    if (!repeat)
      step *= std::max<int64_t>(1, shape[d]) + (chance(20) ? between(1, 5) : 0);
    if (chance(8)) {
      view.offset += view.strides[d] * std::max<int64_t>(0, shape[d] - 1);
      view.strides[d] = -view.strides[d];
    }
  }
  view.count = step + 6; // Three elements before and after, which must not be accessed.
  return view;
}

Value KernelGenerator::newView(Type element, Shape shape, bool isMut) {
  auto type = tile::ViewType::get(shape.size(), element, isMut);
  result.arguments.push_back(layout(type, shape));
  Value view = result.kernel.getBody().front().addArgument(type, b.getLoc());
  if (!isMut)
    views.push_back(view);
  return view;
}

Value KernelGenerator::newScalar(Type type) {
  Cell value;
  if (isa<FloatType>(type))
    value.f = roundTo(static_cast<double>(between(-2000, 2000)) / 1000, type);
  else
    value.i = wrapTo(between(-9, 20), type);
  result.arguments.push_back(ScalarArgument{type, value});
  return result.kernel.getBody().front().addArgument(type, b.getLoc());
}

Value KernelGenerator::anyIndex() {
  switch (below(6)) {
  case 0:
    return index(between(-3, 9));
  case 1:
    return addIndex(blockNumber, between(-2, 2));
  case 2:
    return newScalar(b.getIndexType());
  case 3:
    if (!views.empty()) {
      Value view = pick(views);
      if (int64_t rank = cast<tile::ViewType>(view.getType()).getRank())
        return arith::MinSIOp::create(b, tile::DimOp::create(b, view, below(rank)), index(9));
    }
    return index(1);
  default:
    return pick(indices);
  }
}

Value KernelGenerator::condition() {
  arith::CmpIPredicate predicates[] = {arith::CmpIPredicate::slt, arith::CmpIPredicate::eq, arith::CmpIPredicate::ne,
                                       arith::CmpIPredicate::sge, arith::CmpIPredicate::ult};
  return arith::CmpIOp::create(b, pick(predicates), anyIndex(), anyIndex());
}

Value KernelGenerator::dropTo(Value view, int64_t rank) {
  int64_t have = cast<tile::ViewType>(view.getType()).getRank();
  if (have > 0 && chance(10)) {
    Value begin = chance(50) ? Value(index(0)) : anyIndex();
    view = tile::SliceOp::create(b, view, below(have), begin, chance(50) ? Value(index(between(0, 20))) : anyIndex());
  }
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, have));
  std::shuffle(dims.begin(), dims.end(), random);
  dims.resize(have - rank);
  llvm::sort(dims);
  SmallVector<Value> at;
  for (size_t i = 0; i < dims.size(); ++i)
    at.push_back(chance(60) ? Value(index(0)) : anyIndex());
  return dims.empty() ? view : Value(tile::DropOp::create(b, view, dims, at));
}

void KernelGenerator::elementwiseStep(Known x) {
  if (chance(15))
    return convert(x);
  if (chance(15))
    return compareAndSelect(x);
  if (x.element().isInteger(1))
    return boolBinary(x);
  if (!isa<FloatType>(x.element()))
    return integerBinary(x);
  if (storageSize(x.element()) == 1)
    return convert(x); // f8 is for memory.
  return chance(40) ? floatUnary(x) : floatBinary(x);
}

void KernelGenerator::step(int depth) {
  if (tiles.empty() || chance(10)) {
    Type element = chance(70) ? pickFloat() : chance(80) ? pickInteger() : Type(b.getI1Type());
    if (chance(4))
      element = chance(50) ? Type(Float8E4M3FNType::get(b.getContext())) : Type(Float8E5M2Type::get(b.getContext()));
    load(element, pickShape(between(1, 3)));
    return;
  }
  Known x = pickTile([](const Known &) { return true; });
  int64_t choice = below(100);
  if (choice < 48)
    elementwiseStep(x);
  else if (choice < 60)
    reshapeStep(x);
  else if (choice < 74)
    reduceStep(x);
  else if (choice < 79)
    functionStep(x);
  else if (choice < 82)
    scratchStep(x);
  else if (choice < 86)
    gather(chance(70) ? pickFloat() : pickInteger(), pickShape(between(1, 2)));
  else if (choice < 91)
    dotStep();
  else if (depth < 2 && choice < 95)
    forLoop(depth + 1);
  else if (depth < 2 && choice < 98)
    branch(depth + 1);
  else if (depth < 2)
    whileLoop(depth + 1);
}

void KernelGenerator::steps(int count, int depth) {
  while (count-- > 0)
    step(depth);
}

Value KernelGenerator::yieldFor(Known like, double magnitude) {
  for (const Known &tile : llvm::reverse(tiles))
    if (tile.value.getType() == like.value.getType() && (tile.value != like.value || chance(20))) {
      bool tooLarge = isa<FloatType>(tile.element()) && tile.magnitude > magnitude;
      return tooLarge ? clamp(tile, magnitude) : tile.value;
    }
  return like.value;
}

void KernelGenerator::forLoop(int depth) {
  Known carried[] = {pickTile([](const Known &) { return true; }), pickTile([](const Known &) { return true; })};
  size_t count = chance(50) ? 1 : 2;
  SmallVector<Value> inits;
  for (size_t i = 0; i < count; ++i) {
    if (!carried[i].value)
      return;
    inits.push_back(carried[i].value);
  }
  Value upper = chance(60) ? index(between(0, 4)) : Value(arith::MinSIOp::create(b, anyIndex(), index(4)));
  auto loop = scf::ForOp::create(b, index(chance(80) ? 0 : 1), upper, index(chance(80) ? 1 : 2), inits);
  size_t outside = tiles.size(), outsideIndices = indices.size(), outsideViews = views.size();
  double magnitudes[2];
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    indices.push_back(loop.getInductionVar());
    for (size_t i = 0; i < count; ++i) {
      bool isFloat = isa<FloatType>(carried[i].element());
      magnitudes[i] = isFloat ? std::max(4.0, carried[i].magnitude) : INFINITY;
      tiles.push_back({loop.getRegionIterArg(i), magnitudes[i]});
    }
    steps(between(2, 4), depth);
    SmallVector<Value> yields;
    for (size_t i = 0; i < count; ++i)
      yields.push_back(yieldFor({loop.getRegionIterArg(i), magnitudes[i]}, magnitudes[i]));
    scf::YieldOp::create(b, yields);
  }
  tiles.resize(outside);
  indices.resize(outsideIndices);
  views.resize(std::max(outsideViews, views.size())); // Views are arguments: they stay.
  for (size_t i = 0; i < count; ++i)
    tiles.push_back({loop.getResult(i), magnitudes[i]});
}

void KernelGenerator::branch(int depth) {
  Known like = pickTile([](const Known &) { return true; });
  Value holds = condition();
  auto op = scf::IfOp::create(b, TypeRange(like.value.getType()), holds, /*withElseRegion=*/true);
  double magnitude = isa<FloatType>(like.element()) ? std::max(4.0, like.magnitude) : INFINITY;
  for (Block *block : {op.thenBlock(), op.elseBlock()}) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(block);
    size_t outside = tiles.size();
    steps(between(0, 3), depth);
    scf::YieldOp::create(b, yieldFor(like, magnitude));
    tiles.resize(outside);
  }
  tiles.push_back({op.getResult(0), magnitude});
}

void KernelGenerator::whileLoop(int depth) {
  Known init = pickTile([](const Known &) { return true; });
  double magnitude = isa<FloatType>(init.element()) ? std::max(4.0, init.magnitude) : INFINITY;
  SmallVector<Type> types = {b.getIndexType(), init.value.getType()};
  Value bound = arith::MinSIOp::create(b, anyIndex(), index(4));
  auto loop = scf::WhileOp::create(b, types, ValueRange{index(0), init.value});
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Location> locations(2, b.getLoc());
  Block *before = b.createBlock(&loop.getBefore(), {}, types, locations);
  Value goOn = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, before->getArgument(0), bound);
  scf::ConditionOp::create(b, goOn, before->getArguments());
  Block *after = b.createBlock(&loop.getAfter(), {}, types, locations);
  size_t outside = tiles.size();
  tiles.push_back({after->getArgument(1), magnitude});
  steps(between(1, 3), depth);
  Value next = yieldFor({after->getArgument(1), magnitude}, magnitude);
  scf::YieldOp::create(b, ValueRange{addIndex(after->getArgument(0), 1), next});
  tiles.resize(outside);
  tiles.push_back({loop.getResult(1), magnitude});
}

RandomKernel KernelGenerator::generate() {
  auto body = [&] {
    indices = {index(0), blockNumber};
    steps(between(4, 14), 0);
    // Values without other uses, newest first, so that little of the program is dead.
    int left = 4;
    std::vector<Known> made = tiles;
    for (const Known &x : llvm::reverse(made))
      if (left > 0 && x.value.use_empty() && left-- > 0)
        chance(12) ? scatter(x) : store(x);
  };
  if (chance(12)) { // Persistent.
    result.grid = {1, 1, 1};
    int64_t rows = between(0, 3), columns = between(1, 3);
    blocks = rows * columns;
    Value countRows = index(rows);
    auto loop = tile::ForTilesOp::create(b, ValueRange{countRows, index(columns)});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&loop.getBody().front());
    Value row = arith::MulIOp::create(b, loop.getCoordinates()[0], index(columns));
    blockNumber = arith::AddIOp::create(b, row, loop.getCoordinates()[1]);
    body();
  } else {
    result.grid = {between(1, 3), chance(30) ? 2 : 1, chance(10) ? 2 : 1};
    blocks = result.grid[0] * result.grid[1] * result.grid[2];
    Value x = tile::BlockIdOp::create(b, tile::GridAxis::x), y = tile::BlockIdOp::create(b, tile::GridAxis::y);
    Value z = tile::BlockIdOp::create(b, tile::GridAxis::z);
    Value width = tile::GridDimOp::create(b, tile::GridAxis::x), height = tile::GridDimOp::create(b, tile::GridAxis::y);
    Value plane = arith::AddIOp::create(b, arith::MulIOp::create(b, z, height), y);
    blockNumber = arith::AddIOp::create(b, arith::MulIOp::create(b, plane, width), x);
    body();
  }
  b.setInsertionPointToEnd(&result.kernel.getBody().front());
  tile::ReturnOp::create(b);
  result.kernel.setFunctionType(b.getFunctionType(result.kernel.getBody().getArgumentTypes(), {}));
  return result;
}
