// Maps types to the bases in Builtins.def.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Members.h"

namespace kpkg::compiler {

std::string_view memberBaseOf(const Type &type) {
  switch (type.kind) {
  case TypeKind::Scalar:
  case TypeKind::Tile:
    return "Tile";
  case TypeKind::View:
    return type.isScratch() ? "Scratch" : "View";
  case TypeKind::Window:
    return "Window";
  case TypeKind::Tensor:
    return "Tensor";
  case TypeKind::Optional:
    return type.isOptionalFloat() ? "Tile" : type.isOptionalDType() ? "DType" : "Tensor";
  case TypeKind::List:
  case TypeKind::TensorList:
    return "List";
  case TypeKind::DType:
    return "DType";
  case TypeKind::Struct:
    return "Struct";
  default:
    return "";
  }
}

} // namespace kpkg::compiler
