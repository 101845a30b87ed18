// Generates tile IR: one tile.kernel for each instance.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/irgen/Body.h"
#include "compiler/irgen/Generate.h"
#include "compiler/irgen/ThreadNodes.h"
#include "dialect/tile/ir/KernelAttributes.h"
#include "dialect/tile/ir/ThreadOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace kpkg::compiler {

using hir::Kind;

namespace {

mlir::Type deviceElement(OpBuilder &builder, DType dtype) {
  switch (dtype) {
  case DType::Bool:
    return builder.getI1Type();
  case DType::Int:
    return builder.getIndexType();
  case DType::Float16:
    return builder.getF16Type();
  case DType::BFloat16:
    return builder.getBF16Type();
  case DType::Float32:
    return builder.getF32Type();
  case DType::Float64:
    return builder.getF64Type();
  case DType::Float8_e4m3fn:
    return Float8E4M3FNType::get(builder.getContext());
  case DType::Float8_e5m2:
    return Float8E5M2Type::get(builder.getContext());
  case DType::Float8_e8m0fnu: // Has no zero and no sign; kernels only convert its bits.
    return builder.getIntegerType(8);
  case DType::Int4:
  case DType::UInt4:
  case DType::Float4_e2m1fn:
    llvm_unreachable("elements that exist only packed");
  case DType::Int8:
  case DType::Int16:
  case DType::Int32:
  case DType::Int64:
  case DType::UInt8:
  case DType::UInt16:
  case DType::UInt32:
  case DType::UInt64:
    return builder.getIntegerType(bitsOf(dtype));
  }
  llvm_unreachable("a dtype of the table without a case");
}

mlir::Type deviceType(OpBuilder &builder, const Type *type) {
  if (type->isScalar())
    return deviceElement(builder, type->element);
  assert(type->kind == TypeKind::View && "a type that the checker keeps out of kernels");
  return tile::ViewType::get(type->rank, deviceElement(builder, type->element), type->isMut);
}

/// The body of one kernel instance.
class KernelBody final : public Body {
public:
  KernelBody(const hir::Function &function, const SourceManager &sources, tile::KernelOp kernel)
      : Body(function, sources, OpBuilder::atBlockEnd(&kernel.getBody().front())), kernel(kernel) {
    for (const hir::Node &node : function.nodes) {
      used.insert(node.operands.begin(), node.operands.end());
      for (const std::unique_ptr<hir::Block> &region : node.regions)
        used.insert(region->yields.begin(), region->yields.end());
    }
  }

  void build() {
    block(function.body);
    Block &entry = kernel.getBody().front();
    if (entry.empty() || !entry.back().hasTrait<OpTrait::IsTerminator>())
      tile::ReturnOp::create(builder, kernel.getLoc());
  }

private:
  tile::KernelOp kernel;
  /// The ops of Combine and Scan nodes.
  llvm::DenseMap<const hir::Node *, Operation *> several;
  /// The nodes whose values other nodes read.
  llvm::DenseSet<const hir::Node *> used;

  mlir::Type element(DType dtype) override { return deviceElement(builder, dtype); }
  mlir::Type convertOther(const Type *type) override { return deviceType(builder, type); }
  mlir::Value constantOther(const compiler::Value &, const Type *, Location) override {
    return {};
  } // dtypes, strings: resolved before

