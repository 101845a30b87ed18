// Declares operators and built-in functions on comptime values.
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

/// Returns the kind of a value in words: "Int", "DType", "list".
std::string kindName(const Value &value);

/// Folds a binary operator. Integers have 64 bits and may not overflow. `/` returns a Float, and `//` and `%` follow
/// Python's sign rule.
Folded foldBinary(ast::BinaryOp op, const Value &lhs, const Value &rhs);
Folded foldUnary(ast::UnaryOp op, const Value &operand);
/// Folds a comparison, including `is`, `is not`, `in` and `not in`.
Folded foldCompare(ast::CompareOp op, const Value &lhs, const Value &rhs);
/// `min`, `max`, `abs`, `len`, `sqrt`, ... Without such a function there is neither an error nor a value.
bool isComptimeBuiltin(const std::string &name);
Folded foldCall(const std::string &name, const std::vector<Value> &arguments);
/// Folds `base[index]` of a tuple, list or string. Negative indices count from the end.
Folded foldIndex(const Value &base, const Value &index);
/// Folds `T.bits`, `T.is_float`, `T.is_signed`.
Folded foldAttribute(const Value &base, const std::string &name);
/// Returns the value of a name that needs no import: dtypes, `inf`, `nan`.
std::optional<Value> builtinConstant(const std::string &name);
/// Returns the names that builtinConstant() knows.
const std::vector<std::string> &builtinConstantNames();

} // namespace kpkg::compiler
