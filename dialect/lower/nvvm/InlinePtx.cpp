// Emits the PTX text of each instruction that the NVVM dialect lacks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/InlinePtx.h"
#include "dialect/lower/nvvm/DeviceOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace kpkg::lower::nvvm::ptx {

static LLVM::InlineAsmOp instruction(ImplicitLocOpBuilder &builder, TypeRange results, ValueRange operands,
                                     const Twine &text, const Twine &constraints) {
  return LLVM::InlineAsmOp::create(builder, results, operands, text.str(), constraints.str(), /*has_side_effects=*/true,
                                   /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
                                   LLVM::AsmDialectAttr::get(builder.getContext(), LLVM::AsmDialect::AD_ATT),
                                   ArrayAttr());
}

/// Extracts the results of an instruction that has several.
static SmallVector<Value> parts(ImplicitLocOpBuilder &builder, Value all) {
  SmallVector<Value> values;
  for (size_t i = 0; i < cast<LLVM::LLVMStructType>(all.getType()).getBody().size(); ++i)
    values.push_back(LLVM::ExtractValueOp::create(builder, all, i));
  return values;
}

static Type structOf(ImplicitLocOpBuilder &builder, TypeRange types) {
  return LLVM::LLVMStructType::getLiteral(builder.getContext(), SmallVector<Type>(types));
}

/// Returns the suffix, such as "v4.b32", and the register constraint of one word.
static std::pair<std::string, char> accessForm(unsigned wordBytes, unsigned count) {
  std::string vector = count == 1 ? "" : "v" + std::to_string(count) + ".";
  return {vector + "b" + std::to_string(8 * wordBytes), wordBytes <= 2 ? 'h' : wordBytes == 4 ? 'r' : 'l'};
}

static std::string braced(unsigned first, unsigned count) {
  if (count == 1)
    return "$" + std::to_string(first);
  std::string text = "{";
  for (unsigned i = 0; i < count; ++i)
    text += (i ? ", $" : "$") + std::to_string(first + i);
  return text + "}";
}

SmallVector<Value> viewLoad(ImplicitLocOpBuilder &builder, Value pointer, Value mask, unsigned wordBytes,
                            unsigned count, Value fill, bool isConstant) {
  auto [form, constraint] = accessForm(wordBytes, count);
  std::string constraints;
  SmallVector<Value> operands = {pointer};
  for (unsigned i = 0; i < count; ++i)
    constraints += std::string(i ? ",=" : "=") + constraint;
  constraints += isShared(pointer) ? ",r" : ",l";
  std::string text = std::string(isShared(pointer) ? "ld.shared." : "ld.global.") + (isConstant ? "nc." : "") + form +
                     " " + braced(0, count) + ", [$" + std::to_string(count) + "];";
  if (mask) {
    text = "@$" + std::to_string(count + 1) + " " + text;
    constraints += ",b";
    operands.push_back(mask);
    for (unsigned i = 0; i < count; ++i) {
      constraints += "," + std::to_string(i);
      operands.push_back(fill);
    }
  }
  if (!isConstant)
    constraints += ",~{memory}";
  // Side effects keep the loads of a tile together and before their uses.
  Type word = builder.getIntegerType(std::max(8 * wordBytes, 16u));
  if (count == 1)
    return {instruction(builder, word, operands, text, constraints).getRes()};
  return parts(
      builder,
      instruction(builder, structOf(builder, SmallVector<Type>(count, word)), operands, text, constraints).getRes());
}

void viewStore(ImplicitLocOpBuilder &builder, Value pointer, Value mask, unsigned wordBytes, ValueRange words) {
  auto [form, constraint] = accessForm(wordBytes, words.size());
  std::string constraints = isShared(pointer) ? "r" : "l";
  SmallVector<Value> operands = {pointer};
  for (Value word : words) {
    constraints += std::string(",") + constraint;
    operands.push_back(word);
  }
  std::string text =
      (isShared(pointer) ? "st.shared." : "st.global.") + form + " [$0], " + braced(1, words.size()) + ";";
  if (mask) {
    text = "@$" + std::to_string(words.size() + 1) + " " + text;
    constraints += ",b";
    operands.push_back(mask);
  }
  instruction(builder, {}, operands, text, constraints + ",~{memory}");
}

