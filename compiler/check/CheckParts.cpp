// Checks parts of tiles and of words: indices, concat, stack, split, flip, roll and unpack.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Arguments.h"

#include <algorithm>
#include <utility>

namespace kpkg::compiler {

/// Returns the elements that an index selects, by Python's rules. Slices are clipped to the extent.
std::optional<Elaborator::Selection> Elaborator::selection(const ast::Expr &index, int64_t extent) {
  auto *slice = index.as<ast::SliceExpr>();
  if (!slice) {
    auto value = comptimeInt(index);
    if (!value)
      return std::nullopt;
    int64_t at = *value < 0 ? *value + extent : *value;
    if (at < 0 || at >= extent) {
      diags.report(diag::IndexOutside, index.range, *value, extent);
      return std::nullopt;
    }
    return Selection{.offset = at, .size = 1, .isDropped = true};
  }
  int64_t step = 1;
  if (slice->step) {
    auto value = comptimeInt(*slice->step);
    if (!value)
      return std::nullopt;
    if (*value == 0) {
      diags.report(diag::ZeroStep, slice->step->range);
      return std::nullopt;
    }
    step = std::clamp(*value, -maxTileElements, maxTileElements);
  }
  // Backwards the first element is the last one, and the bound after the last element is -1.
  int64_t low = step < 0 ? -1 : 0, high = step < 0 ? extent - 1 : extent;
  int64_t bounds[2] = {step < 0 ? high : low, step < 0 ? low : high};
  const ast::ExprPtr *texts[2] = {&slice->start, &slice->stop};
  for (int i = 0; i < 2; ++i) {
    if (!*texts[i])
      continue;
    auto value = comptimeInt(**texts[i]);
    if (!value)
      return std::nullopt;
    bounds[i] = std::clamp(*value < 0 ? *value + extent : *value, low, high);
  }
  int64_t distance = (bounds[1] - bounds[0]) * (step < 0 ? -1 : 1);
  if (distance <= 0) {
    diags.report(diag::EmptySlice, index.range, extent);
    return std::nullopt;
  }
  int64_t length = std::abs(step);
  return Selection{.offset = bounds[0], .step = step, .size = (distance + length - 1) / length};
}

/// Returns the selection of each dimension. `...` and missing items select all.
std::optional<std::vector<Elaborator::Selection>> Elaborator::selections(const Operand &tile,
                                                                         const ast::IndexExpr &expr) {
  const std::vector<int64_t> &shape = tile.type->shape;
  auto isEllipsis = [](const ast::Argument &item) { return item.value->is<ast::EllipsisExpr>(); };
  size_t ellipses = std::count_if(expr.arguments.begin(), expr.arguments.end(), isEllipsis);
  size_t items = expr.arguments.size() - ellipses;
  if (ellipses > 1) {
    notSupported(expr.range, "a second `...` in an index", "write each `:`");
    return std::nullopt;
  }
  if (items > shape.size()) {
    diags.report(diag::RankMismatch, expr.range, "the index", static_cast<int64_t>(items),
                 static_cast<int64_t>(shape.size()));
    return std::nullopt;
  }
  std::vector<Selection> result;
  auto takeAll = [&](size_t count) {
    for (; count > 0; --count)
      result.push_back({.size = shape[result.size()]});
  };
  for (const ast::Argument &item : expr.arguments) {
    if (isEllipsis(item)) {
      takeAll(shape.size() - items);
      continue;
    }
    auto one = selection(*item.value, shape[result.size()]);
    if (!one)
      return std::nullopt;
    result.push_back(*one);
  }
  takeAll(shape.size() - result.size());
  return result;
}

hir::Node *Elaborator::extract(Node *tile, const std::vector<Selection> &dims, SourceRange range) {
  std::vector<int64_t> shape, offsets, steps;
  for (const Selection &dim : dims) {
    shape.push_back(dim.size);
    offsets.push_back(dim.offset);
    steps.push_back(dim.size == 1 ? 1 : dim.step);
  }
  bool isWhole =
      shape == tile->type->shape && std::all_of(steps.begin(), steps.end(), [](int64_t step) { return step == 1; });
  if (isWhole)
    return tile;
  offsets.insert(offsets.end(), steps.begin(), steps.end());
  return emit(Kind::Extract, types.tile(tile->type->element, std::move(shape)), range, {tile}, std::move(offsets));
}

/// Selects elements along one axis and all elements along the others.
hir::Node *Elaborator::extractAlong(Node *tile, int64_t axis, Selection along, SourceRange range) {
  std::vector<Selection> dims;
  for (int64_t extent : tile->type->shape)
    dims.push_back({.size = extent});
  dims[axis] = along;
  return extract(tile, dims, range);
}

Operand Elaborator::indexTile(const Operand &tile, const ast::IndexExpr &expr) {
  auto dims = selections(tile, expr);
  if (!dims)
    return error(expr.range);
  std::vector<int64_t> kept;
  for (const Selection &dim : *dims)
    if (!dim.isDropped)
      kept.push_back(dim.size);
  Node *part = extract(tile.node, *dims, expr.range);
  if (kept.empty())
    return result(Kind::ScalarOf, types.scalar(part->type->element), expr.range, {part});
  if (kept != part->type->shape)
    part = emit(Kind::Reshape, types.tile(part->type->element, std::move(kept)), expr.range, {part});
  return runTime(part);
}

hir::Node *Elaborator::tileWithAxis(CallSite &site, std::string_view count, int64_t &number, int64_t &axis) {
  if (onlyIn(BodyKind::Kernel, site).isError())
    return nullptr;
  Arguments arguments(*this, site);
  const ast::Expr *text = arguments.take("tile");
  const ast::Expr *countText = count.empty() ? nullptr : arguments.take(count);
  const ast::Expr *axisText = arguments.take("axis");
  if (!arguments.finish())
    return nullptr;
  Operand tile = check(*text);
  if (tile.isError())
    return nullptr;
  if (!tile.type->isTile()) {
    diags.report(diag::TypeMismatch, text->range, "this", describe(tile), "Tile");
    return nullptr;
  }
  if (countText) {
    auto value = comptimeInt(*countText);
    if (!value)
      return nullptr;
    number = *value;
  }
  auto at = axisOf(*axisText, tile.type);
  if (!at)
    return nullptr;
  axis = *at;
  return tile.node;
}

Operand Elaborator::callSplit(CallSite &site) {
  int64_t count = 0, axis = 0;
  Node *tile = tileWithAxis(site, "n", count, axis);
  if (!tile)
    return error(site.range());
  int64_t extent = tile->type->shape[axis];
  if (count < 1 || extent % count != 0) {
    diags.report(diag::UnevenSplit, site.range(), extent, count);
    return error(site.range());
  }
  std::vector<Operand> parts;
  for (int64_t i = 0, size = extent / count; i < count; ++i)
    parts.push_back(runTime(extractAlong(tile, axis, {.offset = i * size, .size = size}, site.range())));
  return tuple(std::move(parts), site.range());
}

Operand Elaborator::callFlip(CallSite &site) {
  int64_t none = 0, axis = 0;
  Node *tile = tileWithAxis(site, "", none, axis);
  if (!tile)
    return error(site.range());
  int64_t extent = tile->type->shape[axis];
  return runTime(extractAlong(tile, axis, {.offset = extent - 1, .step = -1, .size = extent}, site.range()));
}

Operand Elaborator::callRoll(CallSite &site) {
  int64_t count = 0, axis = 0;
  Node *tile = tileWithAxis(site, "n", count, axis);
  if (!tile)
    return error(site.range());
  int64_t extent = tile->type->shape[axis], begin = (extent - count % extent) % extent;
  if (begin == 0)
    return runTime(tile);
  Node *last = extractAlong(tile, axis, {.offset = begin, .size = extent - begin}, site.range());
  return join(site, {last, extractAlong(tile, axis, {.size = begin}, site.range())}, axis);
}

std::vector<hir::Node *> Elaborator::tilesToJoin(CallSite &site, const ast::Expr *&axis) {
  if (onlyIn(BodyKind::Kernel, site).isError())
    return {};
  Arguments arguments(*this, site);
  axis = arguments.named("axis");
  std::vector<const ast::Expr *> texts = arguments.rest();
  if (!arguments.finish())
    return {};
  if (texts.empty() || !axis) {
    diags.report(diag::MissingArgument, site.range(), site.name, texts.empty() ? "tile" : "axis");
    return {};
  }
  std::vector<Operand> tiles;
  for (const ast::Expr *text : texts) {
    Operand given = check(*text);
    if (given.isTuple()) // as of `split`
      tiles.insert(tiles.end(), given.items.begin(), given.items.end());
    else
      tiles.push_back(given);
  }
  std::vector<Node *> nodes;
  for (const Operand &tile : tiles) {
    if (tile.isError())
      return {};
    if (!tile.type->isTile()) {
      diags.report(diag::TypeMismatch, tile.range, "this", describe(tile), "Tile");
      return {};
    }
    if (tile.type->element != tiles.front().type->element) {
      diags.report(diag::OperandsDiffer, tile.range, site.name, describe(tiles.front()), describe(tile),
                   "cast one to the other's element type");
      return {};
    }
    if (tile.type->shape.size() != tiles.front().type->shape.size()) {
      diags.report(diag::ShapesDiffer, tile.range, site.name, tiles.front().type->str(), tile.type->str());
      return {};
    }
    nodes.push_back(tile.node);
  }
  return nodes;
}

Operand Elaborator::join(CallSite &site, std::vector<Node *> parts, int64_t axis) {
  std::vector<int64_t> shape = parts.front()->type->shape;
  shape[axis] = 0;
  int64_t size = 0;
  for (Node *part : parts) {
    std::vector<int64_t> own = part->type->shape;
    shape[axis] += std::exchange(own[axis], shape[axis] + own[axis]);
    if (own != shape) {
      diags.report(diag::ShapesDiffer, site.range(), site.name, parts.front()->type->str(), part->type->str());
      return error(site.range());
    }
    size += part->type->size();
  }
  if (size > maxTileElements) {
    diags.report(diag::TileTooLarge, site.range(), maxTileElements);
    return error(site.range());
  }
  if (parts.size() == 1)
    return runTime(parts.front());
  const Type *joined = types.tile(parts.front()->type->element, std::move(shape));
  return result(Kind::Join, joined, site.range(), std::move(parts), {axis});
}

Operand Elaborator::callConcat(CallSite &site) {
  const ast::Expr *axisText = nullptr;
  std::vector<Node *> tiles = tilesToJoin(site, axisText);
  auto axis = tiles.empty() ? std::nullopt : axisOf(*axisText, tiles.front()->type);
  return axis ? join(site, std::move(tiles), *axis) : error(site.range());
}

Operand Elaborator::callStack(CallSite &site) {
  const ast::Expr *axisText = nullptr;
  std::vector<Node *> tiles = tilesToJoin(site, axisText);
  if (tiles.empty())
    return error(site.range());
  const Type *type = tiles.front()->type;
  std::vector<int64_t> shape = type->shape;
  shape.push_back(1); // the axis counts dimensions of the result
  auto axis = axisOf(*axisText, types.tile(type->element, shape));
  if (!axis)
    return error(site.range());
  shape = type->shape;
  shape.insert(shape.begin() + *axis, 1);
  for (Node *&tile : tiles) {
    if (tile->type != type) {
      diags.report(diag::ShapesDiffer, site.range(), site.name, type->str(), tile->type->str());
      return error(site.range());
    }
    tile = emit(Kind::Reshape, types.tile(type->element, shape), site.range(), {tile});
  }
  return join(site, std::move(tiles), *axis);
}

Operand Elaborator::tileUnpack(CallSite &site) {
  if (Operand allowed = onlyIn(BodyKind::Kernel, site); allowed.isError() || !hasBrackets(site, "bits"))
    return error(site.range());
  Arguments brackets(*this, site, *site.comptimeArguments);
  const ast::Expr *bitsText = brackets.take("bits");
  Arguments arguments(*this, site);
  const ast::Expr *signedText = arguments.named("signed");
  if (!brackets.finish() || !arguments.finish())
    return error(site.range());
  auto fieldType = comptime(*bitsText);
  auto hasSign = signedText ? comptime(*signedText) : std::optional(Value(false));
  if (!fieldType || !hasSign)
    return error(site.range());
  if (!hasSign->isBool()) {
    diags.report(diag::TypeMismatch, signedText->range, "`signed`", hasSign->str(), "True or False");
    return error(site.range());
  }
  std::optional<DType> packed = fieldType->isDType() ? std::optional(fieldType->asDType()) : std::nullopt;
  int64_t bits = packed ? bitsOf(*packed) : fieldType->isInt() ? fieldType->asInt() : 0;
  if (packed ? !isPacked(*packed) : bits != 1 && bits != 2 && bits != 4) {
    diags.report(diag::FieldBits, bitsText->range, fieldType->str());
    return error(site.range());
  }
  if (packed && signedText)
    return notSupported(signedText->range, fmt::format("`signed=` of {}", fieldType->str()),
                        "leave it out: the dtype says whether fields have a sign");
  const Type *words = site.base.type;
  if (!words->isTile() || words->shape.empty() || !isInteger(words->element) || words->element == DType::Int) {
    diags.report(diag::OperandUnfit, site.range(), "unpack[" + fieldType->str() + "]", describe(site.base));
    return error(site.range());
  }
  std::vector<int64_t> shape = words->shape;
  int64_t fields = bitsOf(words->element) / bits;
  shape.back() *= fields;
  if (words->size() * fields > maxTileElements) {
    diags.report(diag::TileTooLarge, site.range(), maxTileElements);
    return error(site.range());
  }
  // Float16 is the narrowest type with arithmetic that holds all numbers of float4_e2m1fn.
  bool isOfFloats = packed && isFloat(*packed);
  bool inTwosComplement = packed ? isSigned(*packed) : hasSign->asBool();
  return result(Kind::Unpack, types.tile(isOfFloats ? DType::Float16 : DType::Int8, std::move(shape)), site.range(),
                {site.base.node}, {bits, inTwosComplement ? 1 : 0, isOfFloats ? 1 : 0});
}

} // namespace kpkg::compiler
