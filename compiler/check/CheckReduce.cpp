// Checks reductions, scans and products of tiles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Arguments.h"
#include "compiler/check/Frame.h"

#include <map>

namespace kpkg::compiler {

std::optional<int64_t> Elaborator::axisOf(const ast::Expr &expr, const Type *tile) {
  auto axis = comptimeInt(expr);
  if (!axis)
    return std::nullopt;
  int64_t rank = static_cast<int64_t>(tile->shape.size());
  int64_t at = *axis < 0 ? *axis + rank : *axis;
  if (at < 0 || at >= rank) {
    diags.report(diag::BadAxis, expr.range, *axis, tile->str());
    return std::nullopt;
  }
  return at;
}

static std::vector<int64_t> withoutAxis(std::vector<int64_t> shape, int64_t axis) {
  shape[axis] = 1;
  return shape;
}

Operand Elaborator::reduction(Kind nodeKind, CallSite &site) {
  Arguments arguments(*this, site);
  const ast::Expr *axisExpr = arguments.take("axis");
  if (!arguments.finish())
    return error(site.range());
  const Type *type = site.base.type;
  if (!type->isTile()) {
    diags.report(diag::UnknownAttribute, site.nameRange, describe(site.base), site.name);
    return error(site.range());
  }
  bool isLogical = nodeKind == Kind::ReduceAny || nodeKind == Kind::ReduceAll;
  bool isArg = nodeKind == Kind::ArgMax || nodeKind == Kind::ArgMin;
  Node *value = site.base.node;
  bool isBool = type->element == DType::Bool;
  bool isStored = isFloatForStorage(type->element);
  if (nodeKind == Kind::ReduceSum && isBool) { // counts the true elements
    value = emit(Kind::Cast, types.tile(DType::Int, type->shape), site.range(), {value});
  } else if (isLogical != isBool || isStored) {
    diags.report(diag::OperandUnfit, site.range(), site.name, type->str());
    return error(site.range());
  }
  auto axis = axisOf(*axisExpr, type);
  if (!axis)
    return error(site.range());
  DType element = isArg ? DType::Int : value->type->element;
  return result(nodeKind, types.tile(element, withoutAxis(type->shape, *axis)), site.range(), {value}, {*axis});
}

Operand Elaborator::tileReduce(CallSite &site) {
  static const std::map<std::string, Kind> kinds = {{"sum", Kind::ReduceSum}, {"prod", Kind::ReduceProd},
                                                    {"max", Kind::ReduceMax}, {"min", Kind::ReduceMin},
                                                    {"any", Kind::ReduceAny}, {"all", Kind::ReduceAll}};
  return reduction(kinds.at(site.name), site);
}

Operand Elaborator::tileArgReduce(CallSite &site) {
  return reduction(site.name == "argmax" ? Kind::ArgMax : Kind::ArgMin, site);
}

const FunctionEntity *Elaborator::combiningFunction(const ast::Expr &expr) {
  auto combine = comptime(expr);
  if (!combine)
    return nullptr;
  if (!combine->isFunction() || combine->asFunction()->role != FunctionRole::Inline) {
    diags.report(diag::NotCallable, expr.range, combine->str());
    return nullptr;
  }
  return combine->asFunction();
}

std::optional<std::vector<hir::Node *>> Elaborator::tilesOfOneShape(const std::vector<const ast::Expr *> &exprs) {
  std::vector<Node *> tiles;
  for (const ast::Expr *expr : exprs) {
    Operand tile = check(*expr);
    if (tile.isError())
      return std::nullopt;
    if (!tile.type->isTile() || (!tiles.empty() && tile.type->shape != tiles[0]->type->shape)) {
      diags.report(diag::TypeMismatch, expr->range, "this", describe(tile),
                   tiles.empty() ? "a tile" : "a tile of the shape of the first one");
      return std::nullopt;
    }
    tiles.push_back(tile.node);
  }
  return tiles;
}

/// Adds the initial value of each tile's reduction to the operands. Returns false after an error.
bool Elaborator::initialValues(const ast::Expr &expr, const std::vector<Node *> &tiles, std::vector<Node *> &operands) {
  Operand init = check(expr);
  if (init.isError())
    return false;
  std::vector<Operand> inits = {init};
  if (init.type->kind == TypeKind::Tuple) {
    inits = init.items;
    if (init.constant)
      for (const Value &item : init.constant->asSequence().items)
        inits.push_back(constant(item, init.range));
  }
  if (inits.size() != tiles.size()) {
    diags.report(diag::WrongCount, expr.range, static_cast<int64_t>(inits.size()), static_cast<int64_t>(tiles.size()));
    return false;
  }
  for (size_t i = 0; i < tiles.size(); ++i) {
    Node *node = convert(inits[i], types.scalar(tiles[i]->type->element), "`init`");
    if (!node)
      return false;
    operands.push_back(node);
  }
  return true;
}

bool Elaborator::combination(Node &node, const FunctionEntity &entity, const std::vector<Node *> &tiles,
                             SourceRange range) {
  bool failed = false;
  node.regions.push_back(inBlock([&] {
    std::vector<Operand> scalars;
    for (int side = 0; side < 2; ++side)
      for (Node *tile : tiles) {
        hir::Local *local = newLocal(side ? "right" : "left", types.scalar(tile->type->element));
        node.locals.push_back(local);
        scalars.push_back(runTime(getLocal(local, node.range)));
      }
    std::vector<Value> comptimeValues;
    if (!bindComptime(entity, nullptr, {}, comptimeValues, range))
      failed = true;
    else if (entity.syntax->parameters.size() != scalars.size()) {
      diags.report(diag::CombineParameters, range, entity.name(),
                   static_cast<int64_t>(entity.syntax->parameters.size()), static_cast<int64_t>(scalars.size()));
      failed = true;
    }
    if (failed)
      return;
    ++combineDepth;
    Operand combined = inlineCall(entity, comptimeValues, scalars, node.range);
    --combineDepth;
    std::vector<Operand> values = {combined};
    if (combined.isTuple())
      values = combined.items;
    failed = combined.isError();
    if (!failed && values.size() != tiles.size()) {
      diags.report(diag::WrongCount, range, static_cast<int64_t>(values.size()), static_cast<int64_t>(tiles.size()));
      failed = true;
    }
    for (size_t i = 0; i < values.size() && !failed; ++i) {
      Node *value = convert(values[i], types.scalar(tiles[i]->type->element), "the combination");
      failed |= !value;
      block->yields.push_back(value);
    }
  }));
  return !failed;
}

/// Checks `reduce[f](tiles..., axis=, init=)` and `scan[f](tiles..., axis=)`. f takes the left values, then the right
/// values, as scalars, and returns their combination.
Operand Elaborator::byFunction(Kind nodeKind, CallSite &site) {
  if (Operand allowed = onlyIn(BodyKind::Kernel, site); allowed.isError())
    return allowed;
  if (!hasBrackets(site, "f"))
    return error(site.range());
  Arguments brackets(*this, site, *site.comptimeArguments);
  const ast::Expr *functionExpr = brackets.take("f");
  Arguments arguments(*this, site);
  const ast::Expr *axisExpr = arguments.named("axis");
  const ast::Expr *initExpr = nodeKind == Kind::Combine ? arguments.named("init") : nullptr;
  std::vector<const ast::Expr *> exprs = arguments.rest();
  if (!brackets.finish() || !arguments.finish())
    return error(site.range());
  if (exprs.empty() || !axisExpr || (nodeKind == Kind::Combine && !initExpr)) {
    diags.report(diag::MissingArgument, site.range(), site.name, exprs.empty() ? "tile" : !axisExpr ? "axis" : "init");
    return error(site.range());
  }
  const FunctionEntity *function = combiningFunction(*functionExpr);
  if (!function)
    return error(site.range());
  auto tiles = tilesOfOneShape(exprs);
  if (!tiles)
    return error(site.range());
  auto axis = axisOf(*axisExpr, tiles->front()->type);
  if (!axis)
    return error(site.range());
  size_t count = tiles->size();
  std::vector<Node *> operands = *tiles;
  if (initExpr && !initialValues(*initExpr, *tiles, operands))
    return error(site.range());
  Node *node = emit(nodeKind, types.none, site.range(), std::move(operands), {*axis, static_cast<int64_t>(count)});
  if (!combination(*node, *function, *tiles, functionExpr->range))
    return error(site.range());
  std::vector<Operand> results;
  for (size_t i = 0; i < count; ++i) {
    const Type *type = (*tiles)[i]->type;
    if (nodeKind == Kind::Combine)
      type = types.tile(type->element, withoutAxis(type->shape, *axis));
    results.push_back(result(Kind::Result, type, site.range(), {node}, {static_cast<int64_t>(i)}));
  }
  return count == 1 ? results[0] : tuple(std::move(results), site.range());
}

Operand Elaborator::callReduce(CallSite &site) { return byFunction(Kind::Combine, site); }

Operand Elaborator::callScan(CallSite &site) { return byFunction(Kind::Scan, site); }

Operand Elaborator::callCumsum(CallSite &site) {
  Arguments arguments(*this, site);
  const ast::Expr *tileExpr = arguments.take("x");
  const ast::Expr *axisExpr = arguments.take("axis");
  if (!arguments.finish())
    return error(site.range());
  Operand tile = check(*tileExpr);
  if (tile.isError())
    return tile;
  bool fits = tile.type->isTile() && tile.type->element != DType::Bool &&
              !(isFloat(tile.type->element) && bitsOf(tile.type->element) == 8);
  if (!fits) {
    diags.report(diag::OperandUnfit, tileExpr->range, site.name, describe(tile));
    return error(site.range());
  }
  auto axis = axisOf(*axisExpr, tile.type);
  if (!axis)
    return error(site.range());
  const Type *scalar = types.scalar(tile.type->element);
  Node *node = emit(Kind::Scan, types.none, site.range(), {tile.node}, {*axis, 1});
  node->regions.push_back(inBlock([&] {
    node->locals = {newLocal("left", scalar), newLocal("right", scalar)};
    Node *left = getLocal(node->locals[0], site.range());
    Node *right = getLocal(node->locals[1], site.range());
    block->yields = {emit(Kind::Add, scalar, site.range(), {left, right})};
  }));
  return result(Kind::Result, tile.type, site.range(), {node}, {0});
}

std::optional<bool> Elaborator::isTf32(const ast::Expr &expr, DType element) {
  auto precision = comptime(expr);
  if (!precision)
    return std::nullopt;
  bool known = precision->isString() && (precision->asString() == "ieee" || precision->asString() == "tf32");
  if (!known || (precision->asString() == "tf32" && element != DType::Float32)) {
    diags.report(diag::TypeMismatch, expr.range, "`precision`", precision->str(),
                 "\"ieee\", or \"tf32\" for float32 operands");
    return std::nullopt;
  }
  return precision->asString() == "tf32";
}

Operand Elaborator::callDot(CallSite &site) {
  if (Operand allowed = onlyIn(BodyKind::Kernel, site); allowed.isError())
    return allowed;
  Arguments arguments(*this, site);
  const ast::Expr *exprs[2] = {arguments.take("a"), arguments.take("b")};
  const ast::Expr *accExpr = arguments.take("acc", false);
  const ast::Expr *precisionExpr = arguments.take("precision", false);
  const ast::Expr *positionsExpr = arguments.take("positions", false);
  if (!arguments.finish())
    return error(site.range());
  Operand a = check(*exprs[0]), b = check(*exprs[1]);
  if (a.isError() || b.isError())
    return error(site.range());
  const Type *lhs = a.type, *rhs = b.type;
  size_t rank = lhs->shape.size();
  int64_t kept = positionsExpr ? 2 : 1; // `a` stores one of this many elements of a row
  bool shapesFit = lhs->isTile() && rhs->isTile() && (rank == 2 || rank == 3) && rhs->shape.size() == rank &&
                   kept * lhs->shape[rank - 1] == rhs->shape[rank - 2] && (rank == 2 || lhs->shape[0] == rhs->shape[0]);
  if (!shapesFit || lhs->element != rhs->element) {
    diags.report(diag::OperandsDiffer, site.range(), "dot", describe(a), describe(b),
                 positionsExpr ? "with positions they must be [m, k / 2] and [k, n] of one element type"
                               : "they must be [m, k] and [k, n] (with a batch in front or not) of one element type");
    return error(site.range());
  }
  DType element = lhs->element;
  if ((!isFloat(element) && element != DType::Int8) || isExponent(element)) {
    diags.report(diag::OperandUnfit, site.range(), "dot", describe(a));
    return error(site.range());
  }
  Node *positions = nullptr;
  if (positionsExpr) {
    Operand given = check(*positionsExpr);
    if (given.isError())
      return given;
    int64_t wordElements = 8;
    bool fits = rank == 2 && isFloat(element) && lhs->shape[1] % wordElements == 0 &&
                given.type == types.tile(DType::Int16, {lhs->shape[0], lhs->shape[1] / wordElements});
    if (!fits) {
      diags.report(diag::TypeMismatch, positionsExpr->range, "`positions`", describe(given),
                   "an int16 tile [m, k / 16] for floats [m, k / 2]");
      return error(site.range());
    }
    positions = given.node;
  }
  DType accumulator = element == DType::Int8      ? DType::Int32
                      : element == DType::Float64 ? DType::Float64
                                                  : DType::Float32;
  std::vector<int64_t> shape = lhs->shape;
  shape[rank - 1] = rhs->shape[rank - 1];
  const Type *type = types.tile(accumulator, shape);
  Node *acc = nullptr;
  if (accExpr) {
    Operand given = check(*accExpr);
    if (given.isError())
      return given;
    if (given.type != type || !given.node) {
      diags.report(diag::TypeMismatch, accExpr->range, "the accumulator", describe(given), type->str());
      return error(site.range());
    }
    acc = given.node;
  } else {
    acc = numberAs(constant(Value(int64_t(0)), site.range()), accumulator, shape);
  }
  auto usesTf32 = precisionExpr ? isTf32(*precisionExpr, element) : std::optional(false);
  if (!usesTf32)
    return error(site.range());
  std::vector<Node *> operands = {a.node, b.node, acc};
  if (positions)
    operands.push_back(positions);
  return result(Kind::Dot, type, site.range(), operands, {*usesTf32});
}

} // namespace kpkg::compiler
