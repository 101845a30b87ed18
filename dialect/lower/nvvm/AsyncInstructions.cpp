// Instructions of what runs by itself. Written as PTX: LLVM's own ops lack the choice of adding at run time, and what is passed through
// an instruction keeps its uses behind it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/AsyncInstructions.h"
#include "dialect/lower/nvvm/ThreadBits.h"
#include "llvm/ADT/StringExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

static LLVM::InlineAsmOp instruction(ImplicitLocOpBuilder &builder, TypeRange results, ValueRange operands, const Twine &text,
                                     const Twine &constraints) {
  return LLVM::InlineAsmOp::create(builder, results, operands, text.str(), constraints.str(), /*has_side_effects=*/true,
                                   /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
                                   LLVM::AsmDialectAttr::get(builder.getContext(), LLVM::AsmDialect::AD_ATT), ArrayAttr());
}

void barrierInit(ImplicitLocOpBuilder &builder, Value address, unsigned arrivals) {
  instruction(builder, {}, {address}, "mbarrier.init.shared::cta.b64 [$0], " + Twine(arrivals) + ";", "r,~{memory}");
}

void fenceBarrierInit(ImplicitLocOpBuilder &builder) {
  instruction(builder, {}, {}, "fence.mbarrier_init.release.cluster;", "~{memory}");
}

void barrierExpect(ImplicitLocOpBuilder &builder, Value address, int64_t bytes) {
  instruction(builder, {}, {address}, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], " + Twine(bytes) + ";", "r,~{memory}");
}

void barrierArrive(ImplicitLocOpBuilder &builder, Value address, Value predicate) {
  instruction(builder, {}, {address, predicate}, "@$1 mbarrier.arrive.shared::cta.b64 _, [$0];", "r,b,~{memory}");
}

void barrierArriveRemote(ImplicitLocOpBuilder &builder, Value address, Value predicate) {
  // Not `.release.cluster`: ptxas puts fences of the whole chip before it. What the barrier guards has been waited for.
  instruction(builder, {}, {address, predicate}, "@$1 mbarrier.arrive.shared::cluster.b64 _, [$0];", "r,b,~{memory}");
}

void barrierWait(ImplicitLocOpBuilder &builder, Value address, Value parity) {
  instruction(builder, {}, {address, parity},
              "{ .reg .pred done; wait: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; @done bra over; bra wait; over: }",
              "r,r,~{memory}");
}

RingUse ringUse(ImplicitLocOpBuilder &builder, Value barriers, int64_t slots, Value use) {
  Value count = constantOf(builder, slots);
  Value slot = arith::RemUIOp::create(builder, use, count), lap = arith::DivUIOp::create(builder, use, count);
  RingUse result;
  result.slot = slot;
  result.full = bytesBehind(builder, barriers, arith::MulIOp::create(builder, slot, constantOf(builder, barrierBytes)).getResult());
  result.empty = bytesBehind(builder, result.full, slots * barrierBytes);
  result.parity = arith::AndIOp::create(builder, lap, constantOf(builder, 1));
  return result;
}

void sendNumber(ImplicitLocOpBuilder &builder, Value address, Value number, Value barrier) {
  instruction(builder, {}, {address, number, barrier}, "st.shared.b32 [$0], $1; mbarrier.arrive.shared::cta.b64 _, [$2];", "r,r,r,~{memory}");
}

Value countUpTo(ImplicitLocOpBuilder &builder, Value counter, Value last) {
  return instruction(builder, builder.getI32Type(), {counter, last}, "atom.relaxed.gpu.global.inc.u32 $0, [$1], $2;", "=r,l,r,~{memory}").getRes();
}

Value remoteAddress(ImplicitLocOpBuilder &builder, Value address, Value rank) {
  return LLVM::InlineAsmOp::create(builder, builder.getI32Type(), ValueRange{address, rank}, "mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r",
                                   /*has_side_effects=*/false, /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
                                   LLVM::AsmDialectAttr::get(builder.getContext(), LLVM::AsmDialect::AD_ATT), ArrayAttr())
      .getRes();
}

void sendAndSignal(ImplicitLocOpBuilder &builder, Value address, Value bits, Value barrier) {
  bool isWide = bits.getType().isInteger(64);
  instruction(builder, {}, {address, bits, barrier},
              Twine("st.async.shared::cluster.mbarrier::complete_tx::bytes.") + (isWide ? "b64" : "b32") + " [$0], $1, [$2];",
              isWide ? "r,l,r,~{memory}" : "r,r,r,~{memory}");
}

