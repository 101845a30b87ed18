// Generates random memory ops, reshapes, reductions, functions along an axis, and dots.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KernelGenerator.h"
#include <cmath>

using namespace mlir;
using namespace kpkg;
using namespace kpkg::sim::test;

/// Returns the magnitude of inputs: floats in [-2, 2], integers of any bits, small ones for index.
static double inputMagnitude(Type element) { return isa<FloatType>(element) ? 2 : INFINITY; }

Known KernelGenerator::load(Type element, Shape shape) {
  int64_t rank = shape.size();
  Shape extents;
  int64_t exact = style == CallStyle::Vectors ? 85 : 40; // In percent.
  for (int64_t extent : shape)
    extents.push_back(std::max<int64_t>(0, chance(exact) ? extent : extent * between(1, 2) + between(-3, 3)));
  for (int64_t extra = chance(20) ? between(1, 2) : 0; extra > 0; --extra)
    extents.insert(extents.begin() + below(extents.size() + 1), between(1, 4));
  Value view;
  // Reading an existing input again tests as much as a new one.
  if (chance(30))
    for (Value old : views)
      if (auto type = cast<tile::ViewType>(old.getType()); type.getRank() >= rank && type.getElementType() == element)
        view = old;
  view = dropTo(view ? view : newView(element, extents, false), rank);
  SmallVector<Value> offsets;
  for (int64_t extent : shape)
    offsets.push_back(chance(50)   ? Value(index(0))
                      : chance(50) ? Value(arith::MulIOp::create(b, anyIndex(), index(extent)))
                                   : anyIndex());
  Value fill =
      constant(element, chance(50) ? 0 : static_cast<double>(between(-3, 3)) / (isa<FloatType>(element) ? 2 : 1));
  Value loaded = tile::LoadOp::create(b, RankedTensorType::get(shape, element), view, offsets, fill);
  return add(loaded, inputMagnitude(element));
}

Value KernelGenerator::indexTile(ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, b.getIndexType());
  Value total = tile::SplatOp::create(b, type, anyIndex());
  for (size_t d = 0; d < shape.size(); ++d) {
    Value iota = tile::IotaOp::create(b, shape[d]);
    SmallVector<int64_t> line(shape.size(), 1);
    line[d] = shape[d];
    Value shaped = tile::ReshapeOp::create(b, RankedTensorType::get(line, b.getIndexType()), iota);
    Value wide = tile::BroadcastOp::create(b, type, shaped);
    Value scaled = arith::MulIOp::create(b, wide, constant(type, static_cast<double>(between(-2, 3))));
    total = arith::AddIOp::create(b, total, scaled);
  }
  return total;
}

Known KernelGenerator::gather(Type element, Shape shape) {
  int64_t rank = between(1, 2);
  Shape extents;
  for (int64_t d = 0; d < rank; ++d)
    extents.push_back(between(1, 20));
  Value view = newView(element, extents, false);
  SmallVector<Value> coordinates;
  for (int64_t d = 0; d < rank; ++d)
    coordinates.push_back(indexTile(shape));
  Value mask;
  if (chance(50)) {
    Value bound = constant(coordinates[0].getType(), static_cast<double>(between(0, 8)));
    mask = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, coordinates[0], bound);
  }
  Value fill = constant(element, static_cast<double>(between(-2, 2)));
  auto type = RankedTensorType::get(shape, element);
  return add(tile::GatherOp::create(b, type, view, coordinates, fill, mask), inputMagnitude(element));
}

Known KernelGenerator::match(Type element, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, element);
  if (chance(75)) {
    Known fits = pickTile([&](const Known &tile) {
      return tile.element() == element && tile.shape().size() == shape.size() &&
             llvm::all_of(llvm::zip(tile.shape(), shape),
                          [](auto pair) { return std::get<0>(pair) == 1 || std::get<0>(pair) == std::get<1>(pair); });
    });
    if (fits.value && fits.shape() == shape)
      return fits;
    if (fits.value)
      return add(tile::BroadcastOp::create(b, type, fits.value), fits.magnitude);
  }
  if (chance(25))
    return {constant(type, static_cast<double>(between(-4, 4)) / (isa<FloatType>(element) ? 2 : 1)), 4};
  if (chance(25) && !element.isInteger(1) && (!isa<FloatType>(element) || storageSize(element) > 1)) {
    Value scalar = newScalar(element);
    return add(tile::SplatOp::create(b, type, scalar), isa<FloatType>(element) ? 2 : 20);
  }
  return load(element, Shape(shape));
}