  mlir::Value leaf(const hir::Node &node) override {
    Location loc = location(node.range);
    auto operand = [&](size_t i) { return at(node.operands[i]); };
    switch (node.kind) {
    case Kind::Parameter:
      return kernel.getBody().getArgument(unsigned(node.ints[0]));
    case Kind::Splat:
      return tile::SplatOp::create(builder, loc, convert(node.type), operand(0));
    case Kind::ScalarOf:
      return tile::ScalarOp::create(builder, loc, convert(node.type), operand(0));
    case Kind::Iota:
      return tile::IotaOp::create(builder, loc, node.type->size());
    case Kind::Broadcast:
      return tile::BroadcastOp::create(builder, loc, convert(node.type), operand(0));
    case Kind::Reshape:
      return tile::ReshapeOp::create(builder, loc, convert(node.type), operand(0));
    case Kind::Permute:
      return tile::PermuteOp::create(builder, loc, operand(0), node.ints);
    case Kind::Extract:
      return extract(node, loc);
    case Kind::Join:
      return tile::JoinOp::create(builder, loc, operands(node), node.ints[0]);
    case Kind::Unpack:
      return unpack(node, loc);
#define HIR_REDUCTION(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
      return tile::ReduceOp::create(builder, loc, reduceKind(node), operand(0), node.ints[0]);
    case Kind::ArgMax:
    case Kind::ArgMin:
      return tile::ArgReduceOp::create(builder, loc, argReduceKind(node), operand(0), node.ints[0]);
    case Kind::Combine:
      return combine(node, loc);
    case Kind::Scan:
      return scan(node, loc);
    case Kind::Result:
      return several.lookup(node.operands[0])->getResult(unsigned(node.ints[0]));
    case Kind::Dot:
      return dot(node, loc);
    case Kind::BlockIndex:
      return tile::BlockIdOp::create(builder, loc, builder.getIndexType(), tile::GridAxis(node.ints[0]));
    case Kind::GridSize:
      return tile::GridDimOp::create(builder, loc, builder.getIndexType(), tile::GridAxis(node.ints[0]));
    case Kind::Scratch:
      return tile::ScratchOp::create(builder, loc, node.type->shape, element(node.type->element));
    case Kind::ViewShape:
      return tile::DimOp::create(builder, loc, operand(0), node.ints[0]);
    case Kind::ViewStride:
      return tile::StrideOp::create(builder, loc, operand(0), node.ints[0]);
    case Kind::DropDims:
      return tile::DropOp::create(builder, loc, operand(0), node.ints, operands(node, 1));
    case Kind::SliceView:
      return tile::SliceOp::create(builder, loc, operand(0), node.ints[0], operand(1), operand(2));
    case Kind::Element:
      return readElement(node, loc);
#define HIR_THREAD(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
      return ofThread(node, loc);
    case Kind::Window:
      return {}; // its load or store reads the operands
#define HIR_ACCESS(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
      return access(node, loc);
    case Kind::ForTiles:
      return forTiles(node, loc), mlir::Value();
    case Kind::Print:
      tile::PrintOp::create(builder, loc, builder.getStringAttr(node.text), operands(node));
      return {};
    case Kind::Assert:
      tile::AssertOp::create(builder, loc, operand(0), builder.getStringAttr(node.text));
      return {};
    case Kind::Return:
      return tile::ReturnOp::create(builder, loc), mlir::Value();
#define HIR_BODY(Name)
#define HIR_DEVICE(Name)
#define HIR(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
      llvm_unreachable("a kind of node that the checker keeps out of kernels");
    }
    llvm_unreachable("every kind is listed");
  }

  mlir::Value ofThread(const hir::Node &node, Location loc) {
    if (node.kind != Kind::Mma)
      return threadNode(builder, loc, node, operands(node), function.threads);
    several[&node] = threadMma(builder, loc, operands(node));
    return {};
  }

  mlir::Value unpack(const hir::Node &node, Location loc) {
    bool isSigned = node.ints[1] != 0, isFloat = node.ints[2] != 0;
    return tile::UnpackOp::create(builder, loc, convert(node.type), at(node.operands[0]), node.ints[0], isSigned,
                                  isFloat);
  }

  mlir::Value extract(const hir::Node &node, Location loc) {
    ArrayRef<int64_t> numbers(node.ints);
    size_t rank = node.type->shape.size();
    return tile::ExtractOp::create(builder, loc, convert(node.type), at(node.operands[0]), numbers.take_front(rank),
                                   numbers.drop_front(rank));
  }

  mlir::Value dot(const hir::Node &node, Location loc) {
    mlir::Value positions = node.operands.size() > 3 ? at(node.operands[3]) : mlir::Value();
    bool isTf32 = !node.ints.empty() && node.ints[0];
    return tile::DotOp::create(builder, loc, convert(node.type), at(node.operands[0]), at(node.operands[1]),
                               at(node.operands[2]), positions,
                               isTf32 ? tile::DotPrecision::TF32 : tile::DotPrecision::IEEE);
  }

