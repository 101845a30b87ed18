// Declares compile-time values, on which comptime code operates.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/comptime/DType.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace kpkg::compiler {

struct FunctionEntity;
struct StructEntity;
struct Sequence;
struct StructValue;

/// The value `None`.
struct NoneValue {
  bool operator==(const NoneValue &) const = default;
};

/// A comptime value: None, Bool, Int, Float, String, DType, a function, a tuple, a list, a struct's name or a value of
/// that struct. It has value semantics: sequences and structs are never changed in place.
struct Value {
  std::variant<NoneValue, bool, int64_t, double, std::string, DType, const FunctionEntity *,
               std::shared_ptr<const Sequence>, const StructEntity *, std::shared_ptr<const StructValue>>
      data;

  Value() = default;
  explicit Value(bool value) : data(value) {}
  explicit Value(int64_t value) : data(value) {}
  explicit Value(double value) : data(value) {}
  explicit Value(std::string value) : data(std::move(value)) {}
  explicit Value(DType value) : data(value) {}
  explicit Value(const FunctionEntity *value) : data(value) {}
  static Value tuple(std::vector<Value> items);
  static Value list(std::vector<Value> items);
  explicit Value(const StructEntity *value) : data(value) {}
  static Value structure(StructValue value);

  bool isNone() const { return std::holds_alternative<NoneValue>(data); }
  bool isBool() const { return std::holds_alternative<bool>(data); }
  bool isInt() const { return std::holds_alternative<int64_t>(data); }
  bool isFloat() const { return std::holds_alternative<double>(data); }
  bool isString() const { return std::holds_alternative<std::string>(data); }
  bool isDType() const { return std::holds_alternative<DType>(data); }
  bool isFunction() const { return std::holds_alternative<const FunctionEntity *>(data); }
  bool isSequence() const { return std::holds_alternative<std::shared_ptr<const Sequence>>(data); }

  bool isStructName() const { return std::holds_alternative<const StructEntity *>(data); }
  bool isStruct() const { return std::holds_alternative<std::shared_ptr<const StructValue>>(data); }

  bool asBool() const { return std::get<bool>(data); }
  int64_t asInt() const { return std::get<int64_t>(data); }
  double asFloat() const { return std::get<double>(data); }
  const std::string &asString() const { return std::get<std::string>(data); }
  DType asDType() const { return std::get<DType>(data); }
  const FunctionEntity *asFunction() const { return std::get<const FunctionEntity *>(data); }
  const Sequence &asSequence() const { return *std::get<std::shared_ptr<const Sequence>>(data); }
  const StructEntity *asStructName() const { return std::get<const StructEntity *>(data); }
  const StructValue &asStruct() const { return *std::get<std::shared_ptr<const StructValue>>(data); }
  /// Returns whether all of the value is known while compiling: it has no struct with a field of the run time.
  bool isWhole() const;
  /// Returns the number of an Int or a Float.
  double asNumber() const { return isInt() ? static_cast<double>(asInt()) : asFloat(); }

  bool operator==(const Value &other) const;
  /// Returns the value as in source: `128`, `float32`, `True`, `(1, 2)`.
  std::string str() const;
};

/// A tuple or a list of comptime values.
struct Sequence {
  bool isList = false;
  std::vector<Value> items;
};

/// A value of a struct: its members, of which those that exist only at run time have no value here.
struct StructValue {
  const StructEntity *structure = nullptr;
  std::vector<std::optional<Value>> members;
};

} // namespace kpkg::compiler