static std::string asyncCopyText(unsigned bytes, bool isOnce) {
  return isOnce ? "cp.async.cg.shared.global.L2::128B [$0], [$1], 16"
                : "cp.async.ca.shared.global [$0], [$1], " + std::to_string(bytes);
}

void asyncCopyOnce(ImplicitLocOpBuilder &builder, Value shared, Value global) {
  instruction(builder, {}, {shared, global}, asyncCopyText(16, /*isOnce=*/true) + ";", "r,l,~{memory}");
}

void asyncCopyWhere(ImplicitLocOpBuilder &builder, Value shared, Value global, unsigned bytes, Value mask,
                    bool isOnce) {
  // LLVM would emit a select for each condition that the mask consists of.
  instruction(builder, {}, {shared, global, mask},
              "{ .reg .b32 %n; selp.b32 %n, " + Twine(bytes) + ", 0, $2; " + asyncCopyText(bytes, isOnce) + ", %n; }",
              "r,l,b,~{memory}");
}

void prefetchWhere(ImplicitLocOpBuilder &builder, Value address, Value mask) {
  instruction(builder, {}, {address, mask}, "@$1 prefetch.global.L2 [$0];", "l,b");
}

void barrierArriveWhere(ImplicitLocOpBuilder &builder, Value address, Value predicate) {
  // Without `.release.cluster`, for which ptxas emits device-wide fences. The accesses that the barrier guards have
  // completed.
  bool isRemote = cast<LLVM::LLVMPointerType>(address.getType()).getAddressSpace() == 7;
  instruction(builder, {}, {address, predicate},
              Twine("@$1 mbarrier.arrive.shared::") + (isRemote ? "cluster" : "cta") + ".b64 _, [$0];",
              "r,b,~{memory}");
}

void barrierWait(ImplicitLocOpBuilder &builder, Value address, Value parity) {
  instruction(builder, {}, {address, parity},
              "{ .reg .pred done; wait: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; @done bra over; bra "
              "wait; over: }",
              "r,r,~{memory}");
}

void sendAndSignal(ImplicitLocOpBuilder &builder, Value address, Value bits, Value barrier) {
  bool isWide = bits.getType().isInteger(64);
  instruction(builder, {}, {address, bits, barrier},
              Twine("st.async.shared::cluster.mbarrier::complete_tx::bytes.") + (isWide ? "b64" : "b32") +
                  " [$0], $1, [$2];",
              isWide ? "r,l,r,~{memory}" : "r,r,r,~{memory}");
}

Value hidden(ImplicitLocOpBuilder &builder, Value value) {
  bool isWide = value.getType().isInteger(64);
  return instruction(builder, value.getType(), value, isWide ? "mov.b64 $0, $1;" : "mov.b32 $0, $1;",
                     isWide ? "=l,l" : "=r,r")
      .getRes();
}

SmallVector<Value> wordsAt(ImplicitLocOpBuilder &builder, Value address, unsigned count) {
  Type word = builder.getI32Type();
  if (count == 1)
    return {instruction(builder, word, address, "ld.shared.b32 $0, [$1];", "=r,r").getRes()};
  Type result = structOf(builder, SmallVector<Type>(count, word));
  return parts(
      builder,
      (count == 2 ? instruction(builder, result, address, "ld.shared.v2.b32 {$0, $1}, [$2];", "=r,=r,r")
                  : instruction(builder, result, address, "ld.shared.v4.b32 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r"))
          .getRes());
}

Value roundFourToE4M3(ImplicitLocOpBuilder &builder, ValueRange values) {
  return LLVM::InlineAsmOp::create(
             builder, builder.getI32Type(), values,
             "{ .reg .b16 low, high; cvt.rn.satfinite.e4m3x2.f32 low, $2, $1; cvt.rn.satfinite.e4m3x2.f32 high, $4, "
             "$3; mov.b32 $0, {low, high}; }",
             "=r,f,f,f,f", /*has_side_effects=*/false, /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
             LLVM::AsmDialectAttr::get(builder.getContext(), LLVM::AsmDialect::AD_ATT), ArrayAttr())
      .getRes();
}