/// Appends coordinates to the operands of an instruction; gives its text for them.
static std::string boxAt(ValueRange coordinates, SmallVectorImpl<Value> &operands, std::string &constraints) {
  std::string box;
  for (auto [number, coordinate] : llvm::enumerate(coordinates)) {
    box += (number ? ", $" : "$") + std::to_string(operands.size());
    constraints += ",r";
    operands.push_back(coordinate);
  }
  return box;
}

/// `name` stands before and `how` behind the number of dimensions.
static void bulkOut(ImplicitLocOpBuilder &builder, Value source, Value map, ValueRange coordinates, StringRef name, StringRef how) {
  SmallVector<Value> operands = {source, map};
  std::string constraints = "r,l", box = boxAt(coordinates, operands, constraints);
  instruction(builder, {}, operands, name + "." + Twine(coordinates.size()) + "d.global.shared::cta." + how + "tile.bulk_group [$1, {" + box + "}], [$0];",
              constraints + ",~{memory}");
  instruction(builder, {}, {}, "cp.async.bulk.commit_group;", "~{memory}");
}

void tensorCopyOut(ImplicitLocOpBuilder &builder, Value source, Value map, ValueRange coordinates) {
  bulkOut(builder, source, map, coordinates, "cp.async.bulk.tensor", "");
}

void tensorAddOut(ImplicitLocOpBuilder &builder, Value source, Value map, ValueRange coordinates) {
  bulkOut(builder, source, map, coordinates, "cp.reduce.async.bulk.tensor", "add.");
}

void tensorCopy(ImplicitLocOpBuilder &builder, Value destination, Value map, ValueRange coordinates, ValueRange moves, Value barrier,
                unsigned ctas) {
  SmallVector<Value> operands = {destination, map, barrier};
  std::string constraints = "r,l,r", box = boxAt(coordinates, operands, constraints), moved;
  for (auto [number, move] : llvm::enumerate(moves)) {
    moved += (number ? ", $" : ", {$") + std::to_string(operands.size());
    constraints += ",h";
    operands.push_back(move);
  }
  if (!moves.empty())
    moved += "}";
  std::string everywhere;
  if (ctas > 1) {
    moved += ", $" + std::to_string(operands.size());
    constraints += ",h";
    everywhere = ".multicast::cluster";
    operands.push_back(arith::ConstantIntOp::create(builder, (int64_t(1) << ctas) - 1, 16));
  }
  instruction(builder, {}, operands,
              "cp.async.bulk.tensor." + Twine(coordinates.size()) + "d.shared::cluster.global." + (moves.empty() ? "tile" : "im2col") +
                  ".mbarrier::complete_tx::bytes" + everywhere + " [$0], [$1, {" + box + "}], [$2]" + moved + ";",
              constraints + ",~{memory}");
}

Value uniform(ImplicitLocOpBuilder &builder, Value value) {
  return NVVM::ShflOp::create(builder, builder.getI32Type(), constantOf(builder, -1), value, constantOf(builder, 0), constantOf(builder, 31),
                              NVVM::ShflKind::idx, UnitAttr());
}

Value hidden(ImplicitLocOpBuilder &builder, Value value) {
  bool isWide = value.getType().isInteger(64);
  return instruction(builder, value.getType(), value, isWide ? "mov.b64 $0, $1;" : "mov.b32 $0, $1;", isWide ? "=l,l" : "=r,r").getRes();
}

void bringToCache(ImplicitLocOpBuilder &builder, Value address, Value mask) {
  instruction(builder, {}, {address, mask}, "@$1 prefetch.global.L2 [$0];", "l,b");
}

SmallVector<Value> wordsAt(ImplicitLocOpBuilder &builder, Value address, unsigned count) {
  Type word = builder.getI32Type();
  if (count == 1)
    return {instruction(builder, word, address, "ld.shared.b32 $0, [$1];", "=r,r").getRes()};
  Type result = LLVM::LLVMStructType::getLiteral(builder.getContext(), SmallVector<Type>(count, word));
  auto load = count == 2 ? instruction(builder, result, address, "ld.shared.v2.b32 {$0, $1}, [$2];", "=r,=r,r")
                         : instruction(builder, result, address, "ld.shared.v4.b32 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r");
  SmallVector<Value> words;
  for (unsigned i = 0; i < count; ++i)
    words.push_back(LLVM::ExtractValueOp::create(builder, load.getRes(), i));
  return words;
}

