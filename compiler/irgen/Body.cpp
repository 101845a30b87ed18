// Converts variables and structured control flow from HIR to SSA and scf.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/irgen/Body.h"
#include "compiler/source/Source.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include <set>

using namespace mlir;

namespace kpkg::compiler {

using hir::Kind;

namespace {
/// Counts the mentions of each variable in a block and its nested blocks, and calls `onAssign` for each assignment.
void visit(const hir::Block &block, llvm::SmallVectorImpl<unsigned> *mentions,
           llvm::function_ref<void(const hir::Local &)> onAssign) {
  for (const hir::Node *node : block.nodes) {
    auto mention = [&](const hir::Local *local) {
      if (mentions)
        ++(*mentions)[local->id];
    };
    if (node->local) {
      mention(node->local);
      if (node->kind == Kind::Set)
        onAssign(*node->local);
    }
    for (const hir::Local *local : node->locals)
      mention(local);
    for (const auto &region : node->regions)
      visit(*region, mentions, onAssign);
  }
}
} // namespace

Body::Body(const hir::Function &function, const SourceManager &sources, OpBuilder builder)
    : function(function), sources(sources), builder(builder) {
  variables.resize(function.locals.size());
  mentions.resize(function.locals.size());
  visit(function.body, &mentions, [](const hir::Local &) {});
}

Location locationOf(OpBuilder &builder, const SourceManager &sources, SourceRange range) {
  if (!range.isValid())
    return builder.getUnknownLoc();
  const SourceFile &file = sources.file(range.file);
  LineColumn place = file.lineColumn(range.begin);
  return FileLineColLoc::get(builder.getContext(), file.path(), place.line, place.column);
}

Location Body::location(SourceRange range) { return locationOf(builder, sources, range); }

mlir::Type Body::convert(const Type *type) {
  if (type->isScalar())
    return element(type->element);
  if (type->isTile())
    return RankedTensorType::get(type->shape, element(type->element));
  return convertOther(type);
}

mlir::Value Body::undefined(mlir::Type type, Location loc) { return ub::PoisonOp::create(builder, loc, type); }

mlir::Value Body::variable(unsigned id, Location loc) {
  if (variables[id])
    return variables[id];
  return undefined(convert(function.locals[id].type), loc);
}

SmallVector<mlir::Value> Body::operands(const hir::Node &node, size_t first, size_t count) {
  SmallVector<mlir::Value> list;
  for (size_t i = first; i < node.operands.size() && i - first < count; ++i)
    list.push_back(at(node.operands[i]));
  return list;
}

mlir::Value Body::constant(const compiler::Value &value, const Type *type, Location loc) {
  if (!type->isNumeric())
    return constantOther(value, type, loc);
  if (type->element == DType::Float8_e8m0fnu) {
    Type wide = *type;
    wide.element = DType::Float32;
    return cast(constant(value, &wide, loc), &wide, type, loc);
  }
  mlir::Type elementType = element(type->element);
  TypedAttr attribute;
  if (auto floatType = dyn_cast<FloatType>(elementType)) {
    attribute = builder.getFloatAttr(floatType, value.isBool() ? value.asBool() : value.asNumber());
  } else {
    int64_t number = value.isBool()    ? value.asBool()
                     : value.isFloat() ? static_cast<int64_t>(value.asFloat())
                                       : value.asInt();
    attribute = builder.getIntegerAttr(elementType, elementType.isInteger(1) ? number & 1 : number);
  }
  if (type->isTile())
    attribute = DenseElementsAttr::get(cast<RankedTensorType>(convert(type)), ArrayRef<Attribute>(attribute));
  return arith::ConstantOp::create(builder, loc, attribute);
}

void Body::block(const hir::Block &block) {
  for (const hir::Node *node : block.nodes) {
    this->node(*node);
    for (SourceRange name : node->names)
      addPlace(at(node), location(name));
  }
}

void Body::addPlace(mlir::Value value, Location name) {
  if (value && isa<RankedTensorType>(value.getType()))
    value.setLoc(FusedLoc::get({value.getLoc(), name}, TypeAttr::get(value.getType()), builder.getContext()));
}

void Body::node(const hir::Node &node) {
  Location loc = location(node.range);
  switch (node.kind) {
  case Kind::Nothing:
    return;
  case Kind::Constant:
    values[&node] = constant(node.value, node.type, loc);
    return;
  case Kind::Get:
    values[&node] = variable(node.local->id, loc);
    return;
  case Kind::Set:
    variables[node.local->id] =
        node.operands.empty() ? constant(node.value, node.local->type, loc) : at(node.operands[0]);
    return;
  case Kind::If:
    return ifNode(node);
  case Kind::For:
    return forNode(node);
  case Kind::While:
    return whileNode(node);
  case Kind::And:
  case Kind::Or:
    values[&node] = logical(node, node.kind == Kind::And);
    return;
#define HIR_ELEMENTWISE(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
    if (mlir::Value value = elementwise(node))
      values[&node] = value;
    else
      values[&node] = leaf(node);
    return;
#define HIR_FLOW(Name)
#define HIR_ELEMENTWISE(Name)
#define HIR(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
    values[&node] = leaf(node);
    return;
  }
}

SmallVector<unsigned> Body::assignedOutside(ArrayRef<const hir::Block *> regions) {
  std::set<unsigned> assigned;
  SmallVector<SmallVector<unsigned>> inside(regions.size(), SmallVector<unsigned>(mentions.size()));
  for (auto [region, count] : llvm::zip(regions, inside))
    visit(*region, &count, [&](const hir::Local &local) { assigned.insert(local.id); });
  SmallVector<unsigned> result;
  for (unsigned id : assigned) {
    bool isLocal = llvm::any_of(inside, [&](const auto &count) { return count[id] == mentions[id]; });
    if (!isLocal)
      result.push_back(id);
  }
  return result;
}

void Body::inRegion(llvm::function_ref<void()> body) {
  SmallVector<mlir::Value> outside = variables;
  body();
  variables = std::move(outside);
}

SmallVector<mlir::Value> Body::branch(mlir::Value condition, ArrayRef<unsigned> assigned, mlir::Type extra,
                                      llvm::function_ref<mlir::Value()> thenBody,
                                      llvm::function_ref<mlir::Value()> elseBody, Location loc) {
  SmallVector<mlir::Type> types;
  for (unsigned id : assigned)
    types.push_back(convert(function.locals[id].type));
  if (extra)
    types.push_back(extra);
  auto op = scf::IfOp::create(builder, loc, types, condition, /*addThenBlock=*/true, /*addElseBlock=*/true);
  auto fill = [&](Block *block, llvm::function_ref<mlir::Value()> body) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(block);
    inRegion([&] {
      mlir::Value value = body();
      SmallVector<mlir::Value> results;
      for (unsigned id : assigned)
        results.push_back(variable(id, loc));
      if (extra)
        results.push_back(value);
      scf::YieldOp::create(builder, loc, results);
    });
  };
  fill(op.thenBlock(), thenBody);
  fill(op.elseBlock(), elseBody);
  for (auto [id, result] : llvm::zip(assigned, op.getResults()))
    variables[id] = result;
  return SmallVector<mlir::Value>(op.getResults());
}

