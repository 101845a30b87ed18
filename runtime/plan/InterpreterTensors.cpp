// Interprets tensors and launches of plan bytecode, and implements evaluate().
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plan/Interpreter.h"
#include "runtime/plan/Program.h"
#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace kpkg::plan {

bool Interpreter::query(const Instruction &i, const Function &f, Value *regs) {
  auto operands = f.operandsOf(i);
  Value &out = regs[f.resultsOf(i)[0]];
  auto id = static_cast<TensorId>(regs[operands[0]].bits);
  if (i.op == Opcode::is_none) {
    out = {id < 0, -1};
    return true;
  }
  if (id < 0)
    return fail(Error::Kind::Argument, fmt::format("{} of None", opcodeName(i.op)));
  const View &view = memory.view(id);
  switch (i.op) {
  case Opcode::dtype_of:
    out = {static_cast<int64_t>(view.dtype), -1};
    return true;
  case Opcode::rank:
    out = {view.rank, -1};
    return true;
  case Opcode::dim:
  case Opcode::stride: {
    int dim;
    std::string why;
    if (!wrapDim(regs[operands[1]].bits, view.rank, dim, why))
      return failTensor(i.op, id, why);
    out = {i.op == Opcode::dim ? view.shape[dim] : view.strides[dim], -1};
    return true;
  }
  case Opcode::shape:
    return makeList(view.shapeSpan(), out);
  case Opcode::strides:
    return makeList(view.stridesSpan(), out);
  case Opcode::numel:
    out = {view.numel(), -1};
    return true;
  default: // is_contiguous
    out = {isContiguous(view), -1};
    return true;
  }
}

bool Interpreter::viewOrCopy(const Instruction &i, TensorId source, std::span<const uint16_t> operands, Value *regs,
                             TensorId &result) {
  View view = memory.view(source);
  auto number = [&](size_t k) { return regs[operands[k]].bits; };
  std::string why;
  Dims shape;
  bool ok = true;
  switch (i.op) {
  case Opcode::transpose:
    ok = transposeView(view, number(1), number(2), why);
    break;
  case Opcode::permute:
    ok = permuteView(view, listOf(regs[operands[1]]), why);
    break;
  case Opcode::expand:
    ok = expandView(view, listOf(regs[operands[1]]), why);
    break;
  case Opcode::drop:
    ok = dropView(view, number(1), number(2), why);
    break;
  case Opcode::slice:
    ok = sliceView(view, number(1), number(2), number(3), number(4), why);
    break;
  case Opcode::unsqueeze:
    ok = unsqueezeView(view, number(1), why);
    break;
  case Opcode::squeeze:
    ok = squeezeView(view, number(1), why);
    break;
  case Opcode::unfold:
    ok = unfoldView(view, number(1), number(2), number(3), why);
    break;
  case Opcode::contiguous:
    if (isContiguous(view)) {
      result = source;
      return true;
    }
    return memory.addCopy(view, result) || failMemory();
  default: // fold, reshape
    ok = i.op == Opcode::fold ? foldedShape(view, number(1), shape, why)
                              : reshapedShape(view, listOf(regs[operands[1]]), shape, why);
    if (ok && !reshapeView(view, shape.span())) {
      TensorId copy;
      if (!memory.addCopy(view, copy))
        return failMemory();
      view = memory.view(copy);
      ok = reshapeView(view, shape.span());
    }
    break;
  }
  if (!ok)
    return failTensor(i.op, source, why);
  return memory.addView(view, result) || failMemory();
}

bool Interpreter::tensor(const Instruction &i, const Function &f, Value *regs) {
  auto operands = f.operandsOf(i);
  Value &out = regs[f.resultsOf(i)[0]];
  TensorId result;
  if (i.op == Opcode::empty) {
    if (!memory.allocate(listOf(regs[operands[0]]), static_cast<DType>(regs[operands[1]].bits), result))
      return failMemory();
    out = {result, -1};
    return true;
  }
  auto id = static_cast<TensorId>(regs[operands[0]].bits);
  if (id < 0)
    return fail(Error::Kind::Argument, fmt::format("{} of None", opcodeName(i.op)));
  if (i.op == Opcode::empty_like) {
    View like = memory.view(id);
    if (!memory.allocate(like.shapeSpan(), like.dtype, result))
      return failMemory();
  } else if (!viewOrCopy(i, id, operands, regs, result)) {
    return false;
  }
  out = {result, -1};
  return true;
}