Value electLane(ImplicitLocOpBuilder &builder) { return NVVM::ElectSyncOp::create(builder, builder.getI1Type(), Value()); }

Value anyLane(ImplicitLocOpBuilder &builder, Value isTrue) {
  return NVVM::VoteSyncOp::create(builder, builder.getI1Type(), constantOf(builder, -1), isTrue, NVVM::VoteSyncKind::any);
}

void limitRegisters(ImplicitLocOpBuilder &builder, unsigned count, bool raises) {
  instruction(builder, {}, {}, Twine("setmaxnreg.") + (raises ? "inc" : "dec") + ".sync.aligned.u32 " + Twine(count) + ";", "~{memory}");
}

void namedBarrier(ImplicitLocOpBuilder &builder, Value id, unsigned threads) {
  NVVM::BarrierOp::create(builder, TypeRange(), id, constantOf(builder, threads), NVVM::BarrierReductionAttr(), Value());
}

void arriveAtBarrier(ImplicitLocOpBuilder &builder, Value id, unsigned threads) {
  instruction(builder, {}, {id}, "barrier.cta.arrive.aligned $0, " + Twine(threads) + ";", "r,~{memory}");
}

Value bytesBehind(ImplicitLocOpBuilder &builder, Value address, Value bytes) {
  return LLVM::GEPOp::create(builder, address.getType(), builder.getI8Type(), address, ValueRange{bytes});
}

Value bytesBehind(ImplicitLocOpBuilder &builder, Value address, int64_t bytes) {
  return bytes == 0 ? address : bytesBehind(builder, address, constantOf(builder, bytes));
}

void storeMatrices(ImplicitLocOpBuilder &builder, Value address, ValueRange words, bool turns) {
  SmallVector<Value> operands = {address};
  llvm::append_range(operands, words);
  instruction(builder, {}, operands, Twine("stmatrix.sync.aligned.m8n8.x4") + (turns ? ".trans" : "") + ".shared.b16 [$0], {$1, $2, $3, $4};", "r,r,r,r,r,~{memory}");
}

void storePair(ImplicitLocOpBuilder &builder, Value address, ValueRange pair) {
  instruction(builder, {}, {address, pair[0], pair[1]}, "st.shared.v2.f32 [$0], {$1, $2};", "r,f,f,~{memory}");
}

void fenceForCopies(ImplicitLocOpBuilder &builder) { instruction(builder, {}, {}, "fence.proxy.async.shared::cta;", "~{memory}"); }

void waitForBulkReads(ImplicitLocOpBuilder &builder, int64_t pending) {
  instruction(builder, {}, {}, "cp.async.bulk.wait_group.read " + Twine(pending) + ";", "~{memory}");
}

void waitForBulkCopies(ImplicitLocOpBuilder &builder) { instruction(builder, {}, {}, "cp.async.bulk.wait_group 0;", "~{memory}"); }

Value descriptorAt(ImplicitLocOpBuilder &builder, const OperandDescriptor &operand, int64_t distance) {
  // PTX ISA, "Matrix descriptor": address, leading and stride offset in units of 16 bytes, 128-byte swizzle in the highest bits. Eight rows
  // of a panel are 1024 bytes; the leading offset counts only where panels lie side by side along rows or columns of the product.
  // An address has 18 bits, so distances change the lower half only.
  int64_t strideOffset = (operand.isNarrow ? 512 : 1024) >> 4, upper = strideOffset | int64_t(operand.isNarrow ? 2 : 1) << 30;
  int64_t leadingOffset = operand.isDepthLast ? 1 : operand.panelBytes >> 4;
  Value start = arith::AndIOp::create(builder, arith::ShRUIOp::create(builder, operand.address, constantOf(builder, 4)), constantOf(builder, 0x3FFF));
  Value lower = arith::AddIOp::create(builder, start, constantOf(builder, leadingOffset << 16 | distance >> 4));
  Type i64 = builder.getI64Type();
  return arith::OrIOp::create(builder, arith::ExtUIOp::create(builder, i64, lower), arith::ConstantIntOp::create(builder, upper << 32, 64));
}

void wgmmaFence(ImplicitLocOpBuilder &builder) { instruction(builder, {}, {}, "wgmma.fence.sync.aligned;", "~{memory}"); }

void wgmmaCommit(ImplicitLocOpBuilder &builder) { instruction(builder, {}, {}, "wgmma.commit_group.sync.aligned;", "~{memory}"); }