/// Takes any elements at equal distances, forwards or backwards.
void KernelGenerator::extractStep(Known x) {
  Shape sizes, offsets, steps;
  for (int64_t extent : x.shape()) {
    int64_t size = chance(40) ? extent : between(1, extent);
    int64_t step = size == 1 ? 1 : between(1, (extent - 1) / (size - 1));
    int64_t reach = step * (size - 1), offset = between(0, extent - 1 - reach);
    bool isBackwards = chance(25);
    sizes.push_back(size);
    offsets.push_back(isBackwards ? offset + reach : offset);
    steps.push_back(isBackwards ? -step : step);
  }
  add(tile::ExtractOp::create(b, RankedTensorType::get(sizes, x.element()), x.value, offsets, steps), x.magnitude);
}

/// Reads one element as a number, and fills a tile with it.
void KernelGenerator::scalarStep(Known x) {
  if (x.element().isInteger(1) || (isa<FloatType>(x.element()) && storageSize(x.element()) == 1))
    return extractStep(x);
  Shape ones(x.shape().size(), 1), offsets;
  for (int64_t extent : x.shape())
    offsets.push_back(below(extent));
  Value one = tile::ExtractOp::create(b, RankedTensorType::get(ones, x.element()), x.value, offsets, ones);
  Value number = tile::ScalarOp::create(b, x.element(), one);
  add(tile::SplatOp::create(b, x.type(), number), x.magnitude);
}

/// Joins the tile with itself and with others of perhaps other extents along the axis.
void KernelGenerator::joinStep(Known x) {
  int64_t axis = below(x.shape().size());
  SmallVector<Value> parts = {x.value};
  double magnitude = x.magnitude;
  int64_t elements = x.type().getNumElements();
  for (int64_t i = 0, count = between(1, 3); i < count; ++i) {
    Shape shape(x.shape());
    if (chance(40))
      shape[axis] = between(1, shape[axis]);
    elements += ShapedType::getNumElements(shape);
    if (elements > mostElements())
      break;
    Known part = chance(30) && shape == x.shape() ? x : match(x.element(), shape);
    parts.push_back(part.value);
    magnitude = std::max(magnitude, part.magnitude);
  }
  std::shuffle(parts.begin(), parts.end(), random);
  add(tile::JoinOp::create(b, parts, axis), magnitude);
}

/// Takes fields of a few bits out of integers.
void KernelGenerator::unpackStep(Known x) {
  auto word = dyn_cast<IntegerType>(x.element());
  int64_t bits = int64_t(1) << below(3);
  if (!word || word.getWidth() < 8 || x.type().getNumElements() * (word.getWidth() / bits) > mostElements())
    return joinStep(x);
  Shape shape(x.shape());
  shape.back() *= word.getWidth() / bits;
  bool isFloat = bits == 4 && chance(50), isSigned = !isFloat && chance(50);
  auto type = RankedTensorType::get(shape, isFloat ? mlir::Type(b.getF16Type()) : mlir::Type(b.getI8Type()));
  add(tile::UnpackOp::create(b, type, x.value, bits, isSigned, isFloat), static_cast<double>((1 << bits) - 1));
}

/// Stores the tile to scratch memory, perhaps partly outside, and reads elements at other places.
void KernelGenerator::scratchStep(Known x) {
  Shape extents(x.shape());
  for (int64_t &extent : extents)
    extent += chance(30) ? between(1, 3) : 0;
  auto whole = RankedTensorType::get(extents, x.element());
  if (whole.getNumElements() > 2 * mostElements())
    return;
  auto offsets = [&] { return llvm::map_to_vector(extents, [&](int64_t) { return index(between(-1, 2)); }); };
  Value memory = tile::ScratchOp::create(b, extents, x.element());
  tile::StoreOp::create(b, constant(whole, 0), memory, SmallVector<Value>(extents.size(), index(0)));
  tile::StoreOp::create(b, x.value, memory, offsets());
  Value fill = constant(x.element(), isa<FloatType>(x.element()) ? -0.5 : 1);
  double magnitude = std::max(x.magnitude, 1.0);
  if (chance(50)) {
    add(tile::LoadOp::create(b, x.type(), memory, offsets(), fill), magnitude);
    return;
  }
  SmallVector<Value> places;
  for (size_t d = 0; d < extents.size(); ++d)
    places.push_back(indexTile(x.shape()));
  add(tile::GatherOp::create(b, x.type(), memory, places, fill, Value()), magnitude);
}

