// Generates plan IR: one plan.func for each op of the program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/irgen/Body.h"
#include "compiler/irgen/Generate.h"
#include "dialect/plan/ir/Plan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace kpkg::compiler {

using hir::Kind;

namespace {
/// Returns the host type: i64, f64 or i1. The launch narrows scalar arguments of kernels.
mlir::Type hostElement(OpBuilder &builder, DType dtype) {
  if (dtype == DType::Bool)
    return builder.getI1Type();
  return isFloat(dtype) ? mlir::Type(builder.getF64Type()) : mlir::Type(builder.getI64Type());
}

mlir::Type hostType(OpBuilder &builder, const Type *type) {
  MLIRContext *context = builder.getContext();
  switch (type->kind) {
  case TypeKind::Scalar:
    return hostElement(builder, type->element);
  case TypeKind::Optional:
    if (type->isOptionalFloat()) // absence is NaN, which callers cannot pass
      return builder.getF64Type();
    if (type->isOptionalDType()) // absence is the dtype `none`
      return plan_ir::DTypeType::get(context);
    [[fallthrough]];
  case TypeKind::Tensor:
    return plan_ir::TensorType::get(context);
  case TypeKind::List:
    return plan_ir::ListType::get(context);
  case TypeKind::TensorList:
    return plan_ir::TensorListType::get(context);
  case TypeKind::DType:
    return plan_ir::DTypeType::get(context);
  case TypeKind::String:
    return plan_ir::StringType::get(context);
  case TypeKind::Error:
  case TypeKind::None:
  case TypeKind::Tile:
  case TypeKind::View:
  case TypeKind::Window:
  case TypeKind::Tuple:
  case TypeKind::Function:
  case TypeKind::Struct:
  case TypeKind::StructName:
  case TypeKind::Range:
    break;
  }
  llvm_unreachable("a type that the checker keeps out of ops");
}

/// Returns whether the list that a node makes or reads is one of tensors.
bool isOfTensors(const hir::Node &node) {
  const Type *list = node.kind == Kind::MakeList ? node.type : node.operands[0]->type;
  return list->kind == TypeKind::TensorList;
}

/// The body of one op.
class OpBody final : public Body {
public:
  OpBody(const hir::Function &function, const SourceManager &sources, plan_ir::FuncOp func, const Program &program)
      : Body(function, sources, OpBuilder::atBlockEnd(&func.getBody().front())), func(func), program(program) {}

  void build() {
    block(function.body);
    Block &body = func.getBody().front();
    if (!body.empty() && body.back().hasTrait<OpTrait::IsTerminator>())
      return;
    // Every path raises, so that the op returns nothing.
    SmallVector<mlir::Value> results;
    for (mlir::Type type : func.getFunctionType().getResults())
      results.push_back(undefined(type, func.getLoc()));
    plan_ir::ReturnOp::create(builder, func.getLoc(), results);
  }

private:
  plan_ir::FuncOp func;
  const Program &program;
  /// The results of op calls, by node.
  llvm::DenseMap<const hir::Node *, plan_ir::CallOp> calls;

  mlir::Type element(DType dtype) override { return hostElement(builder, dtype); }
  mlir::Type convertOther(const Type *type) override { return hostType(builder, type); }

  mlir::Value constantOther(const compiler::Value &value, const Type *type, Location loc) override {
    switch (type->kind) {
    case TypeKind::DType:
      return plan_ir::DTypeConstantOp::create(builder, loc, convert(type), valueNameOf(value.asDType()));
    case TypeKind::String:
      return plan_ir::StringConstantOp::create(builder, loc, convert(type), value.asString());
    case TypeKind::List: {
      SmallVector<mlir::Value> entries;
      for (const compiler::Value &item : value.asSequence().items)
        entries.push_back(arith::ConstantIntOp::create(builder, loc, item.asInt(), 64));
      return plan_ir::ListOp::create(builder, loc, convert(type), entries);
    }
    default: // None
      return plan_ir::NoneOp::create(builder, loc, plan_ir::TensorType::get(builder.getContext()));
    }
  }

  mlir::Value undefined(mlir::Type type, Location loc) override {
    if (isa<plan_ir::TensorType>(type))
      return plan_ir::NoneOp::create(builder, loc, type);
    return Body::undefined(type, loc);
  }

  template <typename Op> mlir::Value make(const hir::Node &node) {
    return Op::create(builder, location(node.range), TypeRange(convert(node.type)), operands(node)).getResult();
  }

