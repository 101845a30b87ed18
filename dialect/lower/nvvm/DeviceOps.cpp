// The few instructions of the device that the lowering writes itself.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/DeviceOps.h"
#include "dialect/lower/nvvm/ThreadBits.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

Value threadId(ImplicitLocOpBuilder &builder) { return NVVM::ThreadIdXOp::create(builder, builder.getI32Type()); }

Value ctaOfCluster(ImplicitLocOpBuilder &builder) {
  return NVVM::BlockInClusterIdXOp::create(builder, builder.getI32Type());
}

Value ctaId(ImplicitLocOpBuilder &builder, tile::GridAxis axis) {
  Type i32 = builder.getI32Type();
  switch (axis) {
  case tile::GridAxis::x: return NVVM::BlockIdXOp::create(builder, i32);
  case tile::GridAxis::y: return NVVM::BlockIdYOp::create(builder, i32);
  case tile::GridAxis::z: return NVVM::BlockIdZOp::create(builder, i32);
  }
  llvm_unreachable("an axis of a grid");
}

Value ctaCount(ImplicitLocOpBuilder &builder, tile::GridAxis axis) {
  Type i32 = builder.getI32Type();
  switch (axis) {
  case tile::GridAxis::x: return NVVM::GridDimXOp::create(builder, i32);
  case tile::GridAxis::y: return NVVM::GridDimYOp::create(builder, i32);
  case tile::GridAxis::z: return NVVM::GridDimZOp::create(builder, i32);
  }
  llvm_unreachable("an axis of a grid");
}

void ctaBarrier(ImplicitLocOpBuilder &builder) { NVVM::BarrierOp::create(builder); }

void clusterBarrier(ImplicitLocOpBuilder &builder, bool isRelaxed) {
  if (isRelaxed)
    NVVM::ClusterArriveRelaxedOp::create(builder, UnitAttr());
  else
    NVVM::ClusterArriveOp::create(builder, UnitAttr());
  NVVM::ClusterWaitOp::create(builder, UnitAttr());
}

Value sharedOfCta(ImplicitLocOpBuilder &builder, Value address, unsigned rank) {
  return NVVM::MapaOp::create(builder, LLVM::LLVMPointerType::get(builder.getContext(), 7), address, constantOf(builder, rank));
}

static void control(ImplicitLocOpBuilder &builder, StringRef instruction) {
  LLVM::InlineAsmOp::create(builder, TypeRange(), ValueRange(), instruction, "~{memory}", /*has_side_effects=*/true,
                            /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
                            LLVM::AsmDialectAttr::get(builder.getContext(), LLVM::AsmDialect::AD_ATT), ArrayAttr());
}

void waitForCluster(ImplicitLocOpBuilder &builder) { control(builder, "barrier.cluster.arrive.relaxed; barrier.cluster.wait;"); }

void letNextKernelStart(ImplicitLocOpBuilder &builder) { control(builder, "griddepcontrol.launch_dependents;"); }
void waitForKernelBefore(ImplicitLocOpBuilder &builder) { control(builder, "griddepcontrol.wait;"); }

void warpBarrier(ImplicitLocOpBuilder &builder) { NVVM::SyncWarpOp::create(builder, constantOf(builder, -1)); }

/// "v4.b32" and the register constraint of one word.
static std::pair<std::string, char> accessForm(unsigned wordBytes, unsigned count) {
  std::string vector = count == 1 ? "" : "v" + std::to_string(count) + ".";
  return {vector + "b" + std::to_string(8 * wordBytes), wordBytes <= 2 ? 'h' : wordBytes == 4 ? 'r' : 'l'};
}

static Type wordType(ImplicitLocOpBuilder &builder, unsigned wordBytes) { return builder.getIntegerType(std::max(8 * wordBytes, 16u)); }

static std::string braced(unsigned first, unsigned count) {
  if (count == 1)
    return "$" + std::to_string(first);
  std::string text = "{";
  for (unsigned i = 0; i < count; ++i)
    text += (i ? ", $" : "$") + std::to_string(first + i);
  return text + "}";
}

SmallVector<Value> globalLoad(ImplicitLocOpBuilder &builder, Value pointer, Value mask, unsigned wordBytes, unsigned count, Value fill,
                              bool isConstant) {
  auto [form, constraint] = accessForm(wordBytes, count);
  Type word = wordType(builder, wordBytes);
  std::string constraints;
  SmallVector<Value> operands = {pointer};
  for (unsigned i = 0; i < count; ++i)
    constraints += std::string(i ? ",=" : "=") + constraint;
  constraints += ",l";
  std::string text = std::string("ld.global.") + (isConstant ? "nc." : "") + form + " " + braced(0, count) + ", [$" + std::to_string(count) + "];";
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
  Type result = count == 1 ? word : LLVM::LLVMStructType::getLiteral(builder.getContext(), SmallVector<Type>(count, word));
  // Side effects keep the loads of a tile together and in front of their uses.
  auto load = LLVM::InlineAsmOp::create(builder, result, operands, text, constraints, /*has_side_effects=*/true, /*is_align_stack=*/false,
                                        LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr::get(builder.getContext(), LLVM::AsmDialect::AD_ATT),
                                        ArrayAttr());
  if (count == 1)
    return {load.getRes()};
  SmallVector<Value> words;
  for (unsigned i = 0; i < count; ++i)
    words.push_back(LLVM::ExtractValueOp::create(builder, load.getRes(), i));
  return words;
}