void KernelGenerator::reshapeStep(Known x) {
  Shape shape(x.shape());
  switch (below(7)) {
  case 0: { // Other extents: split, join or swap factors.
    Shape to = chance(50) ? Shape{x.type().getNumElements()} : Shape(llvm::reverse(shape));
    if (chance(40) && to.size() < 3)
      to.insert(to.begin() + below(to.size() + 1), 1);
    if (to[0] % 2 == 0 && to.size() < 4 && chance(50)) {
      to[0] /= 2;
      to.insert(to.begin() + 1, 2);
    }
    add(tile::ReshapeOp::create(b, RankedTensorType::get(to, x.element()), x.value), x.magnitude);
    break;
  }
  case 1: {
    auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, shape.size()));
    std::shuffle(permutation.begin(), permutation.end(), random);
    add(tile::PermuteOp::create(b, x.value, permutation), x.magnitude);
    break;
  }
  case 2:
    return extractStep(x);
  case 3:
    return joinStep(x);
  case 4:
    return scalarStep(x);
  case 5:
    return unpackStep(x);
  default:
    for (int64_t &extent : shape)
      if (extent == 1 && x.type().getNumElements() < 200) {
        extent = pickExtent();
        if (style == CallStyle::Vectors && ShapedType::getNumElements(shape) > mostElements())
          extent = 1;
      }
    add(tile::BroadcastOp::create(b, RankedTensorType::get(shape, x.element()), x.value), x.magnitude);
  }
}

void KernelGenerator::reduceStep(Known x) {
  int64_t axis = below(x.shape().size()), extent = x.shape()[axis];
  bool isFloat = isa<FloatType>(x.element());
  if (isFloat && storageSize(x.element()) == 1)
    return convert(x);
  using enum tile::ReduceKind;
  if (x.element().isInteger(1)) {
    add(tile::ReduceOp::create(b, chance(50) ? And : Or, x.value, axis), 1);
    return;
  }
  if (chance(15)) {
    tile::ArgReduceKind kinds[] = {tile::ArgReduceKind::Max, tile::ArgReduceKind::Min, tile::ArgReduceKind::UMax,
                                   tile::ArgReduceKind::UMin};
    add(tile::ArgReduceOp::create(b, kinds[below(isFloat ? 2 : 4)], x.value, axis), static_cast<double>(extent));
    return;
  }
  if (!isFloat) {
    tile::ReduceKind kinds[] = {Sum, Prod, Max, Min, UMax, UMin, And, Or};
    add(tile::ReduceOp::create(b, pick(kinds), x.value, axis), INFINITY);
    return;
  }
  tile::ReduceKind kinds[] = {Sum, Sum, Sum, Max, Min, Prod};
  tile::ReduceKind kind = pick(kinds);
  double magnitude = x.magnitude;
  if (kind == Prod) {
    if (extent > 6 || x.magnitude > 4)
      kind = Max;
    else
      magnitude = std::pow(std::max(1.0, x.magnitude), static_cast<double>(extent));
  }
  if (kind == Sum)
    magnitude *= static_cast<double>(extent);
  // The magnitude must fit the type before add() can clamp it.
  if (x.element().isF16() && magnitude > 30000)
    x = {clamp(x, 1), 1};
  add(tile::ReduceOp::create(b, kind, x.value, axis), magnitude);
}

/// Adds a combine or scan by sums or maxima of one or two values.
void KernelGenerator::functionStep(Known x) {
  bool isFloat = isa<FloatType>(x.element());
  if (x.element().isInteger(1) || storageSize(x.element()) == 1)
    return elementwiseStep(x);
  int64_t axis = below(x.shape().size());
  double extent = static_cast<double>(x.shape()[axis]);
  bool isScan = chance(40), two = chance(50), largest = chance(40);
  if (isFloat && x.magnitude > 50)
    x = {clamp(x, 50), 50};
  SmallVector<Known> inputs = {x};
  if (two)
    inputs.push_back(match(largest ? Type(b.getI32Type()) : x.element(), x.shape()));
  SmallVector<Value> values, inits;
  for (const Known &input : inputs) {
    values.push_back(input.value);
    double lowest = isa<FloatType>(input.element()) ? -INFINITY : -std::ldexp(1.0, integerWidth(input.element()) - 1);
    inits.push_back(constant(input.element(), largest ? lowest : -0.0)); // +0 is not neutral: it turns -0 into 0.
  }
  Operation *op = isScan ? tile::ScanOp::create(b, values, axis).getOperation()
                         : tile::CombineOp::create(b, values, inits, axis).getOperation();
  {
    OpBuilder::InsertionGuard guard(b);
    Block &body = op->getRegion(0).front();
    b.setInsertionPointToEnd(&body);
    SmallVector<Value> yields;
    auto lhs = [&](size_t i) { return body.getArgument(i); };
    auto rhs = [&](size_t i) { return body.getArgument(values.size() + i); };
    for (size_t i = 0; i < values.size(); ++i) {
      bool floats = isa<FloatType>(lhs(i).getType());
      if (largest)
        yields.push_back(floats ? Value(arith::MaximumFOp::create(b, lhs(i), rhs(i)))
                                : Value(arith::MaxSIOp::create(b, lhs(i), rhs(i))));
      else
        yields.push_back(floats ? Value(arith::AddFOp::create(b, lhs(i), rhs(i)))
                                : Value(arith::AddIOp::create(b, lhs(i), rhs(i))));
    }
    tile::YieldOp::create(b, yields);
  }
  for (auto [output, input] : llvm::zip(op->getResults(), inputs))
    add(output, isa<FloatType>(input.element()) ? input.magnitude * (largest ? 1 : extent) : INFINITY);
}