void Body::ifNode(const hir::Node &node) {
  const hir::Block &thenRegion = *node.regions[0], &elseRegion = *node.regions[1];
  // Only a variable declared outside can occur in both branches, because branches share no scope.
  branch(
      at(node.operands[0]), assignedOutside({&thenRegion, &elseRegion}), {},
      [&] { return block(thenRegion), mlir::Value(); }, [&] { return block(elseRegion), mlir::Value(); },
      location(node.range));
}

mlir::Value Body::logical(const hir::Node &node, bool isAnd) {
  Location loc = location(node.range);
  const hir::Block &rhs = *node.regions[0];
  auto evaluate = [&] { return block(rhs), at(rhs.yields[0]); };
  auto known = [&] { return constant(compiler::Value(!isAnd), node.type, loc); };
  llvm::function_ref<mlir::Value()> whenTrue = evaluate, whenFalse = known;
  if (!isAnd)
    std::swap(whenTrue, whenFalse);
  return branch(at(node.operands[0]), assignedOutside({&rhs}), builder.getI1Type(), whenTrue, whenFalse, loc).back();
}

void Body::forNode(const hir::Node &node) {
  Location loc = location(node.range);
  const hir::Block &body = *node.regions[0];
  SmallVector<unsigned> carried = assignedOutside({&body});
  // The loop has its own counter, even if the body assigns to it.
  llvm::erase(carried, node.local->id);
  SmallVector<mlir::Value> inits;
  for (unsigned id : carried)
    inits.push_back(variable(id, loc));
  auto op = scf::ForOp::create(builder, loc, at(node.operands[0]), at(node.operands[1]), at(node.operands[2]), inits);
  {
    OpBuilder::InsertionGuard guard(builder);
    if (carried.empty()) // the builder has added a terminator
      op.getBody()->getTerminator()->erase();
    builder.setInsertionPointToEnd(op.getBody());
    inRegion([&] {
      variables[node.local->id] = op.getInductionVar();
      for (auto [id, argument] : llvm::zip(carried, op.getRegionIterArgs()))
        variables[id] = argument;
      block(body);
      SmallVector<mlir::Value> results;
      for (unsigned id : carried)
        results.push_back(variable(id, loc));
      scf::YieldOp::create(builder, loc, results);
    });
  }
  for (auto [id, result] : llvm::zip(carried, op.getResults()))
    variables[id] = result;
}

void Body::whileNode(const hir::Node &node) {
  Location loc = location(node.range);
  const hir::Block &condition = *node.regions[0], &body = *node.regions[1];
  SmallVector<unsigned> carried = assignedOutside({&condition, &body});
  SmallVector<mlir::Value> inits;
  SmallVector<mlir::Type> types;
  for (unsigned id : carried) {
    inits.push_back(variable(id, loc));
    types.push_back(inits.back().getType());
  }
  auto op = scf::WhileOp::create(builder, loc, types, inits);
  SmallVector<Location> locations(types.size(), loc);
  auto fill = [&](Region &region, llvm::function_ref<void()> content) {
    OpBuilder::InsertionGuard guard(builder);
    Block *entry = builder.createBlock(&region, region.end(), types, locations);
    inRegion([&] {
      for (auto [id, argument] : llvm::zip(carried, entry->getArguments()))
        variables[id] = argument;
      content();
    });
  };
  auto current = [&] {
    SmallVector<mlir::Value> list;
    for (unsigned id : carried)
      list.push_back(variable(id, loc));
    return list;
  };
  fill(op.getBefore(), [&] {
    block(condition);
    scf::ConditionOp::create(builder, loc, at(condition.yields[0]), current());
  });
  fill(op.getAfter(), [&] {
    block(body);
    scf::YieldOp::create(builder, loc, current());
  });
  for (auto [id, result] : llvm::zip(carried, op.getResults()))
    variables[id] = result;
}

} // namespace kpkg::compiler