/// An instruction that changes `sums` in place.
static SmallVector<Value> onSums(ImplicitLocOpBuilder &builder, ValueRange sums, ValueRange others, const Twine &text,
                                 StringRef constraintsOfOthers, bool touchesMemory) {
  SmallVector<std::string> constraints(sums.size(), sums.front().getType().isF32() ? "=f" : "=r");
  for (size_t i = 0; i < sums.size(); ++i)
    constraints.push_back(std::to_string(i));
  std::string all = llvm::join(constraints, ",") + constraintsOfOthers.str() + (touchesMemory ? ",~{memory}" : "");
  SmallVector<Value> operands(sums);
  llvm::append_range(operands, others);
  Type result = LLVM::LLVMStructType::getLiteral(builder.getContext(), SmallVector<Type>(sums.getTypes()));
  Value changed = instruction(builder, result, operands, text, all).getRes();
  SmallVector<Value> values;
  for (size_t i = 0; i < sums.size(); ++i)
    values.push_back(LLVM::ExtractValueOp::create(builder, changed, i));
  return values;
}

/// Depth and types in the name of an instruction.
static StringRef wgmmaKind(Type element) {
  return TypeSwitch<Type, StringRef>(element)
      .Case([](BFloat16Type) { return "k16.f32.bf16.bf16"; })
      .Case([](Float16Type) { return "k16.f32.f16.f16"; })
      .Case([](Float32Type) { return "k8.f32.tf32.tf32"; })
      .Case([](Float8E4M3FNType) { return "k32.f32.e4m3.e4m3"; })
      .Case([](Float8E5M2Type) { return "k32.f32.e5m2.e5m2"; })
      .Case([](IntegerType) { return "k32.s32.s8.s8"; });
}

/// The values of an instruction's first results, which nothing went into.
static SmallVector<Value> freshSums(ImplicitLocOpBuilder &builder, TypeRange types, ValueRange operands, const Twine &text, StringRef constraintsOfOperands) {
  SmallVector<StringRef> constraints(types.size(), types.front().isF32() ? "=f" : "=r");
  Value made = instruction(builder, LLVM::LLVMStructType::getLiteral(builder.getContext(), SmallVector<Type>(types)), operands, text,
                           llvm::join(constraints, ",") + constraintsOfOperands.str())
                   .getRes();
  SmallVector<Value> values;
  for (size_t i = 0; i < types.size(); ++i)
    values.push_back(LLVM::ExtractValueOp::create(builder, made, i));
  return values;
}

SmallVector<Value> wgmma(ImplicitLocOpBuilder &builder, ValueRange sums, ValueRange lhs, bool lhsIsTransposed, Value rhs,
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
  // Factors of 1 for both operands, and whether they are transposed: each only where the instruction has it.
  std::string modifiers;
  if (isa<FloatType>(element))
    modifiers = ", 1, 1";
  if (element.isBF16() || element.isF16())
    modifiers += std::string(inRegisters ? "" : lhsIsTransposed ? ", 1" : ", 0") + (rhsIsTransposed ? ", 1" : ", 0");
  std::string kind = isSparse ? element.isBF16() ? "k32.f32.bf16.bf16" : "k32.f32.f16.f16" : wgmmaKind(element).str();
  std::string text = std::string("wgmma.mma_async") + (isSparse ? ".sp" : "") + ".sync.aligned.m64n" + std::to_string(2 * sums.size()) + kind + " {" + registers + "}, " +
                     (inRegisters ? "{" + left + "}" : left) + ", " + right + ", " + (overwrites ? "0" : adds ? operands(1) : "1") + modifiers + ";";
  std::string constraints;
  for (size_t i = 0; i < lhs.size(); ++i)
    constraints += inRegisters ? ",r" : ",l";
  constraints += isSparse ? ",l,r" : ",l";
  constraints += adds ? ",b" : "";
  if (overwrites)
    return freshSums(builder, sums.getTypes(), others, text, constraints);
  return onSums(builder, sums, others, text, constraints, /*touchesMemory=*/false);
}

SmallVector<Value> wgmmaWait(ImplicitLocOpBuilder &builder, int64_t pending, ValueRange sums) {
  return onSums(builder, sums, {}, "wgmma.wait_group.sync.aligned " + Twine(pending) + ";", "", /*touchesMemory=*/true);
}

} // namespace kpkg::lower::nvvm
