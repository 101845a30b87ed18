// Checks `for`, `comptime for`, `while`, `break` and `continue`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Arguments.h"
#include "compiler/check/Frame.h"
#include "compiler/comptime/Fold.h"

namespace kpkg::compiler {

namespace {

/// Forgets the ranges of variables that a loop body assigns, for the body and the code after it.
void forgetAssigned(ValueRanges &valueRanges, const BodyScope &scope, const ast::Block &body) {
  std::function<void(const Binding &)> forget = [&](const Binding &binding) {
    if (binding.kind == Binding::Variable)
      valueRanges.forget(binding.local);
    for (const Binding &item : binding.items)
      forget(item);
  };
  std::set<std::string> names;
  collectAssigned(body, names);
  for (const std::string &name : names)
    if (const Binding *binding = scope.find(name))
      forget(*binding);
}

} // namespace

Flow Elaborator::checkFor(const ast::ForStmt &stmt) {
  if (stmt.isComptime)
    return checkComptimeFor(stmt);
  if (auto *call = stmt.iterable->as<ast::CallExpr>()) {
    const ast::Expr *callee = call->callee.get();
    bool hasBrackets = callee->is<ast::IndexExpr>();
    if (hasBrackets)
      callee = callee->as<ast::IndexExpr>()->base.get();
    if (auto *name = callee->as<ast::NameExpr>()) {
      bool isBuiltin = scope->lookup(name->name, name->range).kind == Meaning::Unknown;
      if (isBuiltin && name->name == "range" && !hasBrackets)
        return checkForRange(stmt, *call);
      if (isBuiltin && name->name == "output_tiles")
        return checkForTiles(stmt, *call);
    }
  }
  Operand iterable = check(*stmt.iterable);
  if (!iterable.isError())
    diags.report(diag::NotIterable, stmt.iterable->range, describe(iterable));
  scope->open();
  for (const ast::Identifier &target : stmt.targets)
    declareTarget(target, error(target.range));
  Loop loop;
  loop.skip = newFlag();
  frame->loops.push_back(&loop);
  apart([&] { checkBlock(stmt.body); });
  frame->loops.pop_back();
  scope->close();
  return Flow::Normal;
}

Flow Elaborator::checkComptimeFor(const ast::ForStmt &stmt) {
  auto iterable = comptime(*stmt.iterable);
  if (!iterable)
    return Flow::Normal;
  if (!iterable->isSequence()) {
    diags.report(diag::NotIterable, stmt.iterable->range, kindName(*iterable));
    return Flow::Normal;
  }
  constexpr size_t maxUnrolled = 4096;
  const std::vector<Value> &items = iterable->asSequence().items;
  if (items.size() > maxUnrolled) {
    diags.report(diag::ComptimeLimit, stmt.iterable->range, fmt::format("{} unrolled iterations", maxUnrolled));
    return Flow::Normal;
  }
  Loop unrolled;
  unrolled.isUnrolled = true;
  std::function<Flow(size_t)> iterate = [&](size_t i) {
    for (; i < items.size(); ++i) {
      unrolled.home = block;
      unrolled.exit = Loop::Exit::None;
      scope->open();
      bool isOne = stmt.targets.size() == 1;
      bool fits = isOne || (items[i].isSequence() && items[i].asSequence().items.size() == stmt.targets.size());
      if (!fits)
        diags.report(diag::WrongCount, stmt.iterable->range,
                     items[i].isSequence() ? static_cast<int64_t>(items[i].asSequence().items.size()) : 1,
                     static_cast<int64_t>(stmt.targets.size()));
      for (size_t t = 0; t < stmt.targets.size(); ++t)
        declareTarget(stmt.targets[t],
                      !fits ? error(stmt.range)
                            : constant(isOne ? items[i] : items[i].asSequence().items[t], stmt.targets[t].range));
      Flow flow = checkBlock(stmt.body);
      scope->close();
      if (unrolled.exit == Loop::Exit::Break)
        return Flow::Normal;
      if (unrolled.exit == Loop::Exit::Continue)
        continue;
      if (flow == Flow::Exits || flow == Flow::Stops || !fits)
        return flow;
      if (flow == Flow::Maybe)
        return i + 1 == items.size() ? flow : guarded([&] { return iterate(i + 1); }, stmt.range);
    }
    return Flow::Normal;
  };
  frame->unrolled.push_back(&unrolled);
  unrolled.depth = frame->loops.size();
  Flow flow = iterate(0);
  frame->unrolled.pop_back();
  return flow;
}

Flow Elaborator::loopAsWhile(Loop &loop, const std::function<Node *()> &test, const std::function<Flow()> &body,
                             SourceRange range) {
  if (loop.stop)
    setLocal(loop.stop, emitConstant(Value(false), types.boolean(), range), range);
  Node *node = emit(Kind::While, types.none, range);
  node->regions.push_back(inBlock([&] {
    Node *holds = nullptr;
    if (loop.stop) {
      Node *goesOn = emit(Kind::Not, types.boolean(), range, {getLocal(loop.stop, range)});
      auto inner = inBlock([&] { holds = test(); });
      if (holds)
        inner->yields = {holds};
      holds = holds ? emit(Kind::And, types.boolean(), range, {goesOn}) : nullptr;
      if (holds)
        holds->regions.push_back(std::move(inner));
    } else {
      holds = test();
    }
    if (holds)
      block->yields = {holds};
  }));
  Flow flow = Flow::Normal;
  node->regions.push_back(inBlock([&] { flow = body(); }));
  return flow;
}

/// Returns whether `expr` is `grid_dim.x`, `.y` or `.z`: the only run-time step of a range, which is known to be
/// positive. At thread level it may also be `block_dim.x`, or a product of them and of positive numbers.
bool Elaborator::isGridSize(const ast::Expr &expr) const {
  if (auto *product = expr.as<ast::BinaryExpr>(); product && isOfThreads() && product->op == ast::BinaryOp::Mul) {
    auto isFactor = [&](const ast::Expr &factor) {
      if (isGridSize(factor))
        return true;
      auto *literal = factor.as<ast::IntLiteral>();
      auto *name = factor.as<ast::NameExpr>();
      Meaning meaning = name ? scope->lookup(name->name, name->range) : Meaning{};
      return (literal && literal->value > 0) ||
             (meaning.kind == Meaning::Known && meaning.value.isInt() && meaning.value.asInt() > 0);
    };
    return (isGridSize(*product->lhs) || isGridSize(*product->rhs)) && isFactor(*product->lhs) &&
           isFactor(*product->rhs);
  }
  auto *attribute = expr.as<ast::AttributeExpr>();
  auto *base = attribute ? attribute->base->as<ast::NameExpr>() : nullptr;
  if (!base || kind != BodyKind::Kernel || scope->find(base->name))
    return false;
  return base->name == "grid_dim" || (base->name == "block_dim" && isOfThreads());
}

/// The bounds of a loop over `range(begin, end, step)`.
struct Elaborator::Range {
  Node *begin = nullptr, *end = nullptr;
  Node *gridStep = nullptr; ///< the step, if it is the grid's size; otherwise it is `step`
  int64_t step = 1;
};

/// Checks `range(...)` of a loop with one target. Returns nothing after an error.
std::optional<Elaborator::Range> Elaborator::checkRange(const ast::ForStmt &stmt, const ast::CallExpr &call) {
  CallSite site;
  site.call = &call;
  site.name = "range";
  site.arguments = &call.arguments;
  Arguments arguments(*this, site);
  std::vector<const ast::Expr *> bounds = arguments.rest();
  bool isWrong = !arguments.finish();
  if (!isWrong && (bounds.empty() || bounds.size() > 3)) {
    diags.report(diag::TooManyArguments, call.range, "range", 3);
    isWrong = true;
  }
  if (stmt.targets.size() != 1) {
    diags.report(diag::WrongCount, stmt.iterable->range, 1, static_cast<int64_t>(stmt.targets.size()));
    isWrong = true;
  }
  if (isWrong)
    return std::nullopt;
  Range range;
  range.begin = bounds.size() > 1 ? intNode(check(*bounds[0]), "the start of a range")
                                  : emitConstant(Value(int64_t(0)), types.integer(), call.range);
  range.end = intNode(check(*bounds[bounds.size() > 1 ? 1 : 0]), "the end of a range");
  if (bounds.size() > 2 && isGridSize(*bounds[2])) {
    range.gridStep = intNode(check(*bounds[2]), "the step of a range");
    isWrong |= !range.gridStep;
  } else if (bounds.size() > 2) {
    auto value = comptimeInt(*bounds[2]);
    range.step = value.value_or(1);
    if (value && range.step == 0)
      diags.report(diag::ComptimeError, bounds[2]->range, "the step of a range is 0");
    isWrong |= !value || range.step == 0;
  }
  return isWrong || !range.begin || !range.end ? std::nullopt : std::optional(range);
}

Flow Elaborator::checkForRange(const ast::ForStmt &stmt, const ast::CallExpr &call) {
  std::optional<Range> range = checkRange(stmt, call);
  forgetAssigned(valueRanges, *scope, stmt.body);
  ValueRanges::State before = valueRanges.save();
  Loop loop;
  hir::Local *counter = newLocal(stmt.targets[0].text, types.integer());
  auto body = [&](Node *index) {
    loop.skip = newFlag();
    scope->open();
    declareTarget(stmt.targets[0], index ? runTime(index) : error(stmt.targets[0].range));
    frame->loops.push_back(&loop);
    Flow flow = checkBlock(stmt.body);
    frame->loops.pop_back();
    scope->close();
    return flow;
  };
  if (!range) {
    apart([&] { body(nullptr); });
    return Flow::Normal;
  }
  auto [begin, end, gridStep, step] = *range;
  auto constantInt = [&](int64_t value) { return emitConstant(Value(value), types.integer(), stmt.iterable->range); };
  auto binaryInt = [&](Kind nodeKind, Node *a, Node *b) {
    return emit(nodeKind, types.integer(), stmt.iterable->range, {a, b});
  };
  Node *last = end, *first = begin, *stride = nullptr;
  if (step < 0) {
    // Emits a loop that counts upwards: i = begin + n * step for n in range(ceildiv(begin - end, -step)).
    Node *negated = emit(Kind::Negate, types.integer(), stmt.iterable->range, {binaryInt(Kind::Sub, begin, end)});
    Node *quotient = binaryInt(Kind::FloorDiv, negated, constantInt(-step));
    last = emit(Kind::Negate, types.integer(), stmt.iterable->range, {quotient});
    first = constantInt(0);
  }
  stride = gridStep ? gridStep : constantInt(step < 0 ? 1 : step);
  auto indexOf = [&] {
    Node *index = getLocal(counter, stmt.targets[0].range);
    if (kind == BodyKind::Op)
      valueRanges.bound(index, first, last);
    return step < 0 ? binaryInt(Kind::Add, begin, binaryInt(Kind::Mul, index, constantInt(step))) : index;
  };
  Flow flow = Flow::Normal;
  if (!mayStop(stmt.body)) {
    Node *node = emit(Kind::For, types.none, stmt.range, {first, last, stride});
    node->local = counter;
    valueRanges.forget(counter);
    node->regions.push_back(inBlock([&] { flow = body(indexOf()); }));
  } else {
    loop.stop = newLocal("stop", types.boolean());
    setLocal(counter, first, stmt.range);
    valueRanges.forget(counter);
    flow = loopAsWhile(
        loop, [&] { return emit(Kind::Less, types.boolean(), stmt.range, {getLocal(counter, stmt.range), last}); },
        [&] {
          Flow inner = body(indexOf());
          setLocal(counter, binaryInt(Kind::Add, getLocal(counter, stmt.range), stride), stmt.range);
          return inner;
        },
        stmt.range);
  }
  valueRanges.restore(before);
  forgetAssigned(valueRanges, *scope, stmt.body);
  return hasReturn(stmt.body) ? Flow::Maybe : Flow::Normal;
}

Flow Elaborator::checkWhile(const ast::WhileStmt &stmt) {
  forgetAssigned(valueRanges, *scope, stmt.body);
  ValueRanges::State before = valueRanges.save();
  Loop loop;
  if (mayStop(stmt.body))
    loop.stop = newLocal("stop", types.boolean());
  loopAsWhile(
      loop, [&] { return condition(check(*stmt.condition), stmt.condition->range); },
      [&] {
        loop.skip = newFlag();
        frame->loops.push_back(&loop);
        Flow flow = checkBlock(stmt.body);
        frame->loops.pop_back();
        return flow;
      },
      stmt.range);
  valueRanges.restore(before);
  forgetAssigned(valueRanges, *scope, stmt.body);
  return hasReturn(stmt.body) ? Flow::Maybe : Flow::Normal;
}

Flow Elaborator::checkLoopExit(SourceRange range, bool isBreak) {
  bool inUnrolled = !frame->unrolled.empty() && frame->unrolled.back()->depth >= frame->loops.size();
  if (inUnrolled) {
    Loop &loop = *frame->unrolled.back();
    if (block == loop.home)
      loop.exit = isBreak ? Loop::Exit::Break : Loop::Exit::Continue;
    else
      notSupported(
          range,
          fmt::format("`{}` of a `comptime for` that depends on run-time values", isBreak ? "break" : "continue"),
          "decide by `comptime if`, or loop with `for`");
    return Flow::Exits;
  }
  if (frame->loops.empty()) // reported by the parser
    return Flow::Exits;
  Loop &loop = *frame->loops.back();
  if (isBreak && loop.isTiles) {
    notSupported(range, "`break` in a loop over output tiles", "every tile is visited; put the body under an `if`");
    return Flow::Exits;
  }
  exitHere(loop.skip);
  if (isBreak)
    setLocal(loop.stop, emitConstant(Value(true), types.boolean(), range), range);
  return Flow::Exits;
}

/// Returns how many tiles there are along each coordinate of a loop over `output_tiles`. Returns nothing after an
/// error.
std::optional<std::vector<hir::Node *>> Elaborator::tileCounts(const ast::ForStmt &stmt, const ast::CallExpr &call) {
  CallSite site;
  site.call = &call;
  site.name = "output_tiles";
  site.arguments = &call.arguments;
  Arguments arguments(*this, site);
  const ast::Expr *output = arguments.take("output");
  std::vector<const ast::Expr *> others = arguments.rest();
  if (const ast::Expr *order = arguments.named("order")) // a hint, which never changes results
    check(*order);
  bool isWrong = !arguments.finish();
  Operand first = output ? check(*output) : error(call.range);
  if (isWrong || first.isError())
    return std::nullopt;
  bool isView = first.type->kind == TypeKind::View && !first.type->isScratch();
  if (!isView && !first.type->isScalar()) {
    diags.report(diag::TypeMismatch, output->range, "`output`", describe(first), "Tensor[T, rank] or Int");
    return std::nullopt;
  }
  std::vector<Node *> extents = {isView ? first.node : intNode(first, "an extent")};
  if (isView && !others.empty()) {
    diags.report(diag::TooManyArguments, others[0]->range, site.name, 1);
    return std::nullopt;
  }
  for (const ast::Expr *expr : others)
    extents.push_back(intNode(check(*expr), "an extent"));
  size_t rank = isView ? static_cast<size_t>(first.type->rank) : extents.size();
  auto *index = call.callee->as<ast::IndexExpr>();
  if (!index || index->arguments.size() != rank || stmt.targets.size() != rank) {
    diags.report(diag::RankMismatch, call.range, "`output_tiles`",
                 static_cast<int64_t>(index ? index->arguments.size() : 0), static_cast<int64_t>(rank));
    return std::nullopt;
  }
  std::vector<Node *> counts;
  for (size_t i = 0; i < rank; ++i) {
    auto size = comptimeInt(*index->arguments[i].value);
    if (size && *size <= 0)
      diags.report(diag::BadExtent, index->arguments[i].range, *size);
    if (!size || *size <= 0 || !extents[isView ? 0 : i])
      return std::nullopt;
    Node *extent = isView ? emit(Kind::ViewShape, types.integer(), call.range, {first.node}, {static_cast<int64_t>(i)})
                          : extents[i];
    Node *negated = emit(Kind::Negate, types.integer(), call.range, {extent});
    Node *divisor = emitConstant(Value(*size), types.integer(), call.range);
    Node *quotient = emit(Kind::FloorDiv, types.integer(), call.range, {negated, divisor});
    counts.push_back(*size == 1 ? extent : emit(Kind::Negate, types.integer(), call.range, {quotient}));
  }
  return counts;
}

Flow Elaborator::checkForTiles(const ast::ForStmt &stmt, const ast::CallExpr &call) {
  bool isMisplaced = true;
  if (kind != BodyKind::Kernel)
    diags.report(diag::OnlyInKernels, call.range, "output_tiles");
  else if (isOfThreads())
    belongsToTiles(call.range, "output_tiles");
  else if (tileDepth || depth > 1 || block != frame->body || !frame->loops.empty())
    notSupported(call.range, "`output_tiles` inside other control flow", "make it the outermost loop of the kernel");
  else
    isMisplaced = false;
  std::optional<std::vector<Node *>> counts = tileCounts(stmt, call);
  bool isWrong = isMisplaced || !counts;
  Loop loop;
  loop.isTiles = true;
  Node *node = emit(Kind::ForTiles, types.none, stmt.range, counts.value_or(std::vector<Node *>()));
  for (const ast::Identifier &target : stmt.targets)
    node->locals.push_back(newLocal(target.text, types.integer()));
  node->regions.push_back(inBlock([&] {
    loop.skip = newFlag();
    scope->open();
    ++tileDepth;
    for (size_t i = 0; i < stmt.targets.size(); ++i)
      declareTarget(stmt.targets[i],
                    isWrong ? error(stmt.range) : runTime(getLocal(node->locals[i], stmt.targets[i].range)));
    frame->loops.push_back(&loop);
    checkBlock(stmt.body);
    frame->loops.pop_back();
    --tileDepth;
    scope->close();
  }));
  function.isPersistent = true;
  return Flow::Normal;
}

} // namespace kpkg::compiler
