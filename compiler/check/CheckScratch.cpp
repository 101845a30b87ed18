// Checks scratch memory: its creation, and accesses to all of it. Otherwise it is a view like those of tensors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Arguments.h"

namespace kpkg::compiler {

Operand Elaborator::callScratch(CallSite &site) {
  if (Operand allowed = onlyIn(BodyKind::Kernel, site); allowed.isError())
    return allowed;
  const Type *tile = namedTile(site);
  if (!tile)
    return error(site.range());
  if (combineDepth)
    return notSupported(site.range(), "`scratch` inside `reduce` or `scan`", "use tiles there");
  return result(Kind::Scratch, types.scratch(tile->element, tile->shape), site.range(), {});
}

hir::Node *Elaborator::extentOf(const Operand &view, int64_t dim, SourceRange range) {
  if (view.type->isScratch())
    return emitConstant(Value(view.type->shape[dim]), types.integer(), range);
  return emit(Kind::ViewShape, types.integer(), range, {view.node}, {dim});
}

/// Returns the block that is all of the memory.
Operand Elaborator::wholeOf(const Operand &scratch, SourceRange range) {
  std::vector<Node *> operands = {scratch.node};
  for (size_t i = 0; i < scratch.type->shape.size(); ++i)
    operands.push_back(emitConstant(Value(int64_t(0)), types.integer(), range));
  return result(Kind::Window, types.window(scratch.type->element, scratch.type->shape, /*isMut=*/true), range,
                std::move(operands));
}

Operand Elaborator::scratchLoad(CallSite &site) {
  Arguments arguments(*this, site);
  if (!arguments.finish())
    return error(site.range());
  Operand whole = wholeOf(site.base, site.range());
  DType element = whole.type->element;
  Operand zero = constant(element == DType::Bool ? Value(false) : Value(int64_t(0)), site.range());
  Node *fill = convert(zero, types.scalar(element), "`fill`"); // of no element
  return result(Kind::Load, types.tile(element, whole.type->shape), site.range(), {whole.node, fill});
}

Operand Elaborator::scratchStore(CallSite &site) {
  site.base = wholeOf(site.base, site.range());
  return writeWindow(Kind::Store, site);
}

} // namespace kpkg::compiler
