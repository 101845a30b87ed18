// Elaborates the body of one kernel instance or one op.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Elaborator.h"
#include "compiler/check/ReadBack.h"

namespace kpkg::compiler {

bool Elaborator::elaborate(const FunctionEntity &entity, const std::vector<Value> &comptimeArguments,
                           const OpInfo *op) {
  uint32_t errorsBefore = diags.errorCount();
  opName = function.name;
  if (opName.size() > 10 && opName.ends_with("_reference"))
    opName.resize(opName.size() - 10);
  block = &function.body;
  std::vector<Operand> arguments;
  const BodyScope instance = checker.instanceScope(entity, comptimeArguments);
  for (size_t i = 0; i < entity.syntax->parameters.size(); ++i) {
    const ast::Parameter &parameter = entity.syntax->parameters[i];
    if (kind == BodyKind::Kernel) {
      const Type *type = checker.kernelArgumentType(parameter, instance);
      arguments.push_back(kernelArgument(type, parameter, parameter.name.text));
      continue;
    }
    const Type *type = op->argumentTypes[i];
    function.parameters.push_back({parameter.name.text, type, parameter.isMut, parameter.range});
    arguments.push_back(runTime(emit(Kind::Parameter, type, parameter.name.range, {}, {static_cast<int64_t>(i)})));
  }
  std::vector<Value> own(comptimeArguments.begin(),
                         comptimeArguments.begin() + ptrdiff_t(entity.syntax->comptimeParameters.size()));
  Operand value = inlineCall(entity, own, std::move(arguments), entity.syntax->signatureRange);
  if (diags.errorCount() != errorsBefore)
    return false;
  if (kind == BodyKind::Op)
    function.results = op->resultTypes;
  if (value.isError()) // every path raises, so that no value is returned
    return kind == BodyKind::Op;
  std::vector<Node *> results;
  if (kind == BodyKind::Op) {
    std::vector<Operand> items = {value};
    if (value.isTuple())
      items = value.items;
    else if (value.constant && value.type->kind == TypeKind::Tuple) { // only None is a constant result
      items.clear();
      for (const Value &item : value.constant->asSequence().items)
        items.push_back(constant(item, value.range));
    }
    for (size_t i = 0; i < function.results.size(); ++i)
      results.push_back(convert(items[i], function.results[i], "the result"));
  }
  emit(Kind::Return, types.none, entity.syntax->range, std::move(results));
  if (kind == BodyKind::Kernel && !isOfThreads()) // threads see what they wrote themselves, and barriers order the rest
    checkReadBack(function, diags);
  return diags.errorCount() == errorsBefore;
}

} // namespace kpkg::compiler
