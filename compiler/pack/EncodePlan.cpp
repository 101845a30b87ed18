// Encodes plan IR as plan bytecode: functions, control flow, calls and launches.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/pack/EncodePlan.h"
#include "compiler/pack/PlanOpcodes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "runtime/plan/Program.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using kpkg::plan::Opcode;

namespace kpkg::compiler {

namespace {

using Register = uint16_t;

/// Data that the functions of one program share.
struct ProgramEncoder {
  plan::DecodedModule module;
  llvm::StringMap<uint32_t> stringIndex;
  llvm::MapVector<plan_ir::FuncOp, SmallVector<bool>>
      functions; ///< callers first, with flags for pass-through arguments

  uint32_t string(StringRef text) {
    auto [entry, isNew] = stringIndex.try_emplace(text, static_cast<uint32_t>(module.strings.size()));
    if (isNew)
      module.strings.push_back(text.str());
    return entry->second;
  }
  int64_t indexOf(plan_ir::FuncOp function) { return std::distance(functions.begin(), functions.find(function)); }
  LogicalResult collect(plan_ir::FuncOp entry);
  void findPassThrough(const KernelArguments &decisive);
};

plan_ir::FuncOp calleeOf(plan_ir::CallOp call) {
  return SymbolTable::lookupNearestSymbolFrom<plan_ir::FuncOp>(call, call.getCalleeAttr());
}

/// Orders functions so that each precedes those that it calls.
LogicalResult ProgramEncoder::collect(plan_ir::FuncOp entry) {
  SmallVector<plan_ir::FuncOp> calleesFirst;
  DenseMap<plan_ir::FuncOp, bool> isDone;
  auto visit = [&](auto &self, plan_ir::FuncOp function) -> LogicalResult {
    auto [state, isNew] = isDone.try_emplace(function, false);
    if (!isNew)
      return success(state->second);
    WalkResult result = function.walk([&](plan_ir::CallOp call) {
      plan_ir::FuncOp callee = calleeOf(call);
      if (!callee)
        return call.emitOpError("calls an unknown function"), WalkResult::interrupt();
      if (failed(self(self, callee))) {
        if (!isDone.lookup(callee))
          call.emitError() << "`" << callee.getName() << "` calls itself, directly or through others; ops cannot recur";
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    isDone[function] = true;
    calleesFirst.push_back(function);
    return failure(result.wasInterrupted());
  };
  if (failed(visit(visit, entry)))
    return failure();
  for (plan_ir::FuncOp function : llvm::reverse(calleesFirst))
    functions.insert({function, {}});
  return success();
}

void ProgramEncoder::findPassThrough(const KernelArguments &decisive) {
  for (auto &[function, passes] : llvm::reverse(functions)) {
    for (BlockArgument argument : function.getArguments()) {
      Type type = argument.getType();
      bool isScalar = type.isInteger(64) || type.isInteger(1) || type.isF64();
      passes.push_back(isScalar && llvm::all_of(argument.getUses(), [&](OpOperand &use) {
                         if (auto launch = dyn_cast<plan_ir::LaunchOp>(use.getOwner())) {
                           auto [first, count] = launch.getODSOperandIndexAndLength(1);
                           unsigned number = use.getOperandNumber() - first;
                           return use.getOperandNumber() >= first && number < count &&
                                  !decisive.contains({launch.getKernel().str(), number});
                         }
                         auto call = dyn_cast<plan_ir::CallOp>(use.getOwner());
                         return call && functions.find(calleeOf(call))->second[use.getOperandNumber()];
                       }));
    }
  }
}

class FunctionEncoder {
public:
  FunctionEncoder(ProgramEncoder &program, plan_ir::FuncOp source) : program(program), source(source) {}
  LogicalResult run(plan::Function &result);

private:
  Register newRegister(plan::RegisterType type) {
    f.registerTypes.push_back(type);
    return static_cast<Register>(f.registerTypes.size() - 1);
  }
  Register define(Value value) { return registers[value] = newRegister(registerTypeOf(value.getType())); }
  Register of(Value value) const { return registers.lookup(value); }
  SmallVector<Register> of(ValueRange values) const {
    return llvm::map_to_vector(values, [&](Value value) { return of(value); });
  }
  void add(Opcode op, ArrayRef<Register> results, ArrayRef<Register> operands, ArrayRef<int64_t> immediates = {}) {
    f.add(op, {results.data(), results.size()}, {operands.data(), operands.size()},
          {immediates.data(), immediates.size()});
  }
  int64_t here() const { return static_cast<int64_t>(f.code.size()); }
  /// Adds a jump with an unknown target.
  size_t addJump(Opcode op, ArrayRef<Register> operands) {
    add(op, {}, operands, {0});
    return f.immediates.size() - 1;
  }
  void land(size_t jump) { f.immediates[jump] = here(); }
  Register constantInt(int64_t value) {
    Register result = newRegister('i');
    add(Opcode::const_int, {result}, {}, {value});
    return result;
  }
  Register move(Register from) {
    Register to = newRegister(f.registerTypes[from]);
    add(Opcode::move, {to}, {from});
    return to;
  }
  /// Assigns all at once: no target overwrites a source that is still needed.
  void moveAll(ArrayRef<Register> targets, ArrayRef<Register> sources);

  LogicalResult block(Block &block);
  LogicalResult operation(Operation *op);
  LogicalResult encodeIf(scf::IfOp op);
  LogicalResult encodeFor(scf::ForOp op);
  LogicalResult encodeWhile(scf::WhileOp op);
  LogicalResult encodeConstant(Operation *op, Attribute value);
  LogicalResult encodeCall(plan_ir::CallOp op);
  void encodeLaunch(plan_ir::LaunchOp op);
  void encodeDrop(plan_ir::DropOp op);
  void encodePoison(Value result);
  void encodeTruncation(Value from, Value to);

  ProgramEncoder &program;
  plan_ir::FuncOp source;
  plan::Function f;
  DenseMap<Value, Register> registers;
};

LogicalResult FunctionEncoder::run(plan::Function &result) {
  f.name = program.string(source.getName());
  const auto &passes = program.functions.find(source)->second;
  for (BlockArgument argument : source.getArguments()) {
    unsigned i = argument.getArgNumber();
    f.parameters.push_back({program.string(source.getArgName(i)), source.isArgMut(i)});
    define(argument);
    if (passes[i])
      f.registerTypes.back() = static_cast<char>(llvm::toUpper(f.registerTypes.back()));
  }
  for (Type type : source.getResultTypes())
    f.resultTypes.push_back(registerTypeOf(type));
  if (failed(block(source.getBody().front())))
    return failure();
  if (f.registerTypes.size() > plan::Limits::registers || f.code.size() > plan::Limits::instructions)
    return source.emitError() << "is too long: " << f.code.size() << " instructions with " << f.registerTypes.size()
                              << " values, at most " << plan::Limits::instructions << " and "
                              << plan::Limits::registers;
  result = std::move(f);
  return success();
}

LogicalResult FunctionEncoder::block(Block &block) {
  for (Operation &op : block)
    if (failed(operation(&op)))
      return failure();
  return success();
}

void FunctionEncoder::moveAll(ArrayRef<Register> targets, ArrayRef<Register> sources) {
  SmallVector<Register> from(sources);
  bool clashes = llvm::any_of(llvm::enumerate(sources), [&](auto entry) {
    return llvm::is_contained(targets.take_front(entry.index()), entry.value());
  });
  if (clashes)
    for (Register &reg : from)
      reg = move(reg);
  for (auto [to, reg] : llvm::zip(targets, from))
    if (to != reg)
      add(Opcode::move, {to}, {reg});
}

LogicalResult FunctionEncoder::operation(Operation *op) {
  for (Value result : op->getResults())
    if (!registerTypeOf(result.getType()))
      return op->emitError() << "has type " << result.getType() << ", which the host side of an op cannot hold";

  if (auto direct = directInstruction(op)) {
    SmallVector<int64_t, 1> immediates;
    if (direct->mask >= 0)
      immediates.push_back(direct->mask);
    SmallVector<Register> operands = of(op->getOperands()), results;
    for (Value result : op->getResults())
      results.push_back(define(result));
    add(direct->opcode, results, operands, immediates);
    return success();
  }
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](scf::IfOp op) { return encodeIf(op); })
      .Case([&](scf::ForOp op) { return encodeFor(op); })
      .Case([&](scf::WhileOp op) { return encodeWhile(op); })
      .Case<scf::YieldOp, scf::ConditionOp>([](auto) { return success(); }) // encoded by the surrounding op
      .Case([](plan_ir::CheckOp) { return success(); })                     // its operand was encoded
      .Case([&](plan_ir::CallOp op) { return encodeCall(op); })
      .Case([&](plan_ir::LaunchOp op) { return encodeLaunch(op), success(); })
      .Case([&](plan_ir::DropOp op) { return encodeDrop(op), success(); })
      .Case([&](plan_ir::CheckDimOp op) {
        return add(Opcode::dim, {newRegister('i')}, {of(op.getTensor()), of(op.getDim())}), success();
      })
      .Case([&](plan_ir::ReturnOp op) { return add(Opcode::ret, {}, of(op.getValues())), success(); })
      .Case([&](plan_ir::RaiseOp op) {
        return add(Opcode::raise, {}, of(op.getValues()), {program.string(op.getMessage())}), success();
      })
      .Case([&](plan_ir::DTypeConstantOp op) {
        StringRef name = op.getValue();
        return add(Opcode::const_dtype, {define(op)}, {},
                   {static_cast<int64_t>(plan::dtypeFromName({name.data(), name.size()}))}),
               success();
      })
      .Case([&](plan_ir::StringConstantOp op) {
        return add(Opcode::const_string, {define(op)}, {}, {program.string(op.getValue())}), success();
      })
      .Case([&](arith::ConstantOp op) { return encodeConstant(op, op.getValue()); })
      .Case([&](ub::PoisonOp op) { return encodePoison(op), success(); })
      .Case([&](arith::CmpIOp op) -> LogicalResult {
        bool isEqual = op.getPredicate() == arith::CmpIPredicate::eq;
        if (!op.getLhs().getType().isInteger(1) || (!isEqual && op.getPredicate() != arith::CmpIPredicate::ne))
          return op.emitError("unsigned comparison, which the host side of an op does not have");
        Register different = isEqual ? newRegister('b') : define(op);
        add(Opcode::xor_bool, {different}, {of(op.getLhs()), of(op.getRhs())});
        if (isEqual) {
          Register yes = newRegister('b');
          add(Opcode::const_bool, {yes}, {}, {1});
          add(Opcode::xor_bool, {define(op)}, {different, yes});
        }
        return success();
      })
      .Case([&](arith::TruncIOp op) -> LogicalResult {
        if (!op.getType().isInteger(1))
          return op.emitError() << "has type " << op.getType() << ", which the host side of an op cannot hold";
        return encodeTruncation(op.getIn(), op), success();
      })
      .Default([](Operation *op) {
        return op->emitError() << "`" << op->getName() << "` has no instruction in plan bytecode";
      });
}

//===--- Control flow ---------------------------------------------------------------------------------------------===//

LogicalResult FunctionEncoder::encodeIf(scf::IfOp op) {
  SmallVector<Register> results;
  for (Value result : op.getResults())
    results.push_back(define(result));
  size_t toElse = addJump(Opcode::branch_unless, {of(op.getCondition())});
  auto branch = [&](Block &body) -> LogicalResult {
    if (failed(block(body)))
      return failure();
    moveAll(results, of(body.getTerminator()->getOperands()));
    return success();
  };
  if (failed(branch(*op.thenBlock())))
    return failure();
  if (!op.elseBlock())
    return land(toElse), success();
  size_t toEnd = addJump(Opcode::jump, {});
  land(toElse);
  if (failed(branch(*op.elseBlock())))
    return failure();
  return land(toEnd), success();
}

LogicalResult FunctionEncoder::encodeFor(scf::ForOp op) {
  if (!op.getInductionVar().getType().isInteger(64))
    return op.emitError() << "loop over " << op.getInductionVar().getType() << ", expected i64";
  SmallVector<Register> carried;
  for (auto [argument, init] : llvm::zip(op.getRegionIterArgs(), op.getInitArgs()))
    carried.push_back(registers[argument] = move(of(init)));
  // The loop's counter is a copy, so that the body may keep its value.
  Register counter = move(of(op.getLowerBound()));
  int64_t begin = here();
  size_t toEnd = f.immediates.size();
  add(Opcode::loop_for, {}, {counter, of(op.getUpperBound()), of(op.getStep())}, {0});
  registers[op.getInductionVar()] = counter;
  if (failed(block(*op.getBody())))
    return failure();
  moveAll(carried, of(op.getBody()->getTerminator()->getOperands()));
  add(Opcode::loop_end, {}, {}, {begin});
  land(toEnd);
  for (auto [result, reg] : llvm::zip(op.getResults(), carried))
    registers[result] = reg;
  return success();
}

LogicalResult FunctionEncoder::encodeWhile(scf::WhileOp op) {
  SmallVector<Register> carried, results;
  for (auto [argument, init] : llvm::zip(op.getBeforeArguments(), op.getInits()))
    carried.push_back(registers[argument] = move(of(init)));
  for (Value result : op.getResults())
    results.push_back(define(result));
  int64_t begin = here();
  size_t toEnd = addJump(Opcode::loop_while, {});
  if (failed(block(*op.getBeforeBody())))
    return failure();
  scf::ConditionOp condition = op.getConditionOp();
  moveAll(results, of(condition.getArgs()));
  add(Opcode::break_unless, {}, {of(condition.getCondition())});
  for (auto [argument, reg] : llvm::zip(op.getAfterArguments(), results))
    registers[argument] = reg;
  if (failed(block(*op.getAfterBody())))
    return failure();
  moveAll(carried, of(op.getYieldOp().getOperands()));
  add(Opcode::loop_end, {}, {}, {begin});
  return land(toEnd), success();
}

//===--- Single ops -----------------------------------------------------------------------------------------------===//

LogicalResult FunctionEncoder::encodeConstant(Operation *op, Attribute value) {
  Register result = define(op->getResult(0));
  if (auto number = dyn_cast<FloatAttr>(value))
    add(Opcode::const_float, {result}, {}, {llvm::bit_cast<int64_t>(number.getValueAsDouble())});
  else if (auto number = dyn_cast<IntegerAttr>(value); number && number.getType().isInteger(1))
    add(Opcode::const_bool, {result}, {}, {number.getValue().getZExtValue() ? 1 : 0});
  else if (number)
    add(Opcode::const_int, {result}, {}, {number.getInt()});
  else
    return op->emitError("constant that the host side of an op cannot hold");
  return success();
}

LogicalResult FunctionEncoder::encodeCall(plan_ir::CallOp op) {
  plan_ir::FuncOp callee = calleeOf(op);
  const auto &passes = program.functions.find(callee)->second;
  SmallVector<Register> operands, results;
  for (auto [i, value] : llvm::enumerate(op.getArgs())) {
    Register reg = of(value);
    if (passes[i] && !plan::isPassThrough(f.registerTypes[reg])) {
      char type = f.registerTypes[reg];
      Register deferred = newRegister(static_cast<char>(llvm::toUpper(type)));
      add(type == 'i' ? Opcode::defer_int : type == 'f' ? Opcode::defer_float : Opcode::defer_bool, {deferred}, {reg});
      reg = deferred;
    }
    operands.push_back(reg);
  }
  for (Value result : op.getResults())
    results.push_back(define(result));
  if (operands.size() > plan::Limits::operands)
    return op.emitError() << "call with " << operands.size() << " arguments, at most " << plan::Limits::operands;
  add(Opcode::call, results, operands, {program.indexOf(callee)});
  return success();
}

void FunctionEncoder::encodeLaunch(plan_ir::LaunchOp op) {
  SmallVector<int64_t> immediates{program.string(op.getKernel()), static_cast<int64_t>(op.getParams().size())};
  for (auto [name, atLeast] : llvm::zip(op.getParamNames().getValue(), op.getParamAtLeast()))
    immediates.append({program.string(cast<StringAttr>(name).getValue()), atLeast});
  immediates.push_back(static_cast<int64_t>(op.getArgs().size()));
  immediates.append(op.getArgMut().begin(), op.getArgMut().end());
  add(Opcode::launch, {}, of(op->getOperands()), immediates);
}

void FunctionEncoder::encodeDrop(plan_ir::DropOp op) {
  // Applies indices one by one in an order that keeps the remaining numbers valid. Dimensions counted from the front go
  // from last to first; those counted from the end begin with the most negative.
  SmallVector<std::pair<int64_t, Register>> order;
  for (auto [dim, index] : llvm::zip(op.getDims(), op.getIndices()))
    order.push_back({dim, of(index)});
  llvm::sort(order, [](auto a, auto b) { return a.first < 0 ? a.first < b.first : a.first > b.first; });
  Register tensor = of(op.getTensor());
  for (auto [dim, index] : order) {
    Register dimension = constantInt(dim), next = newRegister('t');
    add(Opcode::drop, {next}, {tensor, dimension, index});
    tensor = next;
  }
  registers[op.getResult()] = tensor;
}

/// Encodes a value on a path that raises. It is never read, but every register needs a value.
void FunctionEncoder::encodePoison(Value result) {
  Register reg = define(result);
  switch (f.registerTypes[reg]) {
  case 'i':
    return add(Opcode::const_int, {reg}, {}, {0});
  case 'f':
    return add(Opcode::const_float, {reg}, {}, {0});
  case 'b':
    return add(Opcode::const_bool, {reg}, {}, {0});
  case 'd':
    return add(Opcode::const_dtype, {reg}, {}, {1});
  case 's':
    return add(Opcode::const_string, {reg}, {}, {program.string("")});
  case 'l':
    return add(Opcode::list, {reg}, {});
  case 'v':
    return add(Opcode::tensors, {reg}, {});
  default:
    return add(Opcode::none, {reg}, {});
  }
}

/// Extracts the lowest bit of an i64.
void FunctionEncoder::encodeTruncation(Value from, Value to) {
  Register one = constantInt(1), bit = newRegister('i');
  add(Opcode::and_int, {bit}, {of(from), one});
  add(Opcode::cmp_int, {define(to)}, {bit, one}, {1});
}

} // namespace

FailureOr<std::string> encodePlan(plan_ir::FuncOp function, const KernelArguments &decisive) {
  ProgramEncoder program;
  if (failed(program.collect(function)))
    return failure();
  program.findPassThrough(decisive);
  for (auto &entry : program.functions)
    if (failed(FunctionEncoder(program, entry.first).run(program.module.functions.emplace_back())))
      return failure();
  std::vector<uint8_t> bytes = plan::encode(program.module);
  plan::Error error;
  if (!plan::Program::load(bytes, error)) {
    function.emitError() << "cannot be encoded: " << error.message;
    return failure();
  }
  return std::string(bytes.begin(), bytes.end());
}

} // namespace kpkg::compiler