  mlir::Value leaf(const hir::Node &node) override;
  mlir::Value noDType(Location loc);
  mlir::Value isNone(const hir::Node &node);
  mlir::Value count(const hir::Node &node);
  mlir::Value tensorForm(const hir::Node &node);
  mlir::Value list(const hir::Node &node);
  void call(const hir::Node &node);
  void launch(const hir::Node &node);
};

mlir::Value OpBody::noDType(Location loc) {
  return plan_ir::DTypeConstantOp::create(builder, loc, plan_ir::DTypeType::get(builder.getContext()),
                                          plan_ir::absentDTypeName());
}

mlir::Value OpBody::isNone(const hir::Node &node) {
  Location loc = location(node.range);
  mlir::Value value = at(node.operands[0]);
  if (value.getType().isF64()) // NaN stands for an absent number
    return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO, value, value);
  if (isa<plan_ir::DTypeType>(value.getType()))
    return plan_ir::DTypeEqOp::create(builder, loc, value, noDType(loc));
  return make<plan_ir::IsNoneOp>(node);
}

mlir::Value OpBody::count(const hir::Node &node) {
  switch (node.kind) {
  case Kind::Rank:
    return make<plan_ir::RankOp>(node);
  case Kind::Numel:
    return make<plan_ir::NumelOp>(node);
  case Kind::Extent:
    return make<plan_ir::DimOp>(node);
  case Kind::ListLength:
    return isOfTensors(node) ? make<plan_ir::TensorsLenOp>(node) : make<plan_ir::ListLenOp>(node);
  case Kind::DTypeSize:
    return make<plan_ir::DTypeSizeOp>(node);
#define HIR_COUNT(Name)
#define HIR(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
    break;
  }
  llvm_unreachable("a node that is no count");
}

mlir::Value OpBody::tensorForm(const hir::Node &node) {
  switch (node.kind) {
  case Kind::Transpose:
    return make<plan_ir::TransposeOp>(node);
  case Kind::PermuteDims:
    return make<plan_ir::PermuteOp>(node);
  case Kind::ReshapeTensor:
    return make<plan_ir::ReshapeOp>(node);
  case Kind::Expand:
    return make<plan_ir::ExpandOp>(node);
  case Kind::Fold:
    return make<plan_ir::FoldOp>(node);
  case Kind::Unsqueeze:
    return make<plan_ir::UnsqueezeOp>(node);
  case Kind::Squeeze:
    return make<plan_ir::SqueezeOp>(node);
  case Kind::Unfold:
    return make<plan_ir::UnfoldOp>(node);
  case Kind::Contiguous:
    return make<plan_ir::ContiguousOp>(node);
  case Kind::IndexAway:
    return plan_ir::DropOp::create(builder, location(node.range), convert(node.type), at(node.operands[0]), node.ints,
                                   operands(node, 1));
  case Kind::SliceTensor:
    return make<plan_ir::SliceOp>(node);
#define HIR_TENSOR_FORM(Name)
#define HIR(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
    break;
  }
  llvm_unreachable("a node that is no other form of a tensor");
}

mlir::Value OpBody::list(const hir::Node &node) {
  bool ofTensors = isOfTensors(node);
  switch (node.kind) {
  case Kind::MakeList:
    return ofTensors ? make<plan_ir::TensorsOp>(node) : make<plan_ir::ListOp>(node);
  case Kind::ListGet:
    return ofTensors ? make<plan_ir::TensorsGetOp>(node) : make<plan_ir::ListGetOp>(node);
  case Kind::ListSet:
    return make<plan_ir::ListSetOp>(node);
  case Kind::ListAppend:
    return ofTensors ? make<plan_ir::TensorsAppendOp>(node) : make<plan_ir::ListAppendOp>(node);
  case Kind::ListConcat:
    return ofTensors ? make<plan_ir::TensorsConcatOp>(node) : make<plan_ir::ListConcatOp>(node);
  case Kind::ListSlice:
    return ofTensors ? make<plan_ir::TensorsSliceOp>(node) : make<plan_ir::ListSliceOp>(node);
  default: // ListEqual
    return make<plan_ir::ListEqOp>(node);
  }
}

