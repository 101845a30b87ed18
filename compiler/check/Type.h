// Declares the types of the language, uniqued: equal types are one pointer.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/comptime/Value.h"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace kpkg::compiler {

enum class TypeKind : uint8_t {
  Error,      ///< poison: an error was reported; compatible with every use
  None,       ///< the type of `None` and of functions without a result
  Scalar,     ///< one number of kind `element`
  Tile,       ///< a value of shape `shape` and element type `element`
  View,       ///< `Tensor[T, rank]` in a kernel: memory; with a shape, scratch memory of the block
  Window,     ///< `t.tile[..](..)`: a block of a view, of shape `shape`
  Tensor,     ///< a tensor on the host; `rank` is -1 unless known
  Optional,   ///< items[0] or None
  Tuple,      ///< `items`
  List,       ///< list of Int
  TensorList, ///< list of tensors on the host
  String,
  DType,
  Function, ///< a comptime function value
  Struct,   ///< a value of `structure`: `items` are the types of its members
  StructName,
  Range, ///< `range(...)`, only as the iterable of a `for`
};

/// One type. Compare by pointer; create with TypeTable.
struct Type {
  TypeKind kind = TypeKind::Error;
  compiler::DType element = compiler::DType::Int; ///< Scalar, Tile, View, Window
  std::vector<int64_t> shape;                     ///< Tile, Window, View of scratch memory
  int rank = -1;                                  ///< View; Tensor when known
  bool isMut = false;                             ///< View, Window
  std::vector<const Type *> items;                ///< Optional, Tuple, Struct
  const StructEntity *structure = nullptr;        ///< Struct
  std::vector<Value> parameters;                  ///< Struct: None for those that exist only at run time

  bool isError() const { return kind == TypeKind::Error; }
  bool isNone() const { return kind == TypeKind::None; }
  bool isScalar() const { return kind == TypeKind::Scalar; }
  bool isScalar(compiler::DType dtype) const { return isScalar() && element == dtype; }
  bool isTile() const { return kind == TypeKind::Tile; }
  bool isNumeric() const { return isScalar() || isTile(); }
  bool isScratch() const { return kind == TypeKind::View && !shape.empty(); }
  bool isTensor() const { return kind == TypeKind::Tensor; }
  bool isList() const { return kind == TypeKind::List || kind == TypeKind::TensorList; }
  bool isStruct() const { return kind == TypeKind::Struct; }
  bool isOptionalTensor() const { return kind == TypeKind::Optional && items[0]->isTensor(); }
  /// In a kernel: memory that a launch may leave out.
  bool isOptionalView() const { return kind == TypeKind::Optional && items[0]->kind == TypeKind::View; }
  bool isOptionalFloat() const { return kind == TypeKind::Optional && items[0]->isScalar(); }
  bool isOptionalDType() const { return kind == TypeKind::Optional && items[0]->kind == TypeKind::DType; }
  /// Returns the number of elements of a tile, a window or scratch memory.
  int64_t size() const;
  /// Returns the type as in source: `Tile[float32, 1, 1024]`.
  std::string str() const;
  bool operator==(const Type &other) const = default;
};

/// Owns and uniques types. Lives as long as the Program; not thread-safe.
class TypeTable {
public:
  TypeTable();
  const Type *error, *none, *string, *dtype, *list, *tensor, *tensorList, *optionalTensor, *optionalFloat,
      *optionalDType, *function, *structName, *range;

  const Type *scalar(DType element);
  const Type *boolean() { return scalar(DType::Bool); }
  const Type *integer() { return scalar(DType::Int); }
  const Type *tile(DType element, std::vector<int64_t> shape);
  const Type *view(DType element, int rank, bool isMut);
  const Type *scratch(DType element, std::vector<int64_t> shape);
  const Type *window(DType element, std::vector<int64_t> shape, bool isMut);
  const Type *hostTensor(int rank);
  const Type *optional(const Type *of);
  const Type *tuple(std::vector<const Type *> items);
  const Type *structure(const StructEntity *entity, std::vector<Value> parameters, std::vector<const Type *> members);
  /// Returns `like`, a scalar or a tile, with another element type.
  const Type *withElement(const Type *like, DType element);

private:
  const Type *unique(Type type);
  std::deque<Type> types;
};

} // namespace kpkg::compiler
