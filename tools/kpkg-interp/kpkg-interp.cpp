// kpkg-interp: runs a tile kernel of an .mlir file in the interpreter, on raw little-endian files named by a JSON call.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   kpkg-interp kernels.mlir call.json
//
//   {"kernel": "scale", "grid": [4, 1, 1], "double": false, "sum_order": "forward", "max_steps": 1000000,
//    "args": [{"file": "x.bin", "shape": [8, 4], "strides": [4, 1], "offset": 0},
//             {"file": "y.bin", "shape": [8, 4], "strides": [4, 1], "out": "result.bin"}, {"value": 2.5}]}
//
// A file contains elements of the view's type. With "double", float memory, and thus "out", is f64. Views must be
// inside their file.
#include "dialect/pipeline/Registration.h"
#include "dialect/sim/Interpreter.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <deque>

using namespace mlir;
using namespace kpkg;

namespace {
/// The memory of one view argument, and its output file.
struct ViewMemory {
  std::vector<char> bytes;
  std::string out;
};

struct Call {
  std::string kernel;
  std::array<int64_t, 3> grid = {1, 1, 1};
  sim::Options options;
  std::vector<sim::Argument> arguments;
  std::deque<ViewMemory> memory;
};
} // namespace

static llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> readFile(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return llvm::createFileError(path, buffer.getError());
  return std::move(*buffer);
}

static llvm::Error writeFile(StringRef path, ArrayRef<char> bytes) {
  std::error_code code;
  llvm::raw_fd_ostream stream(path, code);
  if (!code)
    stream.write(bytes.data(), bytes.size());
  return code ? llvm::createFileError(path, code) : llvm::Error::success();
}

static llvm::Expected<SmallVector<int64_t>> integers(const llvm::json::Object &object, StringRef key) {
  SmallVector<int64_t> values;
  if (const llvm::json::Array *array = object.getArray(key))
    for (const llvm::json::Value &value : *array)
      values.push_back(value.getAsInteger().value_or(INT64_MIN));
  if (!object.getArray(key) || llvm::is_contained(values, INT64_MIN))
    return llvm::createStringError("\"" + key + "\" must be a list of integers");
  return values;
}

/// Reads the file of a view, in double precision on request, and checks that the view is inside.
static llvm::Error addView(Call &call, tile::ViewType type, const llvm::json::Object &argument) {
  auto shape = integers(argument, "shape");
  if (!shape)
    return shape.takeError();
  auto strides = integers(argument, "strides");
  if (!strides)
    return strides.takeError();
  auto file = readFile(argument.getString("file").value_or(""));
  if (!file)
    return file.takeError();
  Type element = type.getElementType();
  bool widen = call.options.inDouble && sim::isFloat(element);
  Type storage = widen ? Float64Type::get(type.getContext()) : element;
  int64_t size = sim::storageSize(element), count = static_cast<int64_t>((*file)->getBufferSize()) / size;
  int64_t offset = argument.getInteger("offset").value_or(0), low = offset, high = offset;
  if (shape->size() != strides->size())
    return llvm::createStringError("shape and strides differ in length");
  for (auto [extent, stride] : llvm::zip_equal(*shape, *strides))
    (stride < 0 ? low : high) += std::max<int64_t>(0, extent - 1) * stride;
  if (!llvm::is_contained(*shape, 0) && (low < 0 || high >= count))
    return llvm::createStringError("a view reaches from element " + llvm::Twine(low) + " to " + llvm::Twine(high) +
                                   " of a file of " + llvm::Twine(count));
  ViewMemory &memory = call.memory.emplace_back();
  memory.out = argument.getString("out").value_or("");
  if (widen) {
    memory.bytes.resize(count * 8);
    for (int64_t i = 0; i < count; ++i)
      sim::storeCell(&memory.bytes[i * 8], sim::loadCell((*file)->getBufferStart() + i * size, element), storage);
  } else {
    memory.bytes.assign((*file)->getBufferStart(), (*file)->getBufferEnd());
  }
  call.arguments.push_back(
      sim::View{memory.bytes.data() + offset * sim::storageSize(storage), storage, *shape, *strides});
  return llvm::Error::success();
}