mlir::Value OpBody::leaf(const hir::Node &node) {
  Location loc = location(node.range);
  if (node.kind == Kind::Pow) // of Ints: the only elementwise kind that is special to plans
    return make<plan_ir::PowOp>(node);
  switch (node.kind) {
  case Kind::Parameter:
    return func.getArgument(node.ints[0]);
  case Kind::Return:
    plan_ir::ReturnOp::create(builder, loc, operands(node));
    return {};
  case Kind::NoTensor:
    return make<plan_ir::NoneOp>(node);
  case Kind::NoFloat:
    return arith::ConstantFloatOp::create(builder, loc, builder.getF64Type(),
                                          llvm::APFloat::getNaN(llvm::APFloat::IEEEdouble()));
  case Kind::NoDType:
    return noDType(loc);
  case Kind::Processors:
    return make<plan_ir::ProcessorsOp>(node);
  case Kind::DTypeOf:
    return make<plan_ir::DTypeOp>(node);
  case Kind::IsContiguous:
    return make<plan_ir::IsContiguousOp>(node);
  case Kind::IsNone:
    return isNone(node);
  case Kind::Shape:
    return make<plan_ir::ShapeOp>(node);
  case Kind::Strides:
    return make<plan_ir::StridesOp>(node);
  case Kind::StrideOf:
    return make<plan_ir::StrideOp>(node);
  case Kind::Empty:
    return make<plan_ir::EmptyOp>(node);
  case Kind::EmptyLike:
    return make<plan_ir::EmptyLikeOp>(node);
#define HIR_COUNT(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
    return count(node);
#define HIR_TENSOR_FORM(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
    return tensorForm(node);
  case Kind::MakeList:
  case Kind::ListGet:
  case Kind::ListSet:
  case Kind::ListAppend:
  case Kind::ListConcat:
  case Kind::ListSlice:
  case Kind::ListEqual:
    return list(node);
  case Kind::BroadcastShapes:
    return make<plan_ir::BroadcastShapesOp>(node);
  case Kind::DTypeEqual:
    return make<plan_ir::DTypeEqOp>(node);
  case Kind::DTypeIsFloat:
    return make<plan_ir::DTypeIsFloatOp>(node);
  case Kind::StringEqual:
    return make<plan_ir::StringEqOp>(node);
  case Kind::Raise:
    plan_ir::RaiseOp::create(builder, loc, node.text, operands(node));
    return {};
  case Kind::CallOp:
    call(node);
    return {};
  case Kind::Result:
    return calls.lookup(node.operands[0]).getResult(node.ints[0]);
  case Kind::Launch:
    launch(node);
    return {};
#define HIR_BODY(Name)
#define HIR_HOST(Name)
#define HIR(Name) case Kind::Name:
#include "compiler/check/HirKinds.def"
    llvm_unreachable("a node that the checker keeps out of ops");
  }
  llvm_unreachable("every kind is listed");
}

void OpBody::call(const hir::Node &node) {
  const auto &ops = program.ops();
  auto callee = llvm::find_if(ops, [&](const OpRecord &op) { return op.name == node.text; });
  SmallVector<mlir::Type> results(callee->results.size(), plan_ir::TensorType::get(builder.getContext()));
  calls[&node] = plan_ir::CallOp::create(builder, location(node.range), results, node.text, operands(node));
}

void OpBody::launch(const hir::Node &node) {
  const hir::LaunchInfo &info = *node.launch;
  SmallVector<StringRef> names(info.parameterNames.begin(), info.parameterNames.end());
  SmallVector<bool> atLeast(info.parameterAtLeast.begin(), info.parameterAtLeast.end());
  SmallVector<bool> isMut(info.argumentMut.begin(), info.argumentMut.end());
  plan_ir::LaunchOp::create(
      builder, location(node.range), builder.getStringAttr(info.kernel), builder.getStrArrayAttr(names),
      builder.getDenseBoolArrayAttr(atLeast), builder.getDenseBoolArrayAttr(isMut), operands(node, 0, names.size()),
      operands(node, names.size(), isMut.size()), operands(node, names.size() + isMut.size(), info.gridRank));
}

plan_ir::FuncOp declare(OpBuilder &builder, const OpRecord &op, const hir::Function &function, Location loc) {
  SmallVector<mlir::Type> arguments, results;
  SmallVector<DictionaryAttr> attributes;
  for (const hir::FunctionParameter &parameter : function.parameters) {
    arguments.push_back(hostType(builder, parameter.type));
    NamedAttrList list;
    list.append(plan_ir::argNameAttr, builder.getStringAttr(parameter.name));
    if (parameter.isMut)
      list.append(plan_ir::argMutAttr, builder.getUnitAttr());
    attributes.push_back(list.getDictionary(builder.getContext()));
  }
  for (const Type *result : function.results)
    results.push_back(hostType(builder, result));
  auto func = plan_ir::FuncOp::create(builder, loc, op.name, builder.getFunctionType(arguments, results), attributes);
  func.setSchema(op.schema);
  if (!op.doc.empty())
    func.setDoc(op.doc);
  Block &entry = func.getBody().emplaceBlock();
  entry.addArguments(arguments, SmallVector<Location>(arguments.size(), loc));
  return func;
}
} // namespace

OwningOpRef<ModuleOp> generateOps(const Program &program, const SourceManager &sources, MLIRContext &context) {
  context.loadDialect<plan_ir::PlanDialect, arith::ArithDialect, math::MathDialect, scf::SCFDialect, ub::UBDialect>();
  OpBuilder builder(&context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder.getUnknownLoc());
  for (size_t i = 0; i < program.ops().size(); ++i) {
    const hir::Function *function = program.op(i);
    if (!function)
      continue;
    builder.setInsertionPointToEnd(module->getBody());
    plan_ir::FuncOp func = declare(builder, program.ops()[i], *function, builder.getUnknownLoc());
    OpBody(*function, sources, func, program).build();
  }
  if (failed(verify(*module)))
    return {};
  return module;
}

} // namespace kpkg::compiler
