// Compares and prints comptime values.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/comptime/Value.h"
#include "compiler/comptime/FunctionEntity.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace kpkg::compiler {

Value Value::tuple(std::vector<Value> items) {
  Value value;
  value.data = std::make_shared<const Sequence>(Sequence{false, std::move(items)});
  return value;
}

Value Value::list(std::vector<Value> items) {
  Value value;
  value.data = std::make_shared<const Sequence>(Sequence{true, std::move(items)});
  return value;
}

Value Value::structure(StructValue members) {
  Value value;
  value.data = std::make_shared<const StructValue>(std::move(members));
  return value;
}

bool Value::isWhole() const {
  if (isSequence())
    return std::all_of(asSequence().items.begin(), asSequence().items.end(),
                       [](const Value &item) { return item.isWhole(); });
  return !isStruct() || std::all_of(asStruct().members.begin(), asStruct().members.end(),
                                    [](const std::optional<Value> &member) { return member && member->isWhole(); });
}

bool Value::operator==(const Value &other) const {
  if (isStruct() && other.isStruct())
    return asStruct().structure == other.asStruct().structure && asStruct().members == other.asStruct().members;
  if (isSequence() && other.isSequence())
    return asSequence().isList == other.asSequence().isList && asSequence().items == other.asSequence().items;
  return data == other.data;
}

static std::string printFloat(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  char buffer[64];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos)
    text += ".0";
  return text;
}

/// Returns `Window[SIZE=3](stride=2)`.
static std::string printStruct(const StructValue &value) {
  const StructEntity &structure = *value.structure;
  std::string text = structure.name();
  size_t parameters = structure.parameterCount();
  for (size_t i = 0; i < value.members.size(); ++i) {
    text += i == parameters ? "(" : i == 0 ? "[" : ", ";
    text += structure.member(i).text + "=" + (value.members[i] ? value.members[i]->str() : "?");
    if (i + 1 == parameters)
      text += "]";
  }
  return text + (value.members.size() > parameters ? ")" : "()");
}

std::string Value::str() const {
  if (isNone())
    return "None";
  if (isBool())
    return asBool() ? "True" : "False";
  if (isInt())
    return std::to_string(asInt());
  if (isFloat())
    return printFloat(asFloat());
  if (isString())
    return "\"" + asString() + "\"";
  if (isDType())
    return asDType() == DType::Int ? "Int" : std::string(valueNameOf(asDType()));
  if (isFunction())
    return asFunction()->name();
  if (isStructName())
    return asStructName()->name();
  if (isStruct())
    return printStruct(asStruct());
  const Sequence &sequence = asSequence();
  std::string text = sequence.isList ? "[" : "(";
  for (size_t i = 0; i < sequence.items.size(); ++i)
    text += (i ? ", " : "") + sequence.items[i].str();
  if (!sequence.isList && sequence.items.size() == 1)
    text += ",";
  return text + (sequence.isList ? "]" : ")");
}

} // namespace kpkg::compiler