void globalStore(ImplicitLocOpBuilder &builder, Value pointer, Value mask, unsigned wordBytes, ValueRange words) {
  auto [form, constraint] = accessForm(wordBytes, words.size());
  std::string constraints = "l";
  SmallVector<Value> operands = {pointer};
  for (Value word : words) {
    constraints += std::string(",") + constraint;
    operands.push_back(word);
  }
  std::string text = "st.global." + form + " [$0], " + braced(1, words.size()) + ";";
  if (mask) {
    text = "@$" + std::to_string(words.size() + 1) + " " + text;
    constraints += ",b";
    operands.push_back(mask);
  }
  constraints += ",~{memory}";
  LLVM::InlineAsmOp::create(builder, TypeRange(), operands, text, constraints, /*has_side_effects=*/true, /*is_align_stack=*/false,
                            LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr::get(builder.getContext(), LLVM::AsmDialect::AD_ATT),
                            ArrayAttr());
}

static LLVM::InlineAsmOp assembly(ImplicitLocOpBuilder &builder, TypeRange results, ValueRange operands, StringRef text, StringRef constraints,
                                  bool hasSideEffects) {
  return LLVM::InlineAsmOp::create(builder, results, operands, text, constraints, hasSideEffects, /*is_align_stack=*/false,
                                   LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr::get(builder.getContext(), LLVM::AsmDialect::AD_ATT),
                                   ArrayAttr());
}

void asyncCopy(ImplicitLocOpBuilder &builder, Value shared, Value global, unsigned bytes, Value mask, bool isReadAgain) {
  // Only copies of 16 bytes can leave out the first cache, where what everybody reads once is of no use. What is read again comes 1.1 to 1.8 times as fast
  // through it (convolutions on an H200).
  std::string text = bytes == 16 && !isReadAgain ? "cp.async.cg.shared.global.L2::128B [$0], [$1], 16" : "cp.async.ca.shared.global [$0], [$1], " + std::to_string(bytes);
  SmallVector<Value> operands = {shared, global};
  if (!mask) {
    assembly(builder, {}, operands, text + ";", "r,l,~{memory}", /*hasSideEffects=*/true);
    return;
  }
  // A select of LLVM's would become one for each of the conditions that make the mask.
  operands.push_back(mask);
  text = "{ .reg .b32 %n; selp.b32 %n, " + std::to_string(bytes) + ", 0, $2; " + text + ", %n; }";
  assembly(builder, {}, operands, text, "r,l,b,~{memory}", /*hasSideEffects=*/true);
}

void commitAsyncCopies(ImplicitLocOpBuilder &builder) { control(builder, "cp.async.commit_group;"); }

void waitForAsyncCopies(ImplicitLocOpBuilder &builder, unsigned pending) {
  control(builder, "cp.async.wait_group " + std::to_string(pending) + ";");
}

static SmallVector<Value> parts(ImplicitLocOpBuilder &builder, LLVM::InlineAsmOp op, unsigned count) {
  SmallVector<Value> values;
  for (unsigned i = 0; i < count; ++i)
    values.push_back(count == 1 ? op.getRes() : LLVM::ExtractValueOp::create(builder, op.getRes(), i).getResult());
  return values;
}

SmallVector<Value> loadMatrices(ImplicitLocOpBuilder &builder, Value address, unsigned count, bool isTransposed) {
  Type word = builder.getI32Type();
  std::string constraints, number = std::to_string(count);
  for (unsigned i = 0; i < count; ++i)
    constraints += "=r,";
  std::string text = "ldmatrix.sync.aligned.m8n8.x" + number + (isTransposed ? ".trans" : "") + ".shared.b16 " +
                     (count == 1 ? "{$0}" : braced(0, count)) + ", [$" + number + "];";
  Type result = count == 1 ? word : LLVM::LLVMStructType::getLiteral(builder.getContext(), SmallVector<Type>(count, word));
  return parts(builder, assembly(builder, result, address, text, constraints + "r,~{memory}", /*hasSideEffects=*/true), count);
}

Value roundToTf32(ImplicitLocOpBuilder &builder, Value value) {
  return assembly(builder, builder.getI32Type(), value, "cvt.rna.tf32.f32 $0, $1;", "=r,f", /*hasSideEffects=*/false).getRes();
}

