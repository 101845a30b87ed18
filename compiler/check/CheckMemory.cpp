// Checks views, windows, loads and stores, and `print` and `assert` of kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Arguments.h"

namespace kpkg::compiler {

Operand Elaborator::gridCoordinate(const ast::AttributeExpr &expr, Kind nodeKind) {
  if (kind != BodyKind::Kernel) {
    diags.report(diag::OnlyInKernels, expr.range, expr.base->as<ast::NameExpr>()->name);
    return error(expr.range);
  }
  static const std::string axes[] = {"x", "y", "z"};
  for (int64_t i = 0; i < 3; ++i)
    if (expr.attribute.text == axes[i])
      return result(nodeKind, types.integer(), expr.range, {}, {i});
  diags.report(diag::UnknownAttribute, expr.attribute.range, expr.base->as<ast::NameExpr>()->name, expr.attribute.text);
  return error(expr.range);
}

Operand Elaborator::viewQuery(Kind nodeKind, const Operand &view, const ast::IndexExpr &expr) {
  auto dim = expr.arguments.size() == 1 ? comptimeInt(*expr.arguments[0].value) : std::nullopt;
  if (!dim)
    return error(expr.range);
  int64_t at = *dim < 0 ? *dim + view.type->rank : *dim;
  if (at < 0 || at >= view.type->rank) {
    diags.report(diag::BadAxis, expr.range, *dim, view.type->str());
    return error(expr.range);
  }
  if (view.type->isScratch() && nodeKind == Kind::ViewShape)
    return constant(Value(view.type->shape[at]), expr.range);
  return result(nodeKind, types.integer(), expr.range, {view.node}, {at});
}

std::optional<Elaborator::ViewPlace> Elaborator::placeOf(const Operand &view, const ast::IndexExpr &expr) {
  if (static_cast<int>(expr.arguments.size()) > view.type->rank) {
    diags.report(diag::RankMismatch, expr.range, "the index", static_cast<int64_t>(expr.arguments.size()),
                 static_cast<int64_t>(view.type->rank));
    return std::nullopt;
  }
  ViewPlace place{view, {}, {}};
  for (size_t i = 0; i < expr.arguments.size(); ++i) {
    const ast::Expr &argument = *expr.arguments[i].value;
    int64_t dim = static_cast<int64_t>(i);
    auto extent = [&] { return runTime(extentOf(view, dim, argument.range)); };
    // Checks a coordinate. Negative constants count from the end, as in NumPy.
    auto coordinate = [&](const ast::Expr &text, std::string_view what) {
      Operand index = check(text);
      if (index.isConstantInt() && index.constant->asInt() < 0)
        index = binary(ast::BinaryOp::Add, extent(), index, text.range);
      return intNode(index, what);
    };
    if (auto *slice = argument.as<ast::SliceExpr>()) {
      if (slice->step) {
        notSupported(argument.range, "a slice with a step in a kernel", "slice in the op that launches the kernel");
        return std::nullopt;
      }
      if (!slice->start && !slice->stop)
        continue;
      constexpr std::string_view what = "a bound of a slice";
      Node *begin = slice->start ? coordinate(*slice->start, what)
                                 : emitConstant(Value(int64_t(0)), types.integer(), argument.range);
      Node *end = slice->stop ? coordinate(*slice->stop, what) : extent().node;
      if (!begin || !end)
        return std::nullopt;
      const Type *type = types.view(view.type->element, view.type->rank, view.type->isMut);
      place.part = result(Kind::SliceView, type, argument.range, {place.part.node, begin, end}, {dim});
      continue;
    }
    Node *node = coordinate(argument, "an index");
    if (!node)
      return std::nullopt;
    place.dims.push_back(dim);
    place.indices.push_back(node);
  }
  return place;
}

Operand Elaborator::indexView(const Operand &view, const ast::IndexExpr &expr) {
  std::optional<ViewPlace> place = placeOf(view, expr);
  if (!place)
    return error(expr.range);
  std::vector<int64_t> &dims = place->dims;
  if (dims.empty())
    return place->part;
  std::vector<Node *> operands = {place->part.node};
  operands.insert(operands.end(), place->indices.begin(), place->indices.end());
  if (static_cast<int>(dims.size()) == view.type->rank) {
    if (combineDepth)
      return notSupported(expr.range, "reading a tensor inside `reduce` or `scan`", "read it before and pass a tile");
    return result(Kind::Element, types.scalar(view.type->element), expr.range, std::move(operands));
  }
  const Type *type = types.view(view.type->element, view.type->rank - static_cast<int>(dims.size()), view.type->isMut);
  return result(Kind::DropDims, type, expr.range, std::move(operands), std::move(dims));
}

/// Checks `.tile[sizes](block coordinates)` and `.window[sizes](element coordinates)`.
Operand Elaborator::blockOf(CallSite &site, bool isTile) {
  if (!hasBrackets(site, "sizes"))
    return error(site.range());
  Arguments brackets(*this, site, *site.comptimeArguments);
  std::vector<const ast::Expr *> sizes = brackets.rest();
  Arguments arguments(*this, site);
  std::vector<const ast::Expr *> coordinates = arguments.rest();
  if (!brackets.finish() || !arguments.finish())
    return error(site.range());
  auto shape = extents(sizes, site.range());
  if (!shape)
    return error(site.range());
  int64_t rank = site.base.type->rank;
  if (static_cast<int64_t>(shape->size()) != rank || static_cast<int64_t>(coordinates.size()) != rank) {
    bool sizesWrong = static_cast<int64_t>(shape->size()) != rank;
    diags.report(diag::RankMismatch, site.range(), sizesWrong ? "the list of sizes" : "the list of coordinates",
                 static_cast<int64_t>(sizesWrong ? shape->size() : coordinates.size()), rank);
    return error(site.range());
  }
  std::vector<Node *> operands = {site.base.node};
  for (int64_t i = 0; i < rank; ++i) {
    Operand coordinate = check(*coordinates[i]);
    if (isTile)
      coordinate = binary(ast::BinaryOp::Mul, coordinate, constant(Value((*shape)[i]), coordinates[i]->range),
                          coordinates[i]->range);
    operands.push_back(intNode(coordinate, "a coordinate"));
  }
  return result(Kind::Window, types.window(site.base.type->element, *shape, site.base.type->isMut), site.range(),
                std::move(operands));
}

Operand Elaborator::viewTile(CallSite &site) { return blockOf(site, true); }
Operand Elaborator::viewWindow(CallSite &site) { return blockOf(site, false); }

Operand Elaborator::windowLoad(CallSite &site) {
  Arguments arguments(*this, site);
  const ast::Expr *fillExpr = arguments.take("fill", false);
  if (!arguments.finish())
    return error(site.range());
  const Type *window = site.base.type;
  Operand zero = constant(window->element == DType::Bool ? Value(false) : Value(int64_t(0)), site.range());
  Node *fill = convert(fillExpr ? check(*fillExpr) : zero, types.scalar(window->element), "`fill`");
  return result(Kind::Load, types.tile(window->element, window->shape), site.range(), {site.base.node, fill});
}

Operand Elaborator::windowStore(CallSite &site) { return writeWindow(Kind::Store, site); }
Operand Elaborator::windowAdd(CallSite &site) { return writeWindow(Kind::AddStore, site); }

/// Checks `.store(value)` and `.add(value)`.
Operand Elaborator::writeWindow(Kind nodeKind, CallSite &site) {
  Arguments arguments(*this, site);
  const ast::Expr *expr = arguments.take("value");
  if (!arguments.finish())
    return error(site.range());
  Operand value = check(*expr);
  if (value.isError())
    return value;
  value.range = expr->range;
  const Type *window = site.base.type;
  if (nodeKind == Kind::AddStore && window->isMut && !isUpdatable(nodeKind, window->element))
    return notUpdatable(site, window->element);
  return writeValue(nodeKind, site.base, value, site.name, site.range());
}

/// Writes a value to a window. `name` is the method or operator in errors.
Operand Elaborator::writeValue(Kind nodeKind, const Operand &base, const Operand &value, std::string_view name,
                               SourceRange range) {
  const Type *window = base.type;
  if (!window->isMut) {
    diags.report(diag::NotMutable, range);
    return error(range);
  }
  const Type *wanted = types.tile(window->element, window->shape);
  bool fits = value.type->isNumeric() && (value.constant ? fitsConstant(*value.constant, window->element)
                                                         : value.type->element == window->element);
  if (!fits) {
    DiagnosticBuilder report =
        diags.report(diag::TypeMismatch, value.range, "the value", describe(value), wanted->str());
    if (value.type->isNumeric())
      report.note(diag::CastConverts, value.range, valueNameOf(window->element));
    return error(range);
  }
  auto shape = broadcastShapes(value.type, wanted, name, value.range);
  if (!shape)
    return error(range);
  if (*shape != window->shape) {
    diags.report(diag::ShapesDiffer, value.range, name, value.type->str(), wanted->str());
    return error(range);
  }
  Node *tile = numberAs(value, window->element, window->shape);
  if (combineDepth)
    return notSupported(range, "a store inside `reduce` or `scan`", "store the result");
  emit(nodeKind, types.none, range, {base.node, tile});
  return none(range);
}

/// Checks `x[i, j] = value`, with an index for every dimension.
void Elaborator::assignElement(const Operand &view, const ast::IndexExpr &index, const Operand &value) {
  std::optional<ViewPlace> place = placeOf(view, index);
  if (!place || value.isError())
    return;
  int rank = view.type->rank;
  if (static_cast<int>(place->dims.size()) != rank) {
    diags.report(diag::NotAssignable, index.range, "a part of a tensor",
                 "an element has an index for every dimension; tiles are written with `.store`");
    return;
  }
  if (isOfThreads())
    return assignOfThread(view, *place, value, index.range);
  std::vector<Node *> operands = {place->part.node};
  operands.insert(operands.end(), place->indices.begin(), place->indices.end());
  const Type *window = types.window(view.type->element, std::vector<int64_t>(rank, 1), view.type->isMut);
  writeValue(Kind::Store, result(Kind::Window, window, index.range, std::move(operands)), value, "=", index.range);
}

Operand Elaborator::viewGather(CallSite &site) {
  Arguments arguments(*this, site);
  IndexedArguments given;
  given.mask = arguments.named("mask");
  given.fill = arguments.named("fill");
  given.indices = arguments.rest();
  if (!arguments.finish())
    return error(site.range());
  const Type *view = site.base.type;
  if (static_cast<int>(given.indices.size()) != view->rank) {
    diags.report(diag::RankMismatch, site.range(), "the list of indices", static_cast<int64_t>(given.indices.size()),
                 static_cast<int64_t>(view->rank));
    return error(site.range());
  }
  return indexed(Kind::Gather, site, given);
}

Operand Elaborator::viewScatter(CallSite &site) { return writeIndexed(Kind::Scatter, site); }
Operand Elaborator::viewAtomicAdd(CallSite &site) { return writeIndexed(Kind::AtomicAdd, site); }
Operand Elaborator::viewAtomicMax(CallSite &site) { return writeIndexed(Kind::AtomicMax, site); }
Operand Elaborator::viewAtomicMin(CallSite &site) { return writeIndexed(Kind::AtomicMin, site); }
Operand Elaborator::viewAtomicExchange(CallSite &site) { return writeIndexed(Kind::AtomicExchange, site); }
Operand Elaborator::viewAtomicCompareExchange(CallSite &site) {
  return writeIndexed(Kind::AtomicCompareExchange, site);
}

/// Returns whether all targets update such elements. Of 16 bits they only add floats.
bool Elaborator::isUpdatable(Kind nodeKind, DType element) {
  bool adds = nodeKind == Kind::AtomicAdd || nodeKind == Kind::AddStore;
  return bitsOf(element) >= 32 || (adds && (element == DType::Float16 || element == DType::BFloat16));
}

Operand Elaborator::notUpdatable(CallSite &site, DType element) {
  return notSupported(site.range(), fmt::format("`.{}` on elements of {}", site.name, valueNameOf(element)),
                      "accumulate in float32 or int32 and convert in another kernel");
}

/// Checks `.scatter(indices..., value, mask=)` and the atomic updates with the same arguments.
Operand Elaborator::writeIndexed(Kind nodeKind, CallSite &site) {
  Arguments arguments(*this, site);
  IndexedArguments given;
  given.mask = arguments.named("mask");
  given.value = arguments.named("value");
  given.expected = nodeKind == Kind::AtomicCompareExchange ? arguments.named("expected") : nullptr;
  given.indices = arguments.rest();
  if (!arguments.finish())
    return error(site.range());
  const Type *view = site.base.type;
  auto takeLast = [&](const ast::Expr *&argument) { // t.scatter(i, j, value)
    if (argument || given.indices.empty())
      return;
    argument = given.indices.back();
    given.indices.pop_back();
  };
  takeLast(given.value);
  if (nodeKind == Kind::AtomicCompareExchange)
    takeLast(given.expected);
  bool lacksValue = !given.value || (nodeKind == Kind::AtomicCompareExchange && !given.expected);
  if (lacksValue || static_cast<int>(given.indices.size()) != view->rank) {
    diags.report(diag::RankMismatch, site.range(), "the list of indices", static_cast<int64_t>(given.indices.size()),
                 static_cast<int64_t>(view->rank));
    return error(site.range());
  }
  if (!view->isMut) {
    diags.report(diag::NotMutable, site.range());
    return error(site.range());
  }
  if (combineDepth)
    return notSupported(site.range(), "`." + std::string(site.name) + "` inside `reduce` or `scan`",
                        "write the result");
  if (nodeKind != Kind::Scatter && !isUpdatable(nodeKind, view->element))
    return notUpdatable(site, view->element);
  return indexed(nodeKind, site, given);
}

/// Checks a value for elements of a view. The result is in error after a report.
Operand Elaborator::elementValue(const ast::Expr &expr, DType wanted, std::string_view what) {
  Operand value = check(expr);
  if (value.isError())
    return value;
  bool fits = value.type->isNumeric() &&
              (value.constant ? fitsConstant(*value.constant, wanted) : value.type->element == wanted);
  if (fits)
    return value;
  std::string_view element = valueNameOf(wanted);
  DiagnosticBuilder report =
      diags.report(diag::TypeMismatch, expr.range, what, describe(value), "a tile of " + std::string(element));
  if (value.type->isNumeric())
    report.note(diag::CastConverts, expr.range, element);
  return error(expr.range);
}

Operand Elaborator::indexed(Kind nodeKind, CallSite &site, const IndexedArguments &given) {
  const Type *view = site.base.type;
  std::vector<Operand> indices;
  std::vector<int64_t> shape;
  auto meet = [&](const Operand &operand) {
    const Type *soFar = shape.empty() ? types.integer() : types.tile(DType::Int, shape);
    auto met = broadcastShapes(soFar, operand.type, site.name, operand.range);
    if (met)
      shape = *met;
    return met.has_value();
  };
  /// Checks a tile of indices or a mask.
  auto checkTile = [&](const ast::Expr &expr, std::string_view what, auto suits, std::string_view wanted) {
    Operand tile = check(expr);
    if (tile.isError())
      return tile;
    if (!tile.type->isNumeric() || !suits(tile.type->element)) {
      diags.report(diag::TypeMismatch, expr.range, what, describe(tile), wanted);
      return error(site.range());
    }
    return meet(tile) ? tile : error(site.range());
  };
  for (const ast::Expr *expr : given.indices) {
    Operand index =
        checkTile(*expr, "an index", [](DType element) { return isInteger(element); }, "a tile of integers");
    if (index.isError())
      return index;
    indices.push_back(index);
  }
  Operand mask, value, expected;
  if (given.mask)
    mask = checkTile(*given.mask, "`mask`", [](DType element) { return element == DType::Bool; }, "a tile of Bool");
  if (given.mask && mask.isError())
    return mask;
  if (given.value) {
    value = elementValue(*given.value, view->element, "the value");
    if (value.isError() || !meet(value))
      return error(site.range());
  }
  if (given.expected) {
    expected = elementValue(*given.expected, view->element, "`expected`");
    if (expected.isError() || !meet(expected))
      return error(site.range());
  }
  if (isOfThreads() && given.mask)
    return notSupported(given.mask->range, "`mask` at thread level", "write `if`");
  if (shape.empty() && !isOfThreads()) {
    diags.report(diag::TypeMismatch, site.range(), "the index", "a scalar", "a tile");
    return error(site.range());
  }
  std::vector<Node *> operands = {site.base.node};
  for (const Operand &index : indices)
    operands.push_back(numberAs(index, DType::Int, shape));
  if (given.value) {
    operands.push_back(numberAs(value, view->element, shape));
  } else {
    Operand zero = constant(view->element == DType::Bool ? Value(false) : Value(int64_t(0)), site.range());
    operands.push_back(convert(given.fill ? check(*given.fill) : zero, types.scalar(view->element), "`fill`"));
  }
  if (given.mask)
    operands.push_back(numberAs(mask, DType::Bool, shape));
  if (given.expected)
    operands.push_back(numberAs(expected, view->element, shape));
  std::vector<int64_t> hasMask = {given.mask != nullptr};
  if (nodeKind == Kind::Scatter) {
    Operand done = result(nodeKind, types.none, site.range(), std::move(operands), std::move(hasMask));
    return done.isError() ? done : none(site.range());
  }
  const Type *type = shape.empty() ? types.scalar(view->element) : types.tile(view->element, shape);
  return result(nodeKind, type, site.range(), std::move(operands), std::move(hasMask));
}

Operand Elaborator::callPrint(CallSite &site) {
  if (Operand allowed = onlyIn(BodyKind::Kernel, site); allowed.isError())
    return allowed;
  std::string format;
  std::vector<Node *> values;
  for (size_t i = 0; i < site.arguments->size(); ++i) {
    const ast::Argument &argument = (*site.arguments)[i];
    auto *text = argument.value->as<ast::StringLiteral>();
    bool isFormat = i == 0 && text && text->value.find("{}") != std::string::npos;
    if (text) {
      std::string escaped;
      for (char c : text->value)
        escaped += !isFormat && (c == '{' || c == '}') ? std::string(2, c) : std::string(1, c);
      format += (i && format.size() ? " " : "") + escaped;
      continue;
    }
    Operand value = check(*argument.value);
    if (value.isError())
      return value;
    Node *node = materialise(value);
    if (!node || !node->type->isNumeric()) {
      diags.report(diag::OperandUnfit, argument.range, "print", describe(value));
      return error(site.range());
    }
    values.push_back(node);
    size_t places = 0;
    for (size_t at = 0; (at = format.find("{}", at)) != std::string::npos; at += 2)
      ++places;
    if (places < values.size())
      format += format.empty() ? "{}" : " {}";
  }
  emit(Kind::Print, types.none, site.range(), std::move(values))->text = format;
  return none(site.range());
}

Operand Elaborator::callDebugAssert(CallSite &site) {
  if (Operand allowed = onlyIn(BodyKind::Kernel, site); allowed.isError())
    return allowed;
  Arguments arguments(*this, site);
  const ast::Expr *test = arguments.take("condition");
  const ast::Expr *messageExpr = arguments.take("message", false);
  if (!arguments.finish())
    return error(site.range());
  Operand holds = check(*test);
  auto message = messageExpr ? comptime(*messageExpr) : std::optional(Value(std::string("debug_assert failed")));
  if (holds.isError() || !message)
    return error(site.range());
  if (!holds.type->isNumeric() || holds.type->element != DType::Bool) {
    diags.report(diag::ConditionNotBool, test->range, describe(holds));
    return error(site.range());
  }
  emit(Kind::Assert, types.none, site.range(), {materialise(holds)})->text =
      message->isString() ? message->asString() : message->str();
  return none(site.range());
}

} // namespace kpkg::compiler