void KernelGenerator::dotStep() {
  if (result.hasSpecialValues)
    return;
  Type types[] = {b.getF32Type(), b.getF32Type(), b.getBF16Type(), b.getF16Type(), b.getF64Type()};
  Type element = pick(types);
  Type wide = element.isF64() ? element : Type(b.getF32Type());
  int64_t m = pickDotExtent(), n = pickDotExtent(), k = pickDotExtent();
  SmallVector<int64_t> batch;
  if (chance(15))
    batch.push_back(between(1, 3));
  auto shaped = [&](int64_t rows, int64_t columns) {
    Shape shape(batch);
    shape.append({rows, columns});
    return shape;
  };
  auto operand = [&](int64_t rows, int64_t columns) {
    bool transposed = chance(25);
    Known x = match(element, transposed ? shaped(columns, rows) : shaped(rows, columns));
    if (x.magnitude > 10)
      x = {clamp(x, 10), 10};
    if (!transposed)
      return x;
    auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, batch.size() + 2));
    std::swap(permutation[batch.size()], permutation[batch.size() + 1]);
    return Known{tile::PermuteOp::create(b, x.value, permutation), x.magnitude};
  };
  Known lhs = operand(m, k), rhs = operand(k, n);
  auto type = RankedTensorType::get(shaped(m, n), wide);
  Known accumulator = chance(50) ? Known{constant(type, 0), 0} : match(wide, type.getShape());
  tile::DotPrecision precision = element.isF32() && chance(20) ? tile::DotPrecision::TF32 : tile::DotPrecision::IEEE;
  Value product = tile::DotOp::create(b, type, lhs.value, rhs.value, accumulator.value, precision);
  add(product, accumulator.magnitude + lhs.magnitude * rhs.magnitude * static_cast<double>(k));
}

/// Adds a store. Blocks write disjoint memory: block i writes rows from i * extent on, plus a constant.
void KernelGenerator::store(Known x) {
  Shape extents(x.shape());
  bool isScattered = style == CallStyle::Scattered;
  int64_t ragged = isScattered || chance(15) ? between(-2, 2) : 0;
  extents[0] = std::max<int64_t>(0, extents[0] * std::max<int64_t>(1, blocks) + ragged);
  for (size_t d = 1; d < extents.size(); ++d)
    extents[d] = std::max<int64_t>(0, extents[d] + (chance(isScattered ? 40 : 6) ? between(-2, 2) : 0));
  Value view = newView(x.element(), extents, true);
  SmallVector<Value> offsets;
  for (size_t d = 0; d < extents.size(); ++d) {
    int64_t shift = chance(30) ? between(-2, 2) : 0;
    Value row = arith::MulIOp::create(b, blockNumber, index(x.shape()[d]));
    offsets.push_back(d == 0 ? addIndex(row, shift) : Value(index(shift)));
  }
  Value value = x.value;
  if (chance(20) && isa<FloatType>(x.element()) && storageSize(x.element()) > 1) { // In place: y += x.
    Value old = tile::LoadOp::create(b, x.type(), view, offsets, constant(x.element(), 0));
    value = arith::AddFOp::create(b, old, value);
  }
  tile::StoreOp::create(b, value, view, offsets);
}

/// Adds a scatter. Every element of every block has a distinct index: its row-major number, counted from the front or
/// the back.
void KernelGenerator::scatter(Known x) {
  int64_t count = x.type().getNumElements();
  auto type = RankedTensorType::get({count}, b.getIndexType());
  Value flat = tile::ReshapeOp::create(b, RankedTensorType::get({count}, x.element()), x.value);
  Value number = tile::IotaOp::create(b, count);
  if (chance(50))
    number = arith::SubIOp::create(b, constant(type, static_cast<double>(count - 1)), number);
  Value start = arith::MulIOp::create(b, blockNumber, index(count));
  Value indices = arith::AddIOp::create(b, number, tile::SplatOp::create(b, type, addIndex(start, between(-2, 2))));
  Value mask;
  if (chance(50)) {
    Value bit = arith::AndIOp::create(b, indices, constant(type, 1));
    mask = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, bit, constant(type, 0));
  }
  Value view = newView(x.element(), {std::max<int64_t>(0, count * blocks + between(-2, 1))}, true);
  tile::ScatterOp::create(b, flat, view, ValueRange{indices}, mask);
}