  /// Reads or writes a tile: at a window, which is the first operand, or at indices, one tile for each dimension of the
  /// view.
  mlir::Value access(const hir::Node &node, Location loc) {
    const hir::Node &place = *node.operands[0];
    size_t rank = size_t(place.type->rank);
    auto viewOfWindow = [&] { return at(place.operands[0]); };
    auto offsets = [&] { return operands(place, 1); };
    auto indices = [&] { return operands(node, 1, rank); };
    auto value = [&] { return at(node.operands[1 + rank]); };
    auto mask = [&] { return node.ints[0] ? at(node.operands[2 + rank]) : mlir::Value(); };
    switch (node.kind) {
    case Kind::Load:
      return tile::LoadOp::create(builder, loc, convert(node.type), viewOfWindow(), offsets(), at(node.operands[1]));
    case Kind::Store:
      tile::StoreOp::create(builder, loc, at(node.operands[1]), viewOfWindow(), offsets());
      return {};
    case Kind::AddStore:
      tile::AddStoreOp::create(builder, loc, at(node.operands[1]), viewOfWindow(), offsets());
      return {};
    case Kind::Gather:
      return tile::GatherOp::create(builder, loc, convert(node.type), at(&place), indices(), value(), mask());
    case Kind::Scatter:
      tile::ScatterOp::create(builder, loc, value(), at(&place), indices(), mask());
      return {};
#define HIR_ATOMIC(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
      return update(node, loc, value(), indices(), mask());
#define HIR_ACCESS(Name)
#define HIR(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
      break;
    }
    llvm_unreachable("a node that accesses no memory");
  }

  mlir::Value update(const hir::Node &node, Location loc, mlir::Value value, ValueRange indices, mlir::Value mask) {
    mlir::Type old = used.contains(&node) ? convert(node.type) : mlir::Type(); // without it, memory answers nothing
    mlir::Value expected = node.kind == Kind::AtomicCompareExchange ? at(node.operands.back()) : mlir::Value();
    if (function.threads.exists()) {
      mlir::Value one = elementOf(builder, loc, at(node.operands[0]), indices);
      return tile::AtomicElementOp::create(builder, loc, old, atomicKind(node), value, one, expected).getOld();
    }
    return tile::AtomicOp::create(builder, loc, old, atomicKind(node), value, at(node.operands[0]), indices, mask,
                                  expected)
        .getOld();
  }

  mlir::Value readElement(const hir::Node &node, Location loc) {
    mlir::Value one = elementOf(builder, loc, at(node.operands[0]), operands(node, 1));
    mlir::Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(convert(node.type)));
    return tile::LoadOp::create(builder, loc, convert(node.type), one, ValueRange(), zero);
  }

  static tile::ReduceKind reduceKind(const hir::Node &node) {
    bool isUnsigned = compiler::isUnsigned(node.type->element);
    switch (node.kind) {
    case Kind::ReduceSum:
      return tile::ReduceKind::Sum;
    case Kind::ReduceProd:
      return tile::ReduceKind::Prod;
    case Kind::ReduceMax:
      return isUnsigned ? tile::ReduceKind::UMax : tile::ReduceKind::Max;
    case Kind::ReduceMin:
      return isUnsigned ? tile::ReduceKind::UMin : tile::ReduceKind::Min;
    case Kind::ReduceAny:
      return tile::ReduceKind::Or;
    case Kind::ReduceAll:
      return tile::ReduceKind::And;
#define HIR_REDUCTION(Name)
#define HIR(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
      break;
    }
    llvm_unreachable("a node that is no reduction");
  }

  static tile::AtomicKind atomicKind(const hir::Node &node) {
    bool isUnsigned = compiler::isUnsigned(node.operands[0]->type->element);
    switch (node.kind) {
    case Kind::AtomicMax:
      return isUnsigned ? tile::AtomicKind::UMax : tile::AtomicKind::Max;
    case Kind::AtomicMin:
      return isUnsigned ? tile::AtomicKind::UMin : tile::AtomicKind::Min;
    case Kind::AtomicAdd:
      return tile::AtomicKind::Add;
    case Kind::AtomicExchange:
      return tile::AtomicKind::Exchange;
    case Kind::AtomicCompareExchange:
      return tile::AtomicKind::CompareExchange;
#define HIR_ATOMIC(Name)
#define HIR(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
      break;
    }
    llvm_unreachable("a node that is no atomic update");
  }

  static tile::ArgReduceKind argReduceKind(const hir::Node &node) {
    bool isUnsigned = compiler::isUnsigned(node.operands[0]->type->element);
    if (node.kind == Kind::ArgMax)
      return isUnsigned ? tile::ArgReduceKind::UMax : tile::ArgReduceKind::Max;
    return isUnsigned ? tile::ArgReduceKind::UMin : tile::ArgReduceKind::Min;
  }

