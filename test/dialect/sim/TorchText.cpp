// Prints tile kernels as Python text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TorchText.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace kpkg;

namespace {
class Printer {
public:
  explicit Printer(llvm::raw_ostream &out) : out(out) {}
  void kernel(tile::KernelOp kernel);

private:
  llvm::raw_ostream &line() { return out.indent(4 * depth); }
  std::string name(Value value);
  void names(ValueRange values);
  void type(Type type);
  void attribute(Attribute attribute);
  void op(Operation &op);
  void body(Block &block);
  void assign(ValueRange to, ValueRange from);
  void function(StringRef name, Block &body);

  llvm::raw_ostream &out;
  int depth = 0;
  llvm::DenseMap<Value, unsigned> numbers;
};
} // namespace

std::string Printer::name(Value value) {
  return "v" + std::to_string(numbers.try_emplace(value, numbers.size()).first->second);
}

void Printer::names(ValueRange values) {
  for (Value value : values)
    out << name(value) << ", ";
}

/// Prints ("f32", [2, 3]); scalars have no list.
void Printer::type(Type type) {
  out << "(\"" << getElementTypeOrSelf(type) << "\", ";
  if (auto tensor = dyn_cast<RankedTensorType>(type)) {
    out << "[";
    llvm::interleaveComma(tensor.getShape(), out);
    out << "]";
  } else {
    out << "None";
  }
  out << ")";
}

static void number(llvm::raw_ostream &out, const APFloat &value) {
  APFloat wide = value;
  bool inexact;
  wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &inexact);
  if (wide.isFinite())
    out << llvm::format("%.17g", wide.convertToDouble());
  else
    out << "float('" << (wide.isNaN() ? "nan" : wide.isNegative() ? "-inf" : "inf") << "')";
}

void Printer::attribute(Attribute attribute) {
  if (auto integer = dyn_cast<IntegerAttr>(attribute)) {
    out << integer.getValue().getSExtValue();
  } else if (auto real = dyn_cast<FloatAttr>(attribute)) {
    number(out, real.getValue());
  } else if (auto list = dyn_cast<DenseI64ArrayAttr>(attribute)) {
    out << "[";
    llvm::interleaveComma(list.asArrayRef(), out);
    out << "]";
  } else if (auto dense = dyn_cast<DenseElementsAttr>(attribute)) {
    out << "[";
    if (isa<FloatType>(dense.getElementType()))
      llvm::interleaveComma(dense.getValues<APFloat>(), out, [&](const APFloat &value) { number(out, value); });
    else
      llvm::interleaveComma(dense.getValues<APInt>(), out, [&](const APInt &value) { out << value.getSExtValue(); });
    out << "]";
  } else {
    out << "None";
  }
}

void Printer::assign(ValueRange to, ValueRange from) {
  if (to.empty())
    return;
  line();
  names(to);
  out << "= ";
  names(from);
  out << "\n";
}

void Printer::function(StringRef name, Block &block) {
  line() << "def " << name << "(";
  names(block.getArguments());
  out << "):\n";
  ++depth;
  body(block);
  line() << "return ";
  out << "(";
  names(block.getTerminator()->getOperands());
  out << ")\n";
  --depth;
}

void Printer::op(Operation &op) {
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    assign(loop.getRegionIterArgs(), loop.getInitArgs());
    line() << "for i in range(int(" << name(loop.getLowerBound()) << "), int(" << name(loop.getUpperBound())
           << "), int(" << name(loop.getStep()) << ")):\n";
    ++depth;
    line() << name(loop.getInductionVar()) << " = scalar(i)\n";
    body(*loop.getBody());
    assign(loop.getRegionIterArgs(), loop.getYieldedValues());
    --depth;
    return assign(loop.getResults(), loop.getRegionIterArgs());
  }
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    for (Block *block : {branch.thenBlock(), branch.elseBlock()}) {
      if (!block)
        continue;
      line() << (block == branch.thenBlock() ? "if bool(" + name(branch.getCondition()) + "):\n" : "else:\n");
      ++depth;
      line() << "pass\n";
      body(*block);
      assign(branch.getResults(), block->getTerminator()->getOperands());
      --depth;
    }
    return;
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    assign(loop.getBeforeArguments(), loop.getInits());
    line() << "while True:\n";
    ++depth;
    body(*loop.getBeforeBody());
    assign(loop.getResults(), loop.getConditionOp().getArgs());
    line() << "if not bool(" << name(loop.getConditionOp().getCondition()) << "):\n";
    line() << "    break\n";
    assign(loop.getAfterArguments(), loop.getConditionOp().getArgs());
    body(*loop.getAfterBody());
    assign(loop.getBeforeArguments(), loop.getYieldOp().getOperands());
    --depth;
    return;
  }
  if (auto loop = dyn_cast<tile::ForTilesOp>(op)) {
    line() << "for coordinates in tiles(";
    names(loop.getCounts());
    out << "):\n";
    ++depth;
    line();
    names(loop.getCoordinates());
    out << "= coordinates\n";
    body(loop.getBody().front());
    --depth;
    return;
  }
  if (op.getNumRegions() == 1)
    function("f", op.getRegion(0).front());
  line();
  names(op.getResults());
  out << (op.getNumResults() ? "= " : "") << "run(\"" << op.getName() << "\", [";
  names(op.getOperands());
  out << "], [";
  llvm::interleaveComma(op.getResultTypes(), out,
                        [&](Type result) { isa<tile::ViewType>(result) ? void(out << "None") : type(result); });
  out << "], {";
  for (NamedAttribute named : op.getDiscardableAttrDictionary())
    out << "\"" << named.getName().getValue() << "\": None, ";
  if (auto properties = dyn_cast_or_null<DictionaryAttr>(op.getPropertiesAsAttribute()))
    for (NamedAttribute named : properties) {
      out << "\"" << named.getName().getValue() << "\": ";
      attribute(named.getValue());
      out << ", ";
    }
  out << "}" << (op.getNumRegions() ? ", f" : "")
      << (isa<tile::BlockIdOp>(op)   ? ", block"
          : isa<tile::GridDimOp>(op) ? ", grid"
                                     : "")
      << ")\n";
}

void Printer::body(Block &block) {
  for (Operation &inner : block.without_terminator())
    op(inner);
}

void Printer::kernel(tile::KernelOp kernel) {
  out << "def " << kernel.getSymName() << "(block, grid, ";
  names(kernel.getBody().getArguments());
  out << "):\n";
  depth = 1;
  body(kernel.getBody().front());
  line() << "return\n\n";
}

void kpkg::sim::test::printAsTorch(tile::KernelOp kernel, llvm::raw_ostream &stream) { Printer(stream).kernel(kernel); }
