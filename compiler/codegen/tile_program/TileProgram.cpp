// Writes a kernel of the tile dialect as a tile program: the JSON that `kpkg.jax` builds a Pallas kernel from.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/tile_program/TileProgram.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace kpkg::compiler {

namespace {

/// The ops of a tile program. `runtime/python/kpkg/jax/_tile_kernel.py` evaluates them.
constexpr StringLiteral taken[] = {
#define KPKG_TILE_PROGRAM_OP(name) name,
#include "compiler/codegen/tile_program/Ops.def"
};

bool isTaken(StringRef name) {
  static const StringSet<> names = [] {
    StringSet<> all;
    for (StringLiteral name : taken)
      all.insert(name);
    return all;
  }();
  return names.contains(name);
}

std::string text(mlir::Type type) {
  std::string out;
  raw_string_ostream stream(out);
  type.print(stream);
  return out;
}

bool isTakenElement(mlir::Type type) {
  return type.isF32() || type.isBF16() || type.isIndex() || type.isInteger(1) || type.isInteger(8) ||
         type.isInteger(16) || type.isInteger(32) || type.isInteger(64);
}

/// Returns what a TPU lacks for values of this type; empty if nothing. Scalars of f64 are numbers of the call.
std::string whyNoType(mlir::Type type) {
  if (auto view = dyn_cast<tile::ViewType>(type)) {
    if (mlir::Type element = view.getElementType(); !isTakenElement(element) || element.isIndex())
      return "tensors of " + text(element);
  } else if (auto tile = dyn_cast<mlir::RankedTensorType>(type)) {
    if (!isTakenElement(tile.getElementType()))
      return "tiles of " + text(tile.getElementType());
  }
  return {};
}

/// Returns why an op that tile programs have is not in this form; empty if it is.
std::string whyNoForm(mlir::Operation *op) {
  if (auto dot = dyn_cast<tile::DotOp>(op)) {
    if (dot.getPositions())
      return "a product of a sparse operand";
    if (!dot.getType().getElementType().isF32())
      return "a product that is accumulated in " + text(dot.getType().getElementType());
  }
  if (isa<mlir::arith::ConstantOp>(op))
    if (auto elements = dyn_cast<mlir::DenseElementsAttr>(op->getAttr("value")); elements && !elements.isSplat())
      return "a tile of different constants";
  return {};
}

//===--- Writing --------------------------------------------------------------------------------------------------===//

/// Numbers values in the order of their definitions, and writes ops as lists.
class Writer {
public:
  json::Object kernel(tile::KernelOp kernel) {
    json::Object out;
    out["version"] = 1;
    out["name"] = kernel.getSymName().str();
    out["arguments"] = define(kernel.getBody().front().getArguments());
    out["body"] = ops(kernel.getBody().front());
    return out;
  }

private:
  json::Value type(mlir::Type type) {
    if (auto view = dyn_cast<tile::ViewType>(type))
      return json::Array{"view", text(view.getElementType()), view.getRank()};
    if (auto tile = dyn_cast<mlir::RankedTensorType>(type))
      return json::Array{"tile", text(tile.getElementType()), json::Array(tile.getShape())};
    return json::Array{"scalar", text(type)};
  }

  json::Array define(mlir::ValueRange values) {
    json::Array types;
    for (mlir::Value value : values) {
      numbers[value] = int64_t(numbers.size());
      types.push_back(type(value.getType()));
    }
    return types;
  }

  json::Array ops(mlir::Block &block) {
    json::Array list;
    for (mlir::Operation &op : block)
      list.push_back(this->op(op));
    return list;
  }

  json::Value op(mlir::Operation &op) {
    json::Array operands, regions;
    for (mlir::Value operand : op.getOperands())
      operands.push_back(numbers.at(operand));
    for (mlir::Region &region : op.getRegions()) {
      json::Object block;
      if (!region.empty()) {
        block["arguments"] = define(region.front().getArguments());
        block["body"] = ops(region.front());
      }
      regions.push_back(std::move(block));
    }
    json::Array out{op.getName().getStringRef(), std::move(operands), attributes(op), define(op.getResults())};
    if (!regions.empty())
      out.push_back(std::move(regions));
    return out;
  }

  json::Object attributes(mlir::Operation &op) {
    json::Object out;
    for (mlir::NamedAttribute named : op.getAttrDictionary())
      if (std::optional<json::Value> value = attribute(named.getValue()))
        out[named.getName().str()] = std::move(*value);
    return out;
  }

  /// Returns nothing for attributes that do not change results, such as flags of overflow.
  std::optional<json::Value> attribute(mlir::Attribute attribute) {
    return TypeSwitch<mlir::Attribute, std::optional<json::Value>>(attribute)
        .Case([](mlir::IntegerAttr value) { return json::Value(number(value.getValue())); })
        .Case([](mlir::FloatAttr value) { return json::Value(number(value.getValue())); })
        .Case([](mlir::SplatElementsAttr value) -> json::Value {
          if (isa<mlir::FloatType>(value.getElementType()))
            return number(value.getSplatValue<APFloat>());
          return number(value.getSplatValue<APInt>());
        })
        .Case([](mlir::DenseI64ArrayAttr value) { return json::Value(json::Array(value.asArrayRef())); })
        .Case([](mlir::DenseI32ArrayAttr value) { return json::Value(json::Array(value.asArrayRef())); })
        .Case([](mlir::StringAttr value) { return json::Value(value.getValue()); })
        .Case([](mlir::UnitAttr) { return json::Value(true); })
        .Default(std::nullopt);
  }

  /// A bit is 0 or 1, and enumerations are their numbers.
  static int64_t number(const APInt &value) {
    return value.getBitWidth() == 1 ? int64_t(value.getZExtValue()) : value.getSExtValue();
  }

  /// Writes a float exactly, as C's hexadecimal form: JSON has neither infinities nor NaN.
  static std::string number(APFloat value) {
    if (value.isNaN())
      return "nan";
    if (value.isInfinity())
      return value.isNegative() ? "-inf" : "inf";
    bool loses = false;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
    char digits[64];
    value.convertToHexString(digits, 0, false, APFloat::rmNearestTiesToEven);
    return digits;
  }

  DenseMap<mlir::Value, int64_t> numbers;
};

} // namespace

std::string whyNoTileProgram(tile::KernelOp kernel) {
  for (mlir::Value argument : kernel.getBody().front().getArguments())
    if (std::string why = whyNoType(argument.getType()); !why.empty())
      return why;
  std::string why;
  kernel.getBody().walk([&](mlir::Operation *op) {
    if (!isTaken(op->getName().getStringRef()))
      why = op->getName().getStringRef().str();
    else if (why = whyNoForm(op); why.empty())
      for (mlir::Type type : op->getResultTypes())
        if (why.empty())
          why = whyNoType(type);
    return why.empty() ? mlir::WalkResult::advance() : mlir::WalkResult::interrupt();
  });
  return why.empty() ? whyNo32Bits(kernel) : why;
}

std::string tileProgram(tile::KernelOp kernel) {
  std::string out;
  raw_string_ostream stream(out);
  stream << json::Value(Writer().kernel(kernel));
  return out;
}

} // namespace kpkg::compiler