/// Emits an instruction that updates `sums` in place, as one !llvm.struct.
static Value onSums(ImplicitLocOpBuilder &builder, ValueRange sums, ValueRange others, const Twine &text,
                    const Twine &constraintsOfOthers) {
  SmallVector<std::string> constraints(sums.size(), sums.front().getType().isF32() ? "=f" : "=r");
  for (size_t i = 0; i < sums.size(); ++i)
    constraints.push_back(std::to_string(i));
  SmallVector<Value> operands(sums);
  llvm::append_range(operands, others);
  return instruction(builder, structOf(builder, sums.getTypes()), operands, text,
                     llvm::join(constraints, ",") + constraintsOfOthers)
      .getRes();
}

/// Emits an instruction whose first results have no tied inputs.
static Value freshSums(ImplicitLocOpBuilder &builder, TypeRange types, ValueRange operands, const Twine &text,
                       StringRef constraintsOfOperands) {
  SmallVector<StringRef> constraints(types.size(), types.front().isF32() ? "=f" : "=r");
  return instruction(builder, structOf(builder, types), operands, text,
                     llvm::join(constraints, ",") + constraintsOfOperands)
      .getRes();
}

/// Returns the depth and the types in the name of an instruction.
static StringRef wgmmaKind(Type element) {
  return TypeSwitch<Type, StringRef>(element)
      .Case([](BFloat16Type) { return "k16.f32.bf16.bf16"; })
      .Case([](Float16Type) { return "k16.f32.f16.f16"; })
      .Case([](Float32Type) { return "k8.f32.tf32.tf32"; })
      .Case([](Float8E4M3FNType) { return "k32.f32.e4m3.e4m3"; })
      .Case([](Float8E5M2Type) { return "k32.f32.e5m2.e5m2"; })
      .Case([](IntegerType) { return "k32.s32.s8.s8"; });
}

Value wgmma(ImplicitLocOpBuilder &builder, ValueRange sums, ValueRange lhs, bool lhsIsTransposed, Value rhs,
            bool rhsIsTransposed, Value adds, Type element, bool overwrites, const Positions &positions) {
  size_t next = 0;
  auto operands = [&](size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i)
      text += (i ? ", $" : "$") + std::to_string(next++);
    return text;
  };
  bool inRegisters = lhs.size() > 1;
  std::string registers = operands(sums.size());
  next = overwrites ? sums.size() : 2 * sums.size();
  std::string left = operands(lhs.size()), right = operands(1);
  SmallVector<Value> others(lhs);
  others.push_back(rhs);
  bool isSparse = bool(positions.word);
  if (isSparse) {
    right += ", " + operands(1) + ", " + std::to_string(positions.selector);
    others.push_back(positions.word);
  }
  if (adds)
    others.push_back(adds);
  // Scale factors of 1 for both operands, and their transposition, where the instruction has these operands.
  std::string modifiers;
  if (isa<FloatType>(element))
    modifiers = ", 1, 1";
  if (element.isBF16() || element.isF16())
    modifiers += std::string(inRegisters ? "" : lhsIsTransposed ? ", 1" : ", 0") + (rhsIsTransposed ? ", 1" : ", 0");
  std::string kind = isSparse ? element.isBF16() ? "k32.f32.bf16.bf16" : "k32.f32.f16.f16" : wgmmaKind(element).str();
  std::string text = std::string("wgmma.mma_async") + (isSparse ? ".sp" : "") + ".sync.aligned.m64n" +
                     std::to_string(2 * sums.size()) + kind + " {" + registers + "}, " +
                     (inRegisters ? "{" + left + "}" : left) + ", " + right + ", " +
                     (overwrites ? "0"
                      : adds     ? operands(1)
                                 : "1") +
                     modifiers + ";";
  std::string constraints;
  for (size_t i = 0; i < lhs.size(); ++i)
    constraints += inRegisters ? ",r" : ",l";
  constraints += isSparse ? ",l,r" : ",l";
  constraints += adds ? ",b" : "";
  if (overwrites)
    return freshSums(builder, sums.getTypes(), others, text, constraints);
  return onSums(builder, sums, others, text, constraints);
}

SmallVector<Value> wgmmaWait(ImplicitLocOpBuilder &builder, int64_t pending, ValueRange sums) {
  return parts(builder,
               onSums(builder, sums, {}, "wgmma.wait_group.sync.aligned " + Twine(pending) + ";", ",~{memory}"));
}

} // namespace kpkg::lower::nvvm::ptx
