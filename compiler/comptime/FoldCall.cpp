// Implements built-in functions on comptime values.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/comptime/Fold.h"

#include <cmath>
#include <map>

namespace kpkg::compiler {
namespace {

using Arguments = std::vector<Value>;
using Function = Folded (*)(const Arguments &);

bool isNumber(const Value &value) { return value.isInt() || value.isFloat(); }

Folded wrong(const char *name, const Arguments &arguments) {
  std::string text = "`" + std::string(name) + "` is not for (";
  for (size_t i = 0; i < arguments.size(); ++i)
    text += (i ? ", " : "") + kindName(arguments[i]);
  return Folded::failure(text + ")");
}

template <double (*F)(double)> Folded floatFunction(const Arguments &arguments) {
  if (arguments.size() != 1 || !isNumber(arguments[0]))
    return wrong("function", arguments);
  return Value(F(arguments[0].asNumber()));
}

/// min and max propagate NaN, as everywhere in the language.
template <bool IsMax> Folded extreme(const Arguments &arguments) {
  if (arguments.empty())
    return wrong(IsMax ? "max" : "min", arguments);
  bool anyFloat = false;
  for (const Value &value : arguments) {
    if (!isNumber(value))
      return wrong(IsMax ? "max" : "min", arguments);
    anyFloat |= value.isFloat();
  }
  Value best = arguments[0];
  for (const Value &value : arguments) {
    if (std::isnan(value.asNumber()))
      return value;
    bool better = best.isInt() && value.isInt()
                      ? (IsMax ? value.asInt() > best.asInt() : value.asInt() < best.asInt())
                      : (IsMax ? value.asNumber() > best.asNumber() : value.asNumber() < best.asNumber());
    if (better)
      best = value;
  }
  return anyFloat ? Value(best.asNumber()) : best;
}

Folded absolute(const Arguments &arguments) {
  if (arguments.size() != 1 || !isNumber(arguments[0]))
    return wrong("abs", arguments);
  if (arguments[0].isFloat())
    return Value(std::fabs(arguments[0].asFloat()));
  return arguments[0].asInt() < 0 ? foldUnary(ast::UnaryOp::Minus, arguments[0]) : Folded(arguments[0]);
}

Folded length(const Arguments &arguments) {
  if (arguments.size() == 1 && arguments[0].isSequence())
    return Value(static_cast<int64_t>(arguments[0].asSequence().items.size()));
  if (arguments.size() == 1 && arguments[0].isString())
    return Value(static_cast<int64_t>(arguments[0].asString().size()));
  return wrong("len", arguments);
}

Folded range(const Arguments &arguments) {
  if (arguments.empty() || arguments.size() > 3)
    return wrong("range", arguments);
  for (const Value &value : arguments)
    if (!value.isInt())
      return wrong("range", arguments);
  int64_t begin = arguments.size() > 1 ? arguments[0].asInt() : 0;
  int64_t end = arguments[arguments.size() > 1 ? 1 : 0].asInt();
  int64_t step = arguments.size() > 2 ? arguments[2].asInt() : 1;
  if (step == 0)
    return Folded::failure("the step of a range is 0");
  std::vector<Value> items;
  for (int64_t i = begin; step > 0 ? i < end : i > end;) {
    if (items.size() == (1u << 20))
      return Folded::failure("the range has more than 2^20 items");
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i))
      break;
  }
  return Value::list(std::move(items));
}

Folded toInt(const Arguments &arguments) {
  if (arguments.size() != 1)
    return wrong("Int", arguments);
  const Value &value = arguments[0];
  if (value.isInt())
    return value;
  if (value.isBool())
    return Value(static_cast<int64_t>(value.asBool()));
  if (value.isFloat()) {
    if (!(std::fabs(value.asFloat()) < 9.2e18))
      return Folded::failure("the number does not fit Int");
    return Value(static_cast<int64_t>(value.asFloat()));
  }
  return wrong("Int", arguments);
}

Folded toFloat(const Arguments &arguments) {
  if (arguments.size() != 1 || !isNumber(arguments[0]))
    return wrong("Float64", arguments);
  return Value(arguments[0].asNumber());
}

const std::map<std::string, Function> &functions() {
  static const std::map<std::string, Function> table = {
      {"min", extreme<false>},
      {"max", extreme<true>},
      {"abs", absolute},
      {"len", length},
      {"range", range},
      {"Int", toInt},
      {"Float64", toFloat},
      {"sqrt", floatFunction<std::sqrt>},
      {"exp", floatFunction<std::exp>},
      {"exp2", floatFunction<std::exp2>},
      {"log", floatFunction<std::log>},
      {"log2", floatFunction<std::log2>},
      {"floor", floatFunction<std::floor>},
      {"ceil", floatFunction<std::ceil>},
  };
  return table;
}

} // namespace

bool isComptimeBuiltin(const std::string &name) { return functions().count(name); }

Folded foldCall(const std::string &name, const std::vector<Value> &arguments) {
  return functions().at(name)(arguments);
}

} // namespace kpkg::compiler
