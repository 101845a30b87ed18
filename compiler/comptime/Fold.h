// Operators and built-in functions on comptime values.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/ast/Expr.h"
#include "compiler/comptime/Value.h"

#include <optional>
#include <string>
#include <vector>

namespace kpkg::compiler {

/// A value, or why there is none, in words for a diagnostic ("division by zero").
struct Folded {
  std::optional<Value> value;
  std::string error;
  Folded(Value value) : value(std::move(value)) {}
  static Folded failure(std::string why) { return Folded(std::move(why), 0); }
  explicit operator bool() const { return value.has_value(); }

private:
  Folded(std::string why, int) : error(std::move(why)) {}
};

/// The kind of a value in words: "Int", "DType", "list".
std::string kindName(const Value &value);

/// Integers are 64-bit and may not overflow; `/` gives a Float; `//` and `%` follow Python's sign rule.
Folded foldBinary(ast::BinaryOp op, const Value &lhs, const Value &rhs);
Folded foldUnary(ast::UnaryOp op, const Value &operand);
/// Also `is`, `is not`, `in` and `not in`.
Folded foldCompare(ast::CompareOp op, const Value &lhs, const Value &rhs);
/// `min`, `max`, `abs`, `len`, `sqrt`, ... Null `error` and no value when there is no such function.
bool isComptimeBuiltin(const std::string &name);
Folded foldCall(const std::string &name, const std::vector<Value> &arguments);
/// `base[index]` of a tuple, list or string; negative indices count from the end.
Folded foldIndex(const Value &base, const Value &index);
/// `T.bits`, `T.is_float`, `T.is_signed`.
Folded foldAttribute(const Value &base, const std::string &name);
/// Names that need no import: dtypes, `inf`, `nan`.
std::optional<Value> builtinConstant(const std::string &name);
/// The names that builtinConstant() knows.
const std::vector<std::string> &builtinConstantNames();

} // namespace kpkg::compiler
