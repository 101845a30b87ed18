// Checks the functions of kernels at thread level: ids, synchronisation, exchange within a warp, copies, products.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Arguments.h"
#include "compiler/check/ThreadNames.h"

namespace kpkg::compiler {

namespace {
constexpr int64_t warpLanes = 32;
} // namespace

Operand Elaborator::onlyOfThreads(const CallSite &site) {
  if (Operand allowed = onlyIn(BodyKind::Kernel, site); allowed.isError())
    return allowed;
  if (!isOfThreads()) {
    diags.report(diag::OnlyAtThreadLevel, site.nameRange, site.name, insteadOfThreads(site.name));
    return error(site.range());
  }
  return none(site.range());
}

/// Checks a function of a whole warp, which a block of some other number of threads does not have.
Operand Elaborator::onlyOfWarps(const CallSite &site) {
  Operand allowed = onlyOfThreads(site);
  if (!allowed.isError() && function.threads.count() % warpLanes != 0) {
    diags.report(diag::PartialWarp, site.nameRange, site.name, function.threads.count());
    return error(site.range());
  }
  return allowed;
}

Operand Elaborator::belongsToTiles(SourceRange range, std::string_view name) {
  diags.report(diag::OnlyAtTileLevel, range, name, insteadOfTiles(name));
  return error(range);
}

/// Checks `thread_idx.x`, `block_dim.x` and `global_idx.x`.
Operand Elaborator::threadCoordinate(const ast::AttributeExpr &expr) {
  const auto &base = *expr.base->as<ast::NameExpr>();
  if (kind != BodyKind::Kernel) {
    diags.report(diag::OnlyInKernels, expr.range, base.name);
    return error(expr.range);
  }
  if (!isOfThreads()) {
    diags.report(diag::OnlyAtThreadLevel, base.range, base.name, insteadOfThreads(base.name));
    return error(expr.range);
  }
  const std::string &axis = expr.attribute.text;
  if (axis != "x" && axis != "y" && axis != "z") {
    diags.report(diag::UnknownAttribute, expr.attribute.range, base.name, axis);
    return error(expr.range);
  }
  int64_t number = axis[0] - 'x';
  Operand extent = constant(Value(function.threads.extents[size_t(number)]), expr.range);
  if (base.name == "block_dim")
    return extent;
  Operand thread = result(Kind::ThreadIndex, types.integer(), expr.range, {}, {number});
  if (base.name == "thread_idx")
    return thread;
  Operand block = result(Kind::BlockIndex, types.integer(), expr.range, {}, {number});
  Operand first = binary(ast::BinaryOp::Mul, block, extent, expr.range);
  return binary(ast::BinaryOp::Add, first, thread, expr.range);
}

/// Checks that a function has no arguments.
bool Elaborator::takesNothing(CallSite &site) {
  Arguments arguments(*this, site);
  return arguments.finish();
}

Operand Elaborator::callLaneId(CallSite &site) {
  if (onlyOfThreads(site).isError() || !takesNothing(site))
    return error(site.range());
  Operand thread = result(Kind::ThreadIndex, types.integer(), site.range(), {}, {-1});
  Operand lanes = constant(Value(warpLanes), site.range());
  return runTime(emit(Kind::BitAnd, types.integer(), site.range(),
                      {thread.node, numberAs(constant(Value(warpLanes - 1), lanes.range), DType::Int)}));
}

Operand Elaborator::callWarpId(CallSite &site) {
  if (onlyOfThreads(site).isError() || !takesNothing(site))
    return error(site.range());
  Operand thread = result(Kind::ThreadIndex, types.integer(), site.range(), {}, {-1});
  return runTime(emit(Kind::ShiftRight, types.integer(), site.range(),
                      {thread.node, numberAs(constant(Value(int64_t(5)), site.range()), DType::Int)}));
}

Operand Elaborator::callShared(CallSite &site) {
  if (onlyOfThreads(site).isError())
    return error(site.range());
  const Type *tile = namedTile(site);
  if (!tile)
    return error(site.range());
  return result(Kind::Scratch, types.scratch(tile->element, tile->shape), site.range(), {});
}

Operand Elaborator::barrierOf(CallSite &site, int64_t scope) {
  if (!takesNothing(site))
    return error(site.range());
  emit(Kind::Barrier, types.none, site.range(), {}, {scope});
  return none(site.range());
}

Operand Elaborator::callBarrier(CallSite &site) {
  return onlyOfThreads(site).isError() ? error(site.range()) : barrierOf(site, 2);
}

Operand Elaborator::callSyncWarp(CallSite &site) {
  return onlyOfWarps(site).isError() ? error(site.range()) : barrierOf(site, 1);
}

Operand Elaborator::callClusterSync(CallSite &site) {
  return onlyOfThreads(site).isError() ? error(site.range()) : barrierOf(site, 3);
}

Operand Elaborator::callBlockRank(CallSite &site) {
  if (onlyOfThreads(site).isError() || !takesNothing(site))
    return error(site.range());
  return result(Kind::ClusterRank, types.integer(), site.range(), {});
}

Operand Elaborator::callMapSharedRank(CallSite &site) {
  if (onlyOfThreads(site).isError())
    return error(site.range());
  Arguments arguments(*this, site);
  const ast::Expr *memoryExpr = arguments.take("memory"), *rankExpr = arguments.take("rank");
  if (!arguments.finish())
    return error(site.range());
  Operand memory = check(*memoryExpr);
  Node *rank = intNode(check(*rankExpr), "the rank");
  if (memory.isError() || !rank)
    return error(site.range());
  if (!memory.type->isScratch() || memory.node->kind != Kind::Scratch) {
    diags.report(diag::TypeMismatch, memoryExpr->range, "the argument of `map_shared_rank`", describe(memory),
                 "all of a memory that `shared` has made");
    return error(site.range());
  }
  return result(Kind::SharedOfRank, memory.type, site.range(), {memory.node, rank});
}

/// Checks a value that lanes exchange.
hir::Node *Elaborator::laneValue(const ast::Expr &expr) {
  Operand value = check(expr);
  if (value.isError())
    return nullptr;
  if (!value.type->isScalar()) {
    diags.report(diag::TypeMismatch, expr.range, "the value", describe(value), "a number");
    return nullptr;
  }
  return materialise(value);
}

Operand Elaborator::shuffle(CallSite &site, int64_t shuffleKind, const char *what) {
  if (onlyOfWarps(site).isError())
    return error(site.range());
  Arguments arguments(*this, site);
  const ast::Expr *valueExpr = arguments.take("value"), *byExpr = arguments.take(what);
  if (!arguments.finish())
    return error(site.range());
  Node *value = laneValue(*valueExpr);
  Node *by = intNode(check(*byExpr), fmt::format("`{}`", what));
  if (!value || !by)
    return error(site.range());
  return result(Kind::Shuffle, value->type, site.range(), {value, by}, {shuffleKind});
}

Operand Elaborator::callShuffleIdx(CallSite &site) { return shuffle(site, 0, "lane"); }
Operand Elaborator::callShuffleUp(CallSite &site) { return shuffle(site, 1, "distance"); }
Operand Elaborator::callShuffleDown(CallSite &site) { return shuffle(site, 2, "distance"); }
Operand Elaborator::callShuffleXor(CallSite &site) { return shuffle(site, 3, "mask"); }

Operand Elaborator::vote(CallSite &site, int64_t voteKind, DType answer) {
  if (onlyOfWarps(site).isError())
    return error(site.range());
  Arguments arguments(*this, site);
  const ast::Expr *expr = arguments.take("condition");
  if (!arguments.finish())
    return error(site.range());
  Operand test = check(*expr);
  Node *node = test.isError() ? nullptr : condition(test, expr->range);
  return node ? result(Kind::Vote, types.scalar(answer), site.range(), {node}, {voteKind}) : error(site.range());
}

Operand Elaborator::callBallot(CallSite &site) { return vote(site, 0, DType::UInt32); }
Operand Elaborator::callWarpAny(CallSite &site) { return vote(site, 1, DType::Bool); }
Operand Elaborator::callWarpAll(CallSite &site) { return vote(site, 2, DType::Bool); }

/// Writes an element at thread level, where the value is a number of one thread.
void Elaborator::assignOfThread(const Operand &view, const ViewPlace &place, const Operand &value, SourceRange range) {
  if (!view.type->isMut) {
    diags.report(diag::NotMutable, range);
    return;
  }
  bool fits = value.type->isScalar() && (value.constant ? fitsConstant(*value.constant, view.type->element)
                                                        : value.type->element == view.type->element);
  if (!fits) {
    std::string_view element = valueNameOf(view.type->element);
    DiagnosticBuilder report = diags.report(diag::TypeMismatch, value.range, "the value", describe(value),
                                            "a number of " + std::string(element));
    if (value.type->isScalar())
      report.note(diag::CastConverts, value.range, element);
    return;
  }
  std::vector<Node *> operands = {place.part.node};
  operands.insert(operands.end(), place.indices.begin(), place.indices.end());
  operands.push_back(numberAs(value, view.type->element));
  emit(Kind::SetElement, types.none, range, std::move(operands));
}

/// Appends the operands of an element `x[i, j]`, which is a place and not a value. Returns its type; null after an
/// error.
const Type *Elaborator::elementPlace(const ast::Expr &expr, std::vector<Node *> &operands) {
  auto *index = expr.as<ast::IndexExpr>();
  Operand view = index ? check(*index->base) : check(expr);
  if (view.isError())
    return nullptr;
  std::optional<ViewPlace> place;
  if (index && view.type->kind == TypeKind::View) {
    place = placeOf(view, *index);
    if (!place)
      return nullptr;
  }
  if (!place || static_cast<int>(place->dims.size()) != view.type->rank) {
    diags.report(diag::TypeMismatch, expr.range, "this", describe(view), "an element, such as `x[i, j]`");
    return nullptr;
  }
  operands.push_back(place->part.node);
  operands.insert(operands.end(), place->indices.begin(), place->indices.end());
  return view.type;
}

Operand Elaborator::callAsyncCopy(CallSite &site) {
  if (onlyOfThreads(site).isError() || !hasBrackets(site, "count"))
    return error(site.range());
  Arguments brackets(*this, site, *site.comptimeArguments);
  const ast::Expr *countExpr = brackets.take("count");
  Arguments arguments(*this, site);
  const ast::Expr *targetExpr = arguments.take("target"), *sourceExpr = arguments.take("source");
  if (!brackets.finish() || !arguments.finish())
    return error(site.range());
  auto count = comptimeInt(*countExpr);
  std::vector<Node *> operands, ofTarget;
  const Type *source = elementPlace(*sourceExpr, operands), *target = elementPlace(*targetExpr, ofTarget);
  if (!count || !source || !target)
    return error(site.range());
  if (!target->isScratch() || source->isScratch() || source->element != target->element) {
    diags.report(diag::TypeMismatch, site.range(), "this copy",
                 fmt::format("from {} to {}", source->str(), target->str()),
                 "from a tensor to shared memory of the same elements");
    return error(site.range());
  }
  int64_t bytes = *count * bitsOf(source->element) / 8;
  if (*count < 1 || *count > 16 || source->element == DType::Bool || (bytes != 4 && bytes != 8 && bytes != 16)) {
    diags.report(diag::TypeMismatch, countExpr->range, "the count",
                 fmt::format("{} elements of {}", *count, valueNameOf(source->element)), "4, 8 or 16 bytes");
    return error(site.range());
  }
  operands.insert(operands.end(), ofTarget.begin(), ofTarget.end());
  emit(Kind::CopyAsync, types.none, site.range(), std::move(operands), {*count, source->rank});
  return none(site.range());
}

Operand Elaborator::callCopyCommit(CallSite &site) {
  if (onlyOfThreads(site).isError() || !takesNothing(site))
    return error(site.range());
  emit(Kind::CopyCommit, types.none, site.range());
  return none(site.range());
}

Operand Elaborator::callCopyWait(CallSite &site) {
  if (onlyOfThreads(site).isError())
    return error(site.range());
  Arguments arguments(*this, site);
  const ast::Expr *expr = arguments.take("pending");
  if (!arguments.finish())
    return error(site.range());
  auto pending = comptimeInt(*expr);
  if (!pending)
    return error(site.range());
  if (*pending < 0 || *pending > 7) {
    diags.report(diag::TypeMismatch, expr->range, "`pending`", std::to_string(*pending), "an Int from 0 to 7");
    return error(site.range());
  }
  emit(Kind::CopyWait, types.none, site.range(), {}, {*pending});
  return none(site.range());
}

Operand Elaborator::callCopyWaitAll(CallSite &site) {
  if (onlyOfThreads(site).isError() || !takesNothing(site))
    return error(site.range());
  emit(Kind::CopyCommit, types.none, site.range());
  emit(Kind::CopyWait, types.none, site.range(), {}, {0});
  return none(site.range());
}

Operand Elaborator::callMma(CallSite &site) {
  if (onlyOfWarps(site).isError())
    return error(site.range());
  Arguments arguments(*this, site);
  const ast::Expr *exprs[] = {arguments.take("a"), arguments.take("b"), arguments.take("c")};
  if (!arguments.finish())
    return error(site.range());
  std::vector<Node *> operands;
  DType factor = DType::Float32;
  for (int part = 0; part < 3; ++part) {
    Operand fragment = check(*exprs[part]);
    if (fragment.isError())
      return fragment;
    const std::string name = fmt::format("`{}`", "abc"[part]);
    std::vector<Operand> items = hasItems(fragment) ? itemsOf(fragment) : std::vector<Operand>{};
    if (part == 0 && !items.empty())
      factor = items[0].type->element;
    size_t perLane = factor == DType::Float32 ? 4 : 8;
    size_t wanted = part == 0 ? perLane : part == 1 ? perLane / 2 : 4;
    DType element = part == 2 ? DType::Float32 : factor;
    bool isFactor = factor == DType::Float16 || factor == DType::BFloat16 || factor == DType::Float32;
    bool fits = isFactor && items.size() == wanted;
    for (const Operand &item : items)
      fits = fits && item.type->isScalar() && (item.constant || item.type->element == element);
    if (!fits) {
      diags.report(diag::TypeMismatch, exprs[part]->range, name, describe(fragment),
                   isFactor ? fmt::format("a tuple of {} numbers of {}", wanted, valueNameOf(element))
                            : "a tuple of float16, bfloat16 or float32");
      return error(site.range());
    }
    for (const Operand &item : items)
      operands.push_back(numberAs(item, element));
  }
  Operand product = result(Kind::Mma, types.none, site.range(), std::move(operands));
  std::vector<Operand> sums;
  for (int64_t i = 0; i < 4; ++i)
    sums.push_back(result(Kind::Result, types.scalar(DType::Float32), site.range(), {product.node}, {i}));
  return tuple(std::move(sums), site.range());
}

} // namespace kpkg::compiler
