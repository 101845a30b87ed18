// Compares and prints comptime values.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/comptime/Value.h"
#include "compiler/comptime/FunctionEntity.h"

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

bool Value::operator==(const Value &other) const {
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
  const Sequence &sequence = asSequence();
  std::string text = sequence.isList ? "[" : "(";
  for (size_t i = 0; i < sequence.items.size(); ++i)
    text += (i ? ", " : "") + sequence.items[i].str();
  if (!sequence.isList && sequence.items.size() == 1)
    text += ",";
  return text + (sequence.isList ? "]" : ")");
}

} // namespace kpkg::compiler