//===--- Launches -------------------------------------------------------------------------------------------------===//

static LaunchParam paramOf(const Value &value, RegisterType type) {
  LaunchParam param;
  switch (type) {
  case 'b':
    param.kind = LaunchParam::Kind::Bool;
    break;
  case 'f':
    param.kind = LaunchParam::Kind::Float;
    param.real = std::bit_cast<double>(value.bits);
    return param;
  case 'd':
    param.kind = LaunchParam::Kind::DType;
    break;
  default:
    break;
  }
  param.integer = value.bits;
  return param;
}

static LaunchArg argOf(const Value &value, RegisterType type) {
  LaunchArg arg;
  if (value.argument >= 0) {
    arg.kind = LaunchArg::Kind::PassThrough;
    arg.integer = value.argument;
  } else if (type == 'f' || type == 'F') {
    arg.kind = LaunchArg::Kind::Float;
    arg.real = std::bit_cast<double>(value.bits);
  } else if (type != 't') {
    arg.kind = type == 'b' || type == 'B' ? LaunchArg::Kind::Bool : LaunchArg::Kind::Int;
    arg.integer = value.bits;
  }
  return arg;
}

bool Interpreter::launch(const Instruction &i, const Function &f, Value *regs) {
  LaunchLayout layout;
  readLaunch(f, i, layout);
  auto operands = f.operandsOf(i);
  size_t paramCount = layout.params.size() / 2, argCount = layout.argMut.size();
  LaunchStep step;
  step.kernel = module.strings[layout.kernel];

  step.persistent = layout.gridCount == 0;
  int64_t blocks = 1;
  for (size_t k = 0; k < layout.gridCount; ++k) {
    int64_t extent = regs[operands[paramCount + argCount + k]].bits;
    if (extent < 0 || __builtin_mul_overflow(blocks, std::max<int64_t>(extent, 1), &blocks))
      return fail(Error::Kind::Argument,
                  fmt::format("launch of {}: grid extent {} is negative or too large", step.kernel, extent));
    step.grid[k] = extent;
  }
  if (step.grid[0] == 0 || step.grid[1] == 0 || step.grid[2] == 0)
    return true;

  step.params.reserve(paramCount);
  for (size_t k = 0; k < paramCount; ++k) {
    const Value &value = regs[operands[k]];
    RegisterType type = f.registerTypes[operands[k]];
    LaunchParam &param = step.params.emplace_back(paramOf(value, type));
    param.name = module.strings[static_cast<size_t>(layout.params[2 * k])];
    param.atLeast = layout.params[2 * k + 1] != 0;
    if (type == 's') {
      param.kind = LaunchParam::Kind::String;
      param.integer = 0;
      param.string = strings[static_cast<size_t>(value.bits)];
    }
  }
  std::vector<TensorId> ids(argCount, -1);
  step.args.reserve(argCount);
  for (size_t k = 0; k < argCount; ++k) {
    uint16_t reg = operands[paramCount + k];
    LaunchArg &arg = step.args.emplace_back(argOf(regs[reg], f.registerTypes[reg]));
    arg.isMut = layout.argMut[k] != 0;
    if (f.registerTypes[reg] == 't')
      ids[k] = static_cast<TensorId>(regs[reg].bits);
  }
  return memory.launch(std::move(step), ids) || failMemory();
}

//===--- Entry ----------------------------------------------------------------------------------------------------===//

static std::string_view kindName(Argument::Kind kind) {
  constexpr std::string_view names[] = {"None", "Tensor", "Int",    "Float",         "Bool",
                                        "List", "DType",  "String", "List of Tensor"};
  return names[static_cast<size_t>(kind)];
}

bool Interpreter::checkCall() {
  const size_t declared = module.arguments.size();
  size_t next = declared;
  for (size_t k = 0; k < std::min(declared, call.size()); ++k) {
    if (call[k].kind != Argument::Kind::TensorList)
      continue;
    if (call[k].first != next || call[k].count > call.size() - std::min(next, call.size()))
      return fail(Error::Kind::Argument,
                  fmt::format("argument `{}` is a list without its tensors", module.arguments[k].name));
    next += call[k].count;
  }
  if (call.size() != next)
    return fail(Error::Kind::Argument, fmt::format("{} arguments, expected {}", call.size(), next));
  return true;
}

