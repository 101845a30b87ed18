// Maps ops to instructions of plan bytecode.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/pack/PlanOpcodes.h"
#include "dialect/plan/ir/Plan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using kpkg::plan::Opcode;

namespace kpkg::compiler {

plan::RegisterType registerTypeOf(Type type) {
  if (type.isInteger(64))
    return 'i';
  if (type.isInteger(1))
    return 'b';
  if (type.isF64())
    return 'f';
  if (isa<plan_ir::TensorType>(type))
    return 't';
  if (isa<plan_ir::ListType>(type))
    return 'l';
  if (isa<plan_ir::TensorListType>(type))
    return 'v';
  if (isa<plan_ir::DTypeType>(type))
    return 'd';
  if (isa<plan_ir::StringType>(type))
    return 's';
  return 0;
}

using MaybeOpcode = std::optional<Opcode>;

static MaybeOpcode intOpcode(StringRef name) {
  return llvm::StringSwitch<MaybeOpcode>(name)
      .Case("arith.addi", Opcode::add_int)
      .Case("arith.subi", Opcode::sub_int)
      .Case("arith.muli", Opcode::mul_int)
      .Case("arith.floordivsi", Opcode::floordiv_int)
      .Case("arith.ceildivsi", Opcode::ceildiv_int)
      .Case("arith.divsi", Opcode::truncdiv_int)
      .Case("arith.remsi", Opcode::truncrem_int)
      .Case("arith.maxsi", Opcode::max_int)
      .Case("arith.minsi", Opcode::min_int)
      .Case("arith.andi", Opcode::and_int)
      .Case("arith.ori", Opcode::or_int)
      .Case("arith.xori", Opcode::xor_int)
      .Case("arith.shli", Opcode::shl_int)
      .Case("arith.shrsi", Opcode::shr_int)
      .Case("math.absi", Opcode::abs_int)
      .Case("plan.mod", Opcode::mod_int)
      .Case("plan.pow", Opcode::pow_int)
      .Case("arith.sitofp", Opcode::int_to_float)
      .Default(std::nullopt);
}

static MaybeOpcode boolOpcode(StringRef name) {
  return llvm::StringSwitch<MaybeOpcode>(name)
      .Cases({"arith.andi", "arith.muli", "arith.minui"}, Opcode::and_bool)
      .Cases({"arith.ori", "arith.maxui"}, Opcode::or_bool)
      .Cases({"arith.xori", "arith.addi", "arith.subi"}, Opcode::xor_bool)
      .Case("arith.extui", Opcode::bool_to_int)
      .Case("arith.uitofp", Opcode::bool_to_float)
      .Default(std::nullopt);
}

static MaybeOpcode floatOpcode(StringRef name) {
  return llvm::StringSwitch<MaybeOpcode>(name)
      .Case("arith.addf", Opcode::add_float)
      .Case("arith.subf", Opcode::sub_float)
      .Case("arith.mulf", Opcode::mul_float)
      .Case("arith.divf", Opcode::div_float)
      .Case("plan.mod", Opcode::mod_float)
      .Case("math.powf", Opcode::pow_float)
      .Case("math.fma", Opcode::fma_float)
      .Case("arith.minimumf", Opcode::min_float)
      .Case("arith.maximumf", Opcode::max_float)
      .Case("arith.negf", Opcode::neg_float)
      .Case("math.absf", Opcode::abs_float)
      .Case("math.sqrt", Opcode::sqrt)
      .Case("math.rsqrt", Opcode::rsqrt)
      .Case("math.exp", Opcode::exp)
      .Case("math.exp2", Opcode::exp2)
      .Case("math.log", Opcode::log)
      .Case("math.log2", Opcode::log2)
      .Case("math.sin", Opcode::sin)
      .Case("math.cos", Opcode::cos)
      .Case("math.tanh", Opcode::tanh)
      .Case("math.erf", Opcode::erf)
      .Case("math.floor", Opcode::floor)
      .Case("math.ceil", Opcode::ceil)
      .Case("math.roundeven", Opcode::round)
      .Case("arith.fptosi", Opcode::float_to_int)
      .Default(std::nullopt);
}

/// Maps plan ops to instructions. Most have the same name.
static MaybeOpcode planOpcode(StringRef name) {
  name = llvm::StringSwitch<StringRef>(name)
             .Case("dtype_eq", "eq_dtype")
             .Case("string_eq", "eq_string")
             .Cases({"func", "return", "call", "raise", "launch", "drop", "dtype", "string", "mod", "pow"}, "")
             .Default(name);
  return llvm::StringSwitch<MaybeOpcode>(name)
#define KPKG_OPCODE(name, number, signature) .Case(#name, Opcode::name)
#include "runtime/plan/Opcodes.def"
      .Default(std::nullopt);
}

enum : int64_t { equal = 1, greater = 2, less = 4, unordered = 8 };

static int64_t maskOf(arith::CmpIPredicate predicate) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::eq:
    return equal;
  case P::ne:
    return greater | less;
  case P::slt:
    return less;
  case P::sle:
    return less | equal;
  case P::sgt:
    return greater;
  case P::sge:
    return greater | equal;
  default:
    return -1;
  }
}

static int64_t maskOf(arith::CmpFPredicate predicate) {
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::AlwaysFalse:
    return 0;
  case P::OEQ:
    return equal;
  case P::OGT:
    return greater;
  case P::OGE:
    return greater | equal;
  case P::OLT:
    return less;
  case P::OLE:
    return less | equal;
  case P::ONE:
    return less | greater;
  case P::ORD:
    return less | greater | equal;
  case P::UEQ:
    return unordered | equal;
  case P::UGT:
    return unordered | greater;
  case P::UGE:
    return unordered | greater | equal;
  case P::ULT:
    return unordered | less;
  case P::ULE:
    return unordered | less | equal;
  case P::UNE:
    return unordered | less | greater;
  case P::UNO:
    return unordered;
  case P::AlwaysTrue:
    return unordered | less | greater | equal;
  }
  return -1;
}

std::optional<DirectInstruction> directInstruction(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    int64_t mask = maskOf(compare.getPredicate());
    if (mask < 0 || !compare.getLhs().getType().isInteger(64))
      return std::nullopt;
    return DirectInstruction{Opcode::cmp_int, mask};
  }
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return DirectInstruction{Opcode::cmp_float, maskOf(compare.getPredicate())};
  if (isa<arith::SelectOp>(op))
    return DirectInstruction{Opcode::select, -1};

  MaybeOpcode opcode;
  Type type = op->getNumOperands() ? op->getOperand(0).getType() : Type();
  if (name.consume_front("plan."))
    opcode = planOpcode(name);
  if (!opcode && type) {
    name = op->getName().getStringRef();
    opcode = type.isInteger(64)  ? intOpcode(name)
             : type.isInteger(1) ? boolOpcode(name)
             : type.isF64()      ? floatOpcode(name)
                                 : MaybeOpcode();
  }
  return opcode ? std::optional(DirectInstruction{*opcode, -1}) : std::nullopt;
}

} // namespace kpkg::compiler
