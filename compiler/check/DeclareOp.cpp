// Declares ops and their schemas, from the decorators.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Frame.h"
#include "runtime/plan/Limits.h"

#include <algorithm>

namespace kpkg::compiler {

/// Returns the type in PyTorch's schema language, or an empty string.
static std::string schemaType(const Type *type) {
  if (type->isTensor())
    return "Tensor";
  if (type->isOptionalTensor())
    return "Tensor?";
  if (type->isScalar(DType::Int))
    return "int";
  if (type->isScalar(DType::Bool))
    return "bool";
  if (type->isScalar(DType::Float64) || type->isScalar(DType::Float32))
    return "float";
  if (type->isOptionalFloat())
    return "float?";
  if (type->kind == TypeKind::List)
    return "int[]";
  if (type->kind == TypeKind::TensorList)
    return "Tensor[]";
  if (type->kind == TypeKind::DType)
    return "ScalarType";
  if (type->isOptionalDType())
    return "ScalarType?";
  if (type->kind == TypeKind::String)
    return "str";
  return "";
}

static bool defaultFits(const Value &value, const std::string &type) {
  if (type == "Tensor?" || type == "ScalarType?")
    return value.isNone();
  if (type == "float?")
    return value.isNone() || value.isInt() || value.isFloat();
  if (type == "int")
    return value.isInt();
  if (type == "bool")
    return value.isBool();
  if (type == "float")
    return value.isInt() || value.isFloat();
  if (type == "str")
    return value.isString();
  if (type == "int[]") {
    if (!value.isSequence())
      return false;
    for (const Value &item : value.asSequence().items)
      if (!item.isInt())
        return false;
    return true;
  }
  return false;
}

static std::string schemaOf(const std::string &name, const OpRecord &op) {
  std::string text = name.substr(name.rfind(':') + 1) + "(";
  char alias = 'a';
  for (size_t i = 0; i < op.arguments.size(); ++i) {
    const OpArgument &argument = op.arguments[i];
    std::string type = argument.type;
    if (argument.isMut)
      type.insert(6, std::string("(") + alias++ + "!)"); // after "Tensor"
    text += (i ? ", " : "") + type + " " + argument.name;
    if (argument.hasDefault)
      text += "=" + argument.defaultValue.str();
  }
  text += ") -> ";
  if (op.results.size() == 1)
    return text + op.results[0];
  text += "(";
  for (size_t i = 0; i < op.results.size(); ++i)
    text += (i ? ", " : "") + op.results[i];
  return text + ")";
}

bool Checker::isWithin(const FunctionEntity &function, size_t count, const char *what, size_t most) {
  if (count <= most)
    return true;
  diags.report(diag::OpTooWide, function.syntax->signatureRange, function.name(), int64_t(count), what, int64_t(most));
  return false;
}

bool Checker::declareResults(const FunctionEntity &function, OpInfo &info, OpRecord &record) {
  const ast::FunctionStmt &syntax = *function.syntax;
  if (!syntax.resultType)
    return true;
  TypeSpec spec = resolveType(*syntax.resultType, *function.module);
  std::vector<const Type *> results;
  if (spec.kind == TypeSpec::AnyTensor)
    results = {types.tensor};
  else if (spec.kind == TypeSpec::Exact && spec.exact->kind == TypeKind::Tuple)
    results = spec.exact->items;
  else if (spec.kind == TypeSpec::Exact && !spec.exact->isNone())
    results = {spec.exact};
  else if (spec.kind != TypeSpec::Exact && spec.kind != TypeSpec::Wrong)
    results = {types.error};
  for (const Type *type : results) {
    if (!type->isTensor() && !type->isOptionalTensor()) {
      if (spec.kind == TypeSpec::Struct)
        diags.report(diag::StructInSchema, syntax.resultType->range, spec.str());
      else
        diags.report(diag::OpResult, syntax.resultType->range, spec.str());
      return false;
    }
    info.resultTypes.push_back(type);
    record.results.push_back(type->isTensor() ? "Tensor" : "Tensor?");
  }
  return isWithin(function, results.size(), "results", plan::Limits::results) && spec.kind != TypeSpec::Wrong;
}

static bool isWord(std::string_view text) {
  bool word = !text.empty() && !(text[0] >= '0' && text[0] <= '9');
  for (char c : text)
    word &= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  return word;
}

std::string withParameters(std::string text, const OpInfo &op) {
  for (size_t i = 0; i < op.parameters.size(); ++i) {
    const std::string place = "{" + op.function->syntax->comptimeParameters[i].name.text + "}";
    const Value &value = op.parameters[i];
    const std::string shown = value.isString() ? value.asString() : value.str();
    for (size_t at = text.find(place); at != std::string::npos; at = text.find(place, at + shown.size()))
      text.replace(at, place.size(), shown);
  }
  return text;
}

/// Returns the text with which the decorator names the op; null if it has another form.
static const ast::StringLiteral *opNameOf(const ast::Decorator &decorator, OpUse use) {
  size_t names = use == OpUse::Backward ? decorator.arguments.size() : 1; // `saves` may follow
  return !decorator.arguments.empty() && decorator.arguments.size() == names && !decorator.arguments[0].name
             ? decorator.arguments[0].value->as<ast::StringLiteral>()
             : nullptr;
}

bool Checker::nameOp(const ast::Decorator &decorator, OpUse use, const std::string &name, SourceRange nameRange,
                     OpRecord &record) {
  size_t colons = name.find("::");
  if (colons == std::string::npos || !isWord(name.substr(0, colons)) || !isWord(name.substr(colons + 2))) {
    DiagnosticBuilder report = diags.report(diag::OpName, decorator.range, decorator.name);
    if (name.find('{') != std::string::npos)
      report.note(diag::NameParameter, nameRange);
    return false;
  }
  const size_t index = program.opRecords.size();
  record.name = name + (use == OpUse::Reference ? "_reference" : use == OpUse::Backward ? "_autograd" : "");
  if (use == OpUse::Reference)
    references.emplace_back(index, name);
  if (use == OpUse::Backward)
    backwards.emplace_back(index, name, &decorator);
  auto [known, isNew] = opByName.emplace(record.name, index);
  if (!isNew)
    diags.report(diag::DuplicateOp, nameRange, record.name)
        .note(diag::DeclaredHere, program.opRecords[known->second].range, record.name);
  return isNew;
}

bool Checker::declareDefault(const OpInfo &info, const ast::Expr &expr, const Type *type, OpArgument &argument) {
  auto value = evaluator.evaluate(expr, *info.function->module);
  if (!value)
    return false;
  bool fits = argument.type.empty() || defaultFits(*value, argument.type);
  if (!fits)
    diags.report(diag::TypeMismatch, expr.range, "the default", value->str(), type->str());
  argument.hasDefault = true;
  argument.defaultValue = argument.type.starts_with("float") && value->isInt() ? Value(value->asNumber()) : *value;
  if (argument.type == "int[]" && value->isSequence())
    argument.defaultValue = Value::list(value->asSequence().items);
  return fits;
}

bool Checker::declareOpArgument(const ast::Parameter &parameter, OpInfo &info, OpRecord &record) {
  OpArgument argument;
  argument.name = parameter.name.text;
  argument.isMut = parameter.isMut;
  const Type *type = types.error;
  if (!parameter.type) {
    diags.report(diag::NeedsType, parameter.range, parameter.name.text);
  } else {
    TypeSpec spec = resolveType(*parameter.type, *info.function->module);
    if (spec.kind == TypeSpec::AnyTensor)
      type = types.tensor;
    else if (spec.kind == TypeSpec::Exact)
      type = spec.exact->isScalar(DType::Float32) ? types.scalar(DType::Float64) : spec.exact;
    argument.type = schemaType(type);
    if (spec.kind == TypeSpec::Struct)
      diags.report(diag::StructInSchema, parameter.type->range, spec.str())
          .note(diag::DeclaredHere, spec.structure->syntax->signatureRange, spec.structure->name());
    else if (argument.type.empty() && spec.kind != TypeSpec::Wrong)
      diags.report(diag::SchemaType, parameter.type->range, spec.str());
  }
  bool isWrong = argument.type.empty();
  if (parameter.isMut && !type->isError() && !type->isTensor() && type->kind != TypeKind::TensorList) {
    diags.report(diag::MutScalar, parameter.range, parameter.name.text);
    isWrong = true;
  }
  if (parameter.defaultValue)
    isWrong |= !declareDefault(info, *parameter.defaultValue, type, argument);
  info.argumentTypes.push_back(type);
  record.arguments.push_back(std::move(argument));
  return !isWrong;
}

void Checker::declareOps(FunctionEntity &function, const ast::Decorator &decorator, OpUse use) {
  const ast::FunctionStmt &syntax = *function.syntax;
  if (syntax.comptimeParameters.empty() || !syntax.findDecorator("specialize")) {
    function.role = FunctionRole::Op;
    function.index = program.opRecords.size();
    declareOp(function, decorator, use, {});
    return;
  }
  // Other functions may call this one with values in brackets. It then is inlined, and no call of an op.
  KernelRecord signature;
  std::vector<std::vector<Value>> instances;
  if (!declareKernelParameters(function, signature) || !specialisations(function, signature.parameters, instances))
    return;
  for (std::vector<Value> &values : instances)
    declareOp(function, decorator, use, std::move(values));
}

void Checker::declareOp(const FunctionEntity &function, const ast::Decorator &decorator, OpUse use,
                        std::vector<Value> parameters) {
  const ast::FunctionStmt &syntax = *function.syntax;
  OpRecord record;
  record.range = syntax.name.range;
  record.isReference = use == OpUse::Reference;
  record.isBackward = use == OpUse::Backward;
  OpInfo info;
  info.function = &function;
  info.parameters = std::move(parameters);
  record.doc = withParameters(syntax.doc, info);

  const ast::StringLiteral *literal = opNameOf(decorator, use);
  const std::string name = literal ? withParameters(literal->value, info) : "";
  bool isWrong = !nameOp(decorator, use, name, literal ? literal->range : decorator.range, record);
  if (info.parameters.size() != syntax.comptimeParameters.size()) {
    diags.report(diag::OpParameters, syntax.comptimeParameters[0].range, function.name());
    isWrong = true;
  }
  if (std::string space = name.substr(0, name.find("::")); plan::isReservedNamespace(space)) {
    diags.report(diag::ReservedNamespace, literal->range, space);
    isWrong = true;
  }
  isWrong |= !isWithin(function, syntax.parameters.size(), "arguments", plan::Limits::parameters);
  bool anyMut = false;
  for (const ast::Parameter &parameter : syntax.parameters) {
    anyMut |= parameter.isMut;
    isWrong |= !declareOpArgument(parameter, info, record);
  }
  isWrong |= !declareResults(function, info, record);
  if (const ast::Decorator *torch = syntax.findDecorator("register.torch"))
    isWrong |= !declareTorch(info, *torch, record);
  if (!syntax.resultType && returnsValue(syntax.body)) {
    diags.report(diag::UnexpectedResult, syntax.signatureRange, function.name(), "a value");
    isWrong = true;
  }
  if (record.results.empty() && !anyMut && !isWrong) {
    diags.report(diag::OpWithoutResult, syntax.signatureRange, function.name());
    isWrong = true;
  }
  info.isWrong = isWrong;
  if (!isWrong)
    record.schema = schemaOf(record.name, record);
  opInfos.push_back(std::move(info));
  opBodies.emplace_back();
  program.opRecords.push_back(std::move(record));
}

void Checker::linkReferences() {
  for (const auto &[reference, name] : references) {
    auto found = opByName.find(name);
    if (found == opByName.end()) {
      diags.report(diag::UnknownOp, program.opRecords[reference].range, name);
      continue;
    }
    OpRecord &op = program.opRecords[found->second];
    const OpRecord &definition = program.opRecords[reference];
    if (opInfos[reference].isWrong || opInfos[found->second].isWrong)
      continue;
    if (schemaOf(op.name, op) != schemaOf(op.name, definition))
      diags.report(diag::ReferenceDiffers, definition.range, definition.schema, op.schema)
          .note(diag::DeclaredHere, op.range, op.name);
    op.reference = definition.name;
  }
}

} // namespace kpkg::compiler
