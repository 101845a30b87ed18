// Implements the loop over blocks and ops. The handler files implement the ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/sim/Interpreter.h"
#include "dialect/sim/Frame.h"

using namespace mlir;
using namespace kpkg;
using namespace kpkg::sim;

HandlerTable kpkg::sim::handlersOfTiles() {
  HandlerTable all;
  addArithHandlers(all);
  addConversionHandlers(all);
  addMathHandlers(all);
  addControlHandlers(all);
  addMemoryHandlers(all);
  addShapeHandlers(all);
  addReduceHandlers(all);
  return all;
}

static const HandlerTable &handlers() {
  static const HandlerTable table = handlersOfTiles();
  return table;
}

/// Returns why `argument` cannot be passed for a parameter of `type`, or an empty text if it can.
static std::string mismatch(Type type, const Argument &argument, const Options &options) {
  auto viewType = dyn_cast<tile::ViewType>(type);
  const View *view = std::get_if<View>(&argument);
  if (!viewType)
    return view ? "is a scalar, not a view" : "";
  if (!view)
    return "is a view, not a scalar";
  size_t rank = viewType.getRank();
  if (view->shape.size() != rank || view->strides.size() != rank)
    return ("has rank " + llvm::Twine(rank)).str();
  if (view->storage != viewType.getElementType() &&
      !(options.inDouble && view->storage.isF64() && isFloat(viewType.getElementType())))
    return "has another element type in memory";
  if (viewType.getUnit() >= 0 && view->strides[viewType.getUnit()] != 1)
    return "has stride 1 in dimension " + std::to_string(viewType.getUnit());
  return "";
}

llvm::Error kpkg::sim::run(tile::KernelOp kernel, ArrayRef<Argument> arguments, std::array<int64_t, 3> grid,
                           const Options &options) {
  ArrayRef<Type> types = kernel.getArgumentTypes();
  if (arguments.size() != types.size())
    return llvm::createStringError("kernel " + kernel.getSymName() + " takes " + llvm::Twine(types.size()) +
                                   " arguments, not " + llvm::Twine(arguments.size()));
  for (auto [index, type, argument] : llvm::enumerate(types, arguments))
    if (std::string reason = mismatch(type, argument, options); !reason.empty())
      return llvm::createStringError("argument " + llvm::Twine(index) + " of kernel " + kernel.getSymName() + " " +
                                     reason);
  int64_t steps = 0;
  std::mt19937_64 random(options.perturbationSeed);
  for (int64_t z = 0; z < grid[2]; ++z)
    for (int64_t y = 0; y < grid[1]; ++y)
      for (int64_t x = 0; x < grid[0]; ++x) {
        Frame frame(handlers(), options, steps, random, {x, y, z}, grid);
        for (auto [value, argument] : llvm::zip_equal(kernel.getBody().getArguments(), arguments)) {
          if (const View *view = std::get_if<View>(&argument))
            frame.set(value, *view);
          else
            frame.set(value, Tile::scalar(value.getType(), std::get<Cell>(argument)));
        }
        if (llvm::Error failed = frame.runBlock(kernel.getBody().front()))
          return failed;
      }
  return llvm::Error::success();
}