static llvm::Error addArgument(Call &call, Type type, const llvm::json::Value &value) {
  const llvm::json::Object *argument = value.getAsObject();
  if (!argument)
    return llvm::createStringError("each of \"args\" must be an object");
  if (auto view = dyn_cast<tile::ViewType>(type))
    return addView(call, view, *argument);
  sim::Cell cell;
  if (sim::isFloat(type)) {
    auto number = argument->getNumber("value");
    if (!number)
      return llvm::createStringError("a scalar needs a number as \"value\"");
    cell.f = call.options.inDouble ? *number : sim::roundTo(*number, type);
  } else {
    auto number = argument->getInteger("value");
    if (!number)
      return llvm::createStringError("an integer scalar needs an integer as \"value\"");
    cell.i = sim::wrapTo(*number, type);
  }
  call.arguments.push_back(cell);
  return llvm::Error::success();
}

static llvm::Error readOptions(Call &call, const llvm::json::Object &object) {
  call.options.inDouble = object.getBoolean("double").value_or(false);
  call.options.maxSteps = object.getInteger("max_steps").value_or(call.options.maxSteps);
  call.options.print = [](StringRef text) { llvm::outs() << text << "\n"; };
  StringRef order = object.getString("sum_order").value_or("forward");
  if (order != "forward" && order != "backward" && order != "pairwise")
    return llvm::createStringError("sum_order is forward, backward or pairwise");
  call.options.sumOrder = order == "backward"   ? sim::SumOrder::Backward
                          : order == "pairwise" ? sim::SumOrder::Pairwise
                                                : sim::SumOrder::Forward;
  auto grid = integers(object, "grid");
  if (!grid || grid->size() != 3)
    return llvm::joinErrors(grid ? llvm::Error::success() : grid.takeError(),
                            llvm::createStringError("\"grid\" has three extents"));
  llvm::copy(*grid, call.grid.begin());
  return llvm::Error::success();
}

static llvm::Error runCall(ModuleOp module, StringRef callPath) {
  auto text = readFile(callPath);
  if (!text)
    return text.takeError();
  auto json = llvm::json::parse((*text)->getBuffer());
  if (!json)
    return json.takeError();
  const llvm::json::Object *object = json->getAsObject();
  if (!object || !object->getArray("args"))
    return llvm::createStringError("the call must be an object with \"args\"");
  StringRef name = object->getString("kernel").value_or("");
  auto kernel = module.lookupSymbol<tile::KernelOp>(name);
  if (!kernel)
    return llvm::createStringError("there is no kernel \"" + name + "\"");
  Call call;
  if (llvm::Error bad = readOptions(call, *object))
    return bad;
  const llvm::json::Array &arguments = *object->getArray("args");
  if (arguments.size() != kernel.getArgumentTypes().size())
    return llvm::createStringError("the kernel takes " + llvm::Twine(kernel.getArgumentTypes().size()) + " arguments");
  for (auto [type, value] : llvm::zip_equal(kernel.getArgumentTypes(), arguments))
    if (llvm::Error bad = addArgument(call, type, value))
      return bad;
  if (llvm::Error failed = sim::run(kernel, call.arguments, call.grid, call.options))
    return failed;
  for (const ViewMemory &memory : call.memory)
    if (!memory.out.empty())
      if (llvm::Error failed = writeFile(memory.out, memory.bytes))
        return failed;
  return llvm::Error::success();
}

int main(int argc, char **argv) {
  llvm::cl::opt<std::string> input(llvm::cl::Positional, llvm::cl::Required, llvm::cl::desc("<module.mlir>"));
  llvm::cl::opt<std::string> callPath(llvm::cl::Positional, llvm::cl::Required, llvm::cl::desc("<call.json>"));
  llvm::cl::ParseCommandLineOptions(argc, argv, "kpkg-interp: runs a tile kernel in the interpreter\n");
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(input, &context);
  if (!module)
    return 1;
  if (llvm::Error failed = runCall(*module, callPath)) {
    llvm::logAllUnhandledErrors(std::move(failed), llvm::errs(), "kpkg-interp: ");
    return 1;
  }
  return 0;
}