bool Interpreter::bindTensorList(size_t index, Value &value) {
  const Argument &given = call[index];
  const ArgumentInfo &wanted = module.arguments[index];
  if (!makesRoomFor(given.count))
    return false;
  value = {static_cast<int64_t>(tensorLists.size()), -1};
  tensorLists.push_back({listed.size(), given.count, static_cast<int32_t>(index)});
  for (size_t k = 0; k < given.count; ++k) {
    const Argument &tensor = call[given.first + k];
    if (tensor.kind != Argument::Kind::Tensor)
      return fail(Error::Kind::Argument,
                  fmt::format("`{}[{}]` is {}, expected Tensor", wanted.name, k, kindName(tensor.kind)),
                  static_cast<int32_t>(index));
    ArgumentPlace place{static_cast<int32_t>(given.first + k), static_cast<int32_t>(index), static_cast<int32_t>(k)};
    if (!memory.addArgument(tensor.tensor, place, wanted.name, wanted.isMut, listed.emplace_back()))
      return failMemory();
  }
  return true;
}

bool Interpreter::bindArguments() {
  if (!checkCall())
    return false;
  for (size_t k = 0; k < module.arguments.size(); ++k) {
    const Argument &given = call[k];
    const ArgumentInfo &wanted = module.arguments[k];
    auto index = static_cast<int32_t>(k);
    Value value;
    if (wanted.kind == Argument::Kind::Tensor && given.kind == Argument::Kind::None) {
      values.push_back({-1, -1});
      continue;
    }
    if (wanted.kind == Argument::Kind::Float && given.kind == Argument::Kind::None) {
      values.push_back({std::bit_cast<int64_t>(std::numeric_limits<double>::quiet_NaN()), -1});
      continue;
    }
    if (wanted.kind == Argument::Kind::DType && given.kind == Argument::Kind::None) {
      values.push_back({static_cast<int64_t>(DType::None), -1});
      continue;
    }
    if (given.kind != wanted.kind)
      return fail(
          Error::Kind::Argument,
          fmt::format("argument `{}` is {}, expected {}", wanted.name, kindName(given.kind), kindName(wanted.kind)),
          index);
    switch (given.kind) {
    case Argument::Kind::Tensor: {
      TensorId id;
      if (!memory.addArgument(given.tensor, {index, index}, wanted.name, wanted.isMut, id))
        return failMemory();
      value.bits = id;
      break;
    }
    case Argument::Kind::TensorList:
      if (!bindTensorList(k, value))
        return false;
      break;
    case Argument::Kind::Float:
      value.bits = std::bit_cast<int64_t>(given.real);
      break;
    case Argument::Kind::Bool:
      value.bits = given.integer != 0;
      break;
    case Argument::Kind::List:
      if (!makeList(given.list, value))
        return false;
      break;
    case Argument::Kind::String:
      value.bits = static_cast<int64_t>(strings.size());
      strings.push_back(given.string);
      break;
    case Argument::Kind::DType:
      if (given.integer < 1 || given.integer >= dtypeCount)
        return fail(Error::Kind::Argument, fmt::format("argument `{}`: {} is no dtype", wanted.name, given.integer),
                    index);
      value.bits = given.integer;
      break;
    default:
      value.bits = given.integer;
      break;
    }
    if (wanted.passThrough)
      value = {0, index};
    values.push_back(value);
  }
  return true;
}

std::optional<Error> Interpreter::run() {
  bool ok = bindArguments();
  if (ok) {
    const size_t frame = pushFrame(0);
    std::copy(values.begin(), values.end(), stack.begin() + static_cast<ptrdiff_t>(frame));
    ok = runFunction(0, frame);
  }
  for (size_t k = 0; ok && k < values.size(); ++k)
    ok = memory.output(static_cast<TensorId>(values[k].bits)) || failMemory();
  if (ok && !memory.finish())
    failMemory();
  return std::move(failure);
}

std::optional<Error> evaluate(const Program &program, CallSignature call, Resolution &resolution, int64_t processors) {
  resolution.buffers.clear();
  resolution.steps.clear();
  resolution.outputs.clear();
  resolution.temporaryBytes = 0;
  static thread_local Workspace workspace; // an evaluation cannot start another one
  return Interpreter(program.decoded(), call, resolution, processors, workspace).run();
}

} // namespace kpkg::plan
