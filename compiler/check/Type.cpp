// Uniques and prints types.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Type.h"
#include "compiler/comptime/FunctionEntity.h"

namespace kpkg::compiler {

int64_t Type::size() const {
  int64_t product = 1;
  for (int64_t extent : shape)
    product *= extent;
  return product;
}

/// Returns an element type as in brackets.
static std::string elementText(DType element) {
  return element == DType::Int ? "Int" : std::string(valueNameOf(element));
}

static std::string withShape(std::string text, const std::vector<int64_t> &shape) {
  for (int64_t extent : shape)
    text += ", " + std::to_string(extent);
  return text + "]";
}

/// Returns `Window[SIZE=3]`, with the parameters that are known while compiling.
static std::string structText(const Type &type) {
  std::string text = type.structure->name();
  const char *separator = "[";
  for (size_t i = 0; i < type.parameters.size(); ++i)
    if (!type.parameters[i].isNone()) {
      text += separator + type.structure->member(i).text + "=" + type.parameters[i].str();
      separator = ", ";
    }
  return text + (*separator == ',' ? "]" : "");
}

std::string Type::str() const {
  switch (kind) {
  case TypeKind::Error:
    return "<error>";
  case TypeKind::None:
    return "None";
  case TypeKind::Scalar:
    return std::string(typeNameOf(element));
  case TypeKind::Tile:
    return withShape("Tile[" + elementText(element), shape);
  case TypeKind::View:
    if (isScratch()) {
      std::string text = "scratch[" + elementText(element) + "](";
      for (size_t i = 0; i < shape.size(); ++i)
        text += (i ? ", " : "") + std::to_string(shape[i]);
      return text + ")";
    }
    return "Tensor[" + std::string(valueNameOf(element)) + ", " + std::to_string(rank) + "]";
  case TypeKind::Window:
    return withShape("block of Tensor[" + std::string(valueNameOf(element)), shape);
  case TypeKind::Tensor:
    return "Tensor";
  case TypeKind::Optional:
    return "Optional[" + items[0]->str() + "]";
  case TypeKind::Tuple: {
    std::string text = "Tuple[";
    for (size_t i = 0; i < items.size(); ++i)
      text += (i ? ", " : "") + items[i]->str();
    return text + "]";
  }
  case TypeKind::List:
    return "List[Int]";
  case TypeKind::TensorList:
    return "List[Tensor]";
  case TypeKind::String:
    return "String";
  case TypeKind::DType:
    return "DType";
  case TypeKind::Function:
    return "function";
  case TypeKind::Struct:
    return structText(*this);
  case TypeKind::StructName:
    return "struct";
  case TypeKind::Range:
    return "range";
  }
  return "";
}

TypeTable::TypeTable() {
  auto make = [&](TypeKind kind) {
    Type type;
    type.kind = kind;
    return unique(std::move(type));
  };
  error = make(TypeKind::Error);
  none = make(TypeKind::None);
  string = make(TypeKind::String);
  dtype = make(TypeKind::DType);
  list = make(TypeKind::List);
  tensor = make(TypeKind::Tensor);
  tensorList = make(TypeKind::TensorList);
  function = make(TypeKind::Function);
  structName = make(TypeKind::StructName);
  range = make(TypeKind::Range);
  optionalTensor = optional(tensor);
  optionalFloat = optional(scalar(DType::Float64));
  optionalDType = optional(dtype);
}

const Type *TypeTable::unique(Type type) {
  for (const Type &known : types)
    if (known == type)
      return &known;
  types.push_back(std::move(type));
  return &types.back();
}

const Type *TypeTable::scalar(DType element) {
  Type type;
  type.kind = TypeKind::Scalar;
  type.element = element;
  return unique(std::move(type));
}

const Type *TypeTable::tile(DType element, std::vector<int64_t> shape) {
  Type type;
  type.kind = TypeKind::Tile;
  type.element = element;
  type.shape = std::move(shape);
  return unique(std::move(type));
}

const Type *TypeTable::view(DType element, int rank, bool isMut) {
  Type type;
  type.kind = TypeKind::View;
  type.element = element;
  type.rank = rank;
  type.isMut = isMut;
  return unique(std::move(type));
}

const Type *TypeTable::scratch(DType element, std::vector<int64_t> shape) {
  Type type;
  type.kind = TypeKind::View;
  type.element = element;
  type.rank = static_cast<int>(shape.size());
  type.shape = std::move(shape);
  type.isMut = true;
  return unique(std::move(type));
}

const Type *TypeTable::window(DType element, std::vector<int64_t> shape, bool isMut) {
  Type type;
  type.kind = TypeKind::Window;
  type.element = element;
  type.shape = std::move(shape);
  type.isMut = isMut;
  return unique(std::move(type));
}

const Type *TypeTable::hostTensor(int rank) {
  Type type;
  type.kind = TypeKind::Tensor;
  type.rank = rank;
  return unique(std::move(type));
}

const Type *TypeTable::optional(const Type *of) {
  Type type;
  type.kind = TypeKind::Optional;
  type.items = {of};
  return unique(std::move(type));
}

const Type *TypeTable::tuple(std::vector<const Type *> items) {
  Type type;
  type.kind = TypeKind::Tuple;
  type.items = std::move(items);
  return unique(std::move(type));
}

const Type *TypeTable::structure(const StructEntity *entity, std::vector<Value> parameters,
                                 std::vector<const Type *> members) {
  Type type;
  type.kind = TypeKind::Struct;
  type.structure = entity;
  type.parameters = std::move(parameters);
  type.items = std::move(members);
  return unique(std::move(type));
}

const Type *TypeTable::withElement(const Type *like, DType element) {
  return like->isTile() ? tile(element, like->shape) : scalar(element);
}

} // namespace kpkg::compiler