SmallVector<Value> mmaSync(ImplicitLocOpBuilder &builder, Type element, ValueRange left, ValueRange right, ValueRange sum) {
  unsigned bits = element.getIntOrFloatBitWidth();
  StringRef shape = bits == 8 ? "m16n8k32" : bits == 32 ? "m16n8k8" : "m16n8k16";
  StringRef name = TypeSwitch<Type, StringRef>(element)
                       .Case([](IntegerType) { return "s8"; })
                       .Case([](Float8E4M3FNType) { return "e4m3"; })
                       .Case([](Float8E5M2Type) { return "e5m2"; })
                       .Case([](Float32Type) { return "tf32"; })
                       .Case([](Float16Type) { return "f16"; })
                       .Case([](BFloat16Type) { return "bf16"; });
  StringRef wide = element.isInteger(8) ? "s32" : "f32";
  std::string text = ("mma.sync.aligned." + shape + ".row.col." + wide + "." + name + "." + name + "." + wide + " " + braced(0, 4) + ", " +
                      braced(4, 4) + ", " + braced(8, 2) + ", " + braced(10, 4) + ";")
                         .str();
  std::string constraints = element.isInteger(8) ? "=r,=r,=r,=r,r,r,r,r,r,r,r,r,r,r" : "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f";
  SmallVector<Value> operands(left);
  llvm::append_range(operands, right);
  llvm::append_range(operands, sum);
  Type result = LLVM::LLVMStructType::getLiteral(builder.getContext(), SmallVector<Type>(4, sum.front().getType()));
  return parts(builder, assembly(builder, result, operands, text, constraints, /*hasSideEffects=*/false), 4);
}

void setLaunchBounds(LLVM::LLVMFuncOp function, const kgpu::Launch &launch) {
  Builder builder(function.getContext());
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(), builder.getDenseI32ArrayAttr({int32_t(launch.threads), 1, 1}));
  // Roles move registers between them: ptxas must know with how many a thread starts.
  if (unsigned ctas = launch.consumers ? std::max(launch.minCtas, 1u) : launch.minCtas)
    function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), builder.getI32IntegerAttr(ctas));
  if (launch.cluster > 1)
    function->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(), builder.getDenseI32ArrayAttr({int32_t(launch.cluster), 1, 1}));
}

void startWithShareOfRegisters(ImplicitLocOpBuilder &builder) {
  auto function = builder.getInsertionBlock()->getParentOp()->getParentOfType<LLVM::LLVMFuncOp>();
  if (!function)
    function = cast<LLVM::LLVMFuncOp>(builder.getInsertionBlock()->getParentOp());
  if (!function->hasAttr(NVVM::NVVMDialect::getMinctasmAttrName()))
    function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), builder.getI32IntegerAttr(1));
}

void setByValue(LLVM::LLVMFuncOp function, unsigned number, unsigned bytes, unsigned alignment) {
  Builder builder(function.getContext());
  Type type = LLVM::LLVMArrayType::get(builder.getI8Type(), bytes);
  function.setArgAttr(number, LLVM::LLVMDialect::getByValAttrName(), TypeAttr::get(type));
  function.setArgAttr(number, LLVM::LLVMDialect::getAlignAttrName(), builder.getI64IntegerAttr(alignment));
  function.setArgAttr(number, NVVM::NVVMDialect::getGridConstantAttrName(), builder.getUnitAttr());
}

static constexpr unsigned globalSpace = 1, sharedSpace = 3;

/// The address of a variable, which is declared in the module around `builder` when it is not there yet.
static Value addressOfVariable(ImplicitLocOpBuilder &builder, StringRef name, Type type, LLVM::Linkage linkage, unsigned alignment, unsigned space = sharedSpace,
                               Attribute value = {}) {
  Operation *module = builder.getInsertionBlock()->getParentOp()->getParentWithTrait<OpTrait::SymbolTable>();
  if (!SymbolTable::lookupSymbolIn(module, name)) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&module->getRegion(0).front());
    LLVM::GlobalOp::create(builder, type, /*isConstant=*/false, linkage, name, value, alignment, space);
  }
  return LLVM::AddressOfOp::create(builder, LLVM::LLVMPointerType::get(builder.getContext(), space), name);
}

Value addressOfCounter(ImplicitLocOpBuilder &builder, Value number) {
  Type word = builder.getI32Type();
  auto zeros = DenseElementsAttr::get(RankedTensorType::get({kgpu::kCounters}, word), builder.getI32IntegerAttr(0).getValue());
  Value all = addressOfVariable(builder, "kpkg_counters", LLVM::LLVMArrayType::get(word, kgpu::kCounters), LLVM::Linkage::Internal, /*alignment=*/128, globalSpace, zeros);
  return LLVM::GEPOp::create(builder, all.getType(), word, all, ValueRange{number});
}

Value addressOfSharedMemory(ImplicitLocOpBuilder &builder) {
  // External, so that the launch decides its size.
  return addressOfVariable(builder, "kpkg_shared", LLVM::LLVMArrayType::get(builder.getI8Type(), 0), LLVM::Linkage::External, 1024);
}

Value addressOfPrintPlace(ImplicitLocOpBuilder &builder) {
  return addressOfVariable(builder, "kpkg_print_place", builder.getI64Type(), LLVM::Linkage::Internal, 8);
}

} // namespace kpkg::lower::nvvm
