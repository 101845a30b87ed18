// Implements the state of a block of a running kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/sim/Frame.h"
#include <cmath>

using namespace mlir;
using namespace kpkg;
using namespace kpkg::sim;

Tile Tile::ofType(Type valueType) {
  if (auto tensor = dyn_cast<RankedTensorType>(valueType))
    return {tensor.getElementType(), SmallVector<int64_t, 4>(tensor.getShape()),
            std::vector<Cell>(tensor.getNumElements(), Cell{.i = 0})};
  return scalar(valueType, Cell{.i = 0});
}

llvm::Error Frame::error(Operation &op, const llvm::Twine &message) const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << op.getLoc() << ": `" << op.getName() << "` in block (" << block[0] << ", " << block[1] << ", " << block[2]
         << "): " << message;
  return llvm::createStringError(text);
}

double Frame::inexact(double value, double error) {
  if (options.inDouble || !std::isfinite(error))
    return value;
  switch (options.perturbation) {
  case Perturbation::None:
    return value;
  case Perturbation::Up:
    return value + error;
  case Perturbation::Down:
    return value - error;
  case Perturbation::Random:
    return value + error * (static_cast<double>(random() >> 11) * 0x1p-52 - 1);
  }
  llvm_unreachable("all perturbations are listed");
}

llvm::Error Frame::count(Operation &op, int64_t elements) {
  steps += elements;
  return steps > options.maxSteps ? error(op, "the run takes more than " + llvm::Twine(options.maxSteps) + " steps")
                                  : llvm::Error::success();
}

llvm::Error Frame::run(Operation &op) {
  auto handler = table.find(op.getName().getStringRef());
  if (handler == table.end())
    return error(op, "the interpreter does not know this op");
  int64_t elements = 1;
  for (Type type : op.getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      elements += tensor.getNumElements();
  if (llvm::Error exceeded = count(op, elements))
    return exceeded;
  return handler->second(*this, op);
}

llvm::Error Frame::runBlock(Block &body) {
  for (Operation &op : body.without_terminator())
    if (llvm::Error failed = run(op))
      return failed;
  return llvm::Error::success();
}