  /// Fills the region of a reduction or scan by a function, whose scalars are variables.
  void fillFunction(const hir::Node &node, Region &region, Location loc) {
    OpBuilder::InsertionGuard guard(builder);
    Block &body = region.front();
    builder.setInsertionPointToEnd(&body);
    inRegion([&] {
      for (auto [local, argument] : llvm::zip(node.locals, body.getArguments()))
        variables[local->id] = argument;
      block(*node.regions[0]);
      SmallVector<mlir::Value> yields;
      for (const hir::Node *value : node.regions[0]->yields)
        yields.push_back(at(value));
      tile::YieldOp::create(builder, loc, yields);
    });
  }

  mlir::Value combine(const hir::Node &node, Location loc) {
    size_t count = size_t(node.ints[1]);
    auto op = tile::CombineOp::create(builder, loc, operands(node, 0, count), operands(node, count), node.ints[0]);
    fillFunction(node, op.getBody(), loc);
    several[&node] = op;
    return op.getResult(0);
  }

  mlir::Value scan(const hir::Node &node, Location loc) {
    auto op = tile::ScanOp::create(builder, loc, operands(node), node.ints[0]);
    fillFunction(node, op.getBody(), loc);
    several[&node] = op;
    return op.getResult(0);
  }

  void forTiles(const hir::Node &node, Location loc) {
    auto op = tile::ForTilesOp::create(builder, loc, operands(node));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(op.getBody().front().getTerminator());
    inRegion([&] {
      for (auto [local, coordinate] : llvm::zip(node.locals, op.getCoordinates()))
        variables[local->id] = coordinate;
      block(*node.regions[0]);
    });
  }
};

Attribute attributeOf(OpBuilder &builder, const compiler::Value &value) {
  if (value.isBool())
    return builder.getBoolAttr(value.asBool());
  if (value.isInt())
    return builder.getI64IntegerAttr(value.asInt());
  if (value.isFloat())
    return builder.getF64FloatAttr(value.asFloat());
  return builder.getStringAttr(value.isDType() ? std::string(valueNameOf(value.asDType())) : value.str());
}

void generateKernel(const KernelRecord &record, const KernelInstance &instance, const hir::Function &function,
                    const SourceManager &sources, OpBuilder &builder) {
  SmallVector<mlir::Type> arguments;
  for (const hir::FunctionParameter &parameter : function.parameters)
    arguments.push_back(deviceType(builder, parameter.type));
  SmallVector<NamedAttribute> params;
  for (auto [parameter, value] : llvm::zip(record.parameters, instance.parameters))
    params.push_back(builder.getNamedAttr(parameter.name, attributeOf(builder, value)));
  auto kernel =
      tile::KernelOp::create(builder, locationOf(builder, sources, function.range), instance.symbol, arguments);
  kernel.setKernelAttr(builder.getStringAttr(record.name));
  kernel.setParamsAttr(builder.getDictionaryAttr(params));
  if (!instance.schedule.asksForNothing())
    kernel.setScheduleAttr(tile::ScheduleAttr::get(builder.getContext(), instance.schedule));
  if (function.threads.exists())
    tile::setThreads(kernel, function.threads.extents, function.threads.cluster);
  SmallVector<int64_t> optional;
  for (auto [number, argument] : llvm::enumerate(record.arguments))
    if (argument.isOptional)
      optional.push_back(number);
  if (!optional.empty())
    kernel->setAttr(tile::optionalArguments, builder.getDenseI64ArrayAttr(optional));
  KernelBody(function, sources, kernel).build();
}

} // namespace

std::vector<InstanceRef> checkedInstances(const Program &program) {
  std::vector<InstanceRef> refs;
  for (size_t k = 0; k < program.kernels().size(); ++k)
    for (size_t i = 0; i < program.kernels()[k].instances.size(); ++i)
      if (program.kernel(k, i))
        refs.push_back({k, i});
  return refs;
}

OwningOpRef<ModuleOp> generateKernels(const Program &program, const SourceManager &sources,
                                      const std::vector<InstanceRef> &instances, MLIRContext &context) {
  context.loadDialect<tile::TileDialect, arith::ArithDialect, math::MathDialect, scf::SCFDialect, ub::UBDialect>();
  OpBuilder builder(&context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder.getUnknownLoc());
  builder.setInsertionPointToEnd(module->getBody());
  for (const InstanceRef &ref : instances) {
    const KernelRecord &record = program.kernels()[ref.kernel];
    generateKernel(record, record.instances[ref.instance], *program.kernel(ref.kernel, ref.instance), sources, builder);
  }
  if (failed(verify(*module)))
    return nullptr;
  return module;
}

} // namespace kpkg::compiler
