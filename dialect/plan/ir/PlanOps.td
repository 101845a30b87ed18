// Defines the ops of the plan dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PLAN_OPS_TD
#define KPKG_PLAN_OPS_TD
include "PlanTypes.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Plan_Op<string mnemonic, list<Trait> traits = []> : Op<Plan_Dialect, mnemonic, traits>;

//===--- Functions ------------------------------------------------------------------------------------------------===//

def Plan_FuncOp : Plan_Op<"func", [FunctionOpInterface, IsolatedFromAbove, Symbol, AffineScope, AutomaticAllocationScope]> {
  let summary = "defines an op's host function";
  let description = [{
    The symbol is the op's name with its namespace. Every argument has the attribute `plan.name`, and a tensor that is
    written also has `plan.mut`. `schema` is the PyTorch schema and `doc` the docstring. A function without `schema` is
    only called by other functions.

    ```mlir
    plan.func @"kpkg::softmax"(%input: !plan.tensor {plan.name = "input"}, %dim: i64 {plan.name = "dim"}) -> !plan.tensor
        attributes {schema = "softmax(Tensor input, int dim=-1) -> Tensor"} {
      %out = plan.empty_like %input
      plan.return %out : !plan.tensor
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
    OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs,
    OptionalAttr<StrAttr>:$schema, OptionalAttr<StrAttr>:$doc);
  let regions = (region SizedRegion<1>:$body);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type,
                                 CArg<"::mlir::ArrayRef<::mlir::DictionaryAttr>", "{}">:$argAttrs)>];
  let extraClassDeclaration = [{
    ::mlir::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::mlir::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    /// The source name of argument `i`.
    ::llvm::StringRef getArgName(unsigned i);
    /// Whether argument `i` is a tensor, or a list of tensors, that this function may write.
    bool isArgMut(unsigned i);
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Plan_ReturnOp : Plan_Op<"return", [ReturnLike, Terminator, HasParent<"FuncOp">, NoMemoryEffect]> {
  let summary = "ends a function and returns its results";
  let description = [{
    A result of an op that is called from outside never shares memory with an argument or another result. If it would,
    it is copied first, and the copy is visible in the plan.
  }];
  let arguments = (ins Variadic<Plan_Any>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let hasVerifier = 1;
}

def Plan_CallOp : Plan_Op<"call", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "calls another op of the package";
  let description = [{
    Recursion is not allowed.

    `plan.call @"kpkg::gemm"(%a, %b) : (!plan.tensor, !plan.tensor) -> !plan.tensor`
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<Plan_Any>:$args);
  let results = (outs Variadic<Plan_Any>:$results);
  let assemblyFormat = "$callee `(` $args `)` attr-dict `:` functional-type($args, $results)";
}

def Plan_RaiseOp : Plan_Op<"raise", [MemoryEffects<[MemWrite]>]> {
  let summary = "ends the call with an error";
  let description = [{
    The message is a format with one `{}` for each value; `{{` and `}}` are braces. A tensor prints as its dtype and
    shape. The op is no terminator, but the ops after it are not reached. A region that must still yield a value then
    uses `ub.poison` or `plan.none`.

    `plan.raise "expected rank 2, got {}"(%rank) : i64`
  }];
  let arguments = (ins StrAttr:$message, Variadic<Plan_Any>:$values);
  let assemblyFormat = "$message (`(` $values^ `)`)? attr-dict (`:` type($values)^)?";
  let hasVerifier = 1;
}

def Plan_LaunchOp : Plan_Op<"launch", [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "launches an instance of a kernel family";
  let description = [{
    The op names the kernel family, its instance parameters, the arguments in order and the grid. A parameter has an
    exact value (`=`), or takes the smallest listed value that is not smaller (`at_least`). A tensor that the kernel
    writes is marked `mut`, and scalars are converted to the kernel's scalar type. The grid is (x, y, z), or absent for
    a persistent kernel. A launch with an extent of 0 in its grid does nothing; a negative extent raises.

    ```mlir
    plan.launch "softmax_rows" [T = %t : !plan.dtype, COLS at_least %n : i64] (%x : !plan.tensor, mut %y : !plan.tensor) grid (%rows)
    ```
  }];
  let arguments = (ins StrAttr:$kernel, StrArrayAttr:$param_names, DenseBoolArrayAttr:$param_at_least,
    DenseBoolArrayAttr:$arg_mut, Variadic<AnyTypeOf<[I64, I1, F64, Plan_DTypeType, Plan_StringType]>>:$params,
    Variadic<AnyTypeOf<[Plan_TensorType, I64, F64, I1]>>:$args, Variadic<I64>:$grid);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

//===--- Queries --------------------------------------------------------------------------------------------------===//

class Plan_Query<string mnemonic, dag extra = (ins)> : Plan_Op<mnemonic, [NoMemoryEffect]> {
  let arguments = !con((ins Plan_TensorType:$tensor), extra);
}
def Plan_DTypeOp : Plan_Query<"dtype_of"> {
  let summary = "returns the tensor's dtype";
  let results = (outs Plan_DTypeType:$result);
  let assemblyFormat = "$tensor attr-dict";
  let hasCanonicalizer = 1;
}
def Plan_RankOp : Plan_Query<"rank"> {
  let summary = "returns the number of dimensions";
  let results = (outs I64:$result);
  let assemblyFormat = "$tensor attr-dict";
}
def Plan_DimOp : Plan_Query<"dim", (ins I64:$dim)> {
  let summary = "returns the extent of one dimension";
  let results = (outs I64:$result);
  let assemblyFormat = "$tensor `,` $dim attr-dict";
  let hasCanonicalizer = 1;
}
def Plan_StrideOp : Plan_Query<"stride", (ins I64:$dim)> {
  let summary = "returns the stride of one dimension, in elements";
  let results = (outs I64:$result);
  let assemblyFormat = "$tensor `,` $dim attr-dict";
}
def Plan_ShapeOp : Plan_Query<"shape"> {
  let summary = "returns all extents";
  let results = (outs Plan_ListType:$result);
  let assemblyFormat = "$tensor attr-dict";
  let hasCanonicalizer = 1;
}
def Plan_StridesOp : Plan_Query<"strides"> {
  let summary = "returns all strides, in elements";
  let results = (outs Plan_ListType:$result);
  let assemblyFormat = "$tensor attr-dict";
}
def Plan_NumelOp : Plan_Query<"numel"> {
  let summary = "returns the number of elements";
  let results = (outs I64:$result);
  let assemblyFormat = "$tensor attr-dict";
}
def Plan_IsContiguousOp : Plan_Query<"is_contiguous"> {
  let summary = "returns whether elements lie in row-major order without gaps";
  let results = (outs I1:$result);
  let assemblyFormat = "$tensor attr-dict";
}
def Plan_IsNoneOp : Plan_Query<"is_none"> {
  let summary = "returns whether the tensor is null";
  let results = (outs I1:$result);
  let assemblyFormat = "$tensor attr-dict";
  let hasFolder = 1;
}

//===--- Tensors: made, and views of them -------------------------------------------------------------------------===//

def Plan_ProcessorsOp : Plan_Op<"processors", [Pure]> {
  let summary = "returns the number of compute units of the device that runs the call, 1 to 65535";
  let description = [{
    The number depends on the device, so no result that callers see may depend on it. Shape slices reject the op.
  }];
  let results = (outs I64:$result);
  let assemblyFormat = "attr-dict";
}

def Plan_NoneOp : Plan_Op<"none", [Pure]> {
  let summary = "returns the null tensor";
  let results = (outs Plan_TensorType:$result);
  let assemblyFormat = "attr-dict";
}
def Plan_EmptyOp : Plan_Op<"empty"> {
  let summary = "allocates a contiguous tensor with undefined elements";
  let arguments = (ins Plan_ListType:$shape, Plan_DTypeType:$dtype);
  let results = (outs Res<Plan_TensorType, "", [MemAlloc]>:$result);
  let assemblyFormat = "$shape `,` $dtype attr-dict";
}
def Plan_EmptyLikeOp : Plan_Op<"empty_like"> {
  let summary = "allocates a contiguous tensor of the same shape and dtype";
  let arguments = (ins Plan_TensorType:$like);
  let results = (outs Res<Plan_TensorType, "", [MemAlloc]>:$result);
  let assemblyFormat = "$like attr-dict";
}

class Plan_View<string mnemonic, dag extra = (ins)> : Plan_Op<mnemonic, [NoMemoryEffect]> {
  let arguments = !con((ins Plan_TensorType:$tensor), extra);
  let results = (outs Plan_TensorType:$result);
}
def Plan_TransposeOp : Plan_View<"transpose", (ins I64:$dim0, I64:$dim1)> {
  let summary = "exchanges two dimensions";
  let assemblyFormat = "$tensor `,` $dim0 `,` $dim1 attr-dict";
}
def Plan_PermuteOp : Plan_View<"permute", (ins Plan_ListType:$order)> {
  let summary = "permutes dimensions: dimension i of the result is dimension order[i]";
  let assemblyFormat = "$tensor `,` $order attr-dict";
}
def Plan_ExpandOp : Plan_View<"expand", (ins Plan_ListType:$shape)> {
  let summary = "repeats dimensions of extent 1 (stride 0) and adds dimensions in front; -1 keeps an extent";
  let assemblyFormat = "$tensor `,` $shape attr-dict";
}
def Plan_DropOp : Plan_View<"drop", (ins DenseI64ArrayAttr:$dims, Variadic<I64>:$indices)> {
  let summary = "indexes dimensions and drops them, as `x[:, 3]` in NumPy";
  let description = [{
    All `dims` are distinct, and either counted from the front or all negative. An index may be negative, and must lie
    within its extent.
    `plan.drop %x [2] at (%c0)` is `x[:, :, 0]`.
  }];
  let assemblyFormat = "$tensor $dims `at` ` ` `(` $indices `)` attr-dict";
  let hasVerifier = 1;
}
def Plan_SliceOp : Plan_View<"slice", (ins I64:$dim, I64:$start, I64:$stop, I64:$step)> {
  let summary = "takes `x[start:stop:step]` along one dimension";
  let description = [{
    As in Python, negative bounds count from the end, and bounds are then clipped to the extent. A negative `step` goes
    backwards. An open end is the greatest i64, or the least one for a negative step.
  }];
  let assemblyFormat = "$tensor `,` $dim `from` $start `to` $stop `step` $step attr-dict";
}
def Plan_UnsqueezeOp : Plan_View<"unsqueeze", (ins I64:$dim)> {
  let summary = "inserts a dimension of extent 1 before `dim` (negative counts from the new end)";
  let assemblyFormat = "$tensor `,` $dim attr-dict";
}
def Plan_SqueezeOp : Plan_View<"squeeze", (ins I64:$dim)> {
  let summary = "removes a dimension of extent 1; another extent raises";
  let assemblyFormat = "$tensor `,` $dim attr-dict";
}
def Plan_UnfoldOp : Plan_View<"unfold", (ins I64:$dim, I64:$size, I64:$step)> {
  let summary = "adds sliding windows of `size` every `step` along `dim`, as a new last dimension";
  let assemblyFormat = "$tensor `,` $dim `size` $size `step` $step attr-dict";
}
def Plan_FoldOp : Plan_View<"fold", (ins I64:$dim)> {
  let summary = "merges the dimensions before and after `dim`: [outer, extent of dim, inner]";
  let description = [{
    Returns a view where strides allow it, else a copy. A tensor of rank 0 folds to [1, 1, 1] along 0 or -1.
  }];
  let assemblyFormat = "$tensor `,` $dim attr-dict";
}
def Plan_ReshapeOp : Plan_View<"reshape", (ins Plan_ListType:$shape)> {
  let summary = "returns the same elements in row-major order in another shape; one extent may be -1";
  let description = [{ Returns a view where strides allow it, else a copy. }];
  let assemblyFormat = "$tensor `,` $shape attr-dict";
}
def Plan_ContiguousOp : Plan_View<"contiguous"> {
  let summary = "returns the tensor itself where it is contiguous, else a contiguous copy";
  let assemblyFormat = "$tensor attr-dict";
  let hasFolder = 1;
}

def Plan_CheckDimOp : Plan_Op<"check_dim", [MemoryEffects<[MemWrite]>]> {
  let summary = "raises unless `dim` is a dimension of the tensor";
  let description = [{
    Replaces, in a shape slice, a view that is not needed there. The view is removed, but its error is kept.
  }];
  let arguments = (ins Plan_TensorType:$tensor, I64:$dim);
  let assemblyFormat = "$tensor `,` $dim attr-dict";
}

def Plan_CheckOp : Plan_Op<"check", [MemoryEffects<[MemWrite]>]> {
  let summary = "keeps the ops that produce the tensor, for the errors that they could raise";
  let description = [{ Replaces a removed use in a shape slice. Has no instruction of its own. }];
  let arguments = (ins Plan_TensorType:$tensor);
  let assemblyFormat = "$tensor attr-dict";
}

//===--- Integers -------------------------------------------------------------------------------------------------===//

def Plan_ModOp : Plan_Op<"mod", [NoMemoryEffect, SameOperandsAndResultType]> {
  let summary = "computes the remainder with the sign of the divisor, as `%` in Python";
  let arguments = (ins AnyTypeOf<[I64, F64]>:$lhs, AnyTypeOf<[I64, F64]>:$rhs);
  let results = (outs AnyTypeOf<[I64, F64]>:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
  let hasFolder = 1;
}
def Plan_PowOp : Plan_Op<"pow", [NoMemoryEffect, SameOperandsAndResultType]> {
  let summary = "computes an integer power; a negative exponent raises";
  let arguments = (ins I64:$lhs, I64:$rhs);
  let results = (outs I64:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict";
}

//===--- DTypes and strings ---------------------------------------------------------------------------------------===//

def Plan_DTypeConstantOp : Plan_Op<"dtype", [Pure, ConstantLike]> {
  let summary = "returns a dtype by its name in `.k`: `plan.dtype \"bfloat16\"`; `none` is that of an absent argument";
  let arguments = (ins StrAttr:$value);
  let results = (outs Plan_DTypeType:$result);
  let assemblyFormat = "$value attr-dict";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Plan_DTypeEqOp : Plan_Op<"dtype_eq", [Pure, Commutative]> {
  let summary = "returns whether two dtypes are the same";
  let arguments = (ins Plan_DTypeType:$lhs, Plan_DTypeType:$rhs);
  let results = (outs I1:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict";
  let hasFolder = 1;
}
def Plan_DTypeSizeOp : Plan_Op<"dtype_size", [Pure]> {
  let summary = "returns the bytes of one element";
  let arguments = (ins Plan_DTypeType:$dtype);
  let results = (outs I64:$result);
  let assemblyFormat = "$dtype attr-dict";
  let hasFolder = 1;
}
def Plan_DTypeIsFloatOp : Plan_Op<"dtype_is_float", [Pure]> {
  let summary = "returns whether the dtype is a floating-point type";
  let arguments = (ins Plan_DTypeType:$dtype);
  let results = (outs I1:$result);
  let assemblyFormat = "$dtype attr-dict";
  let hasFolder = 1;
}
def Plan_StringConstantOp : Plan_Op<"string", [Pure, ConstantLike]> {
  let summary = "returns a string: `plan.string \"mean\"`";
  let arguments = (ins StrAttr:$value);
  let results = (outs Plan_StringType:$result);
  let assemblyFormat = "$value attr-dict";
  let hasFolder = 1;
}
def Plan_StringEqOp : Plan_Op<"string_eq", [Pure, Commutative]> {
  let summary = "returns whether two strings are the same";
  let arguments = (ins Plan_StringType:$lhs, Plan_StringType:$rhs);
  let results = (outs I1:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict";
  let hasFolder = 1;
}

//===--- Lists ----------------------------------------------------------------------------------------------------===//

def Plan_ListOp : Plan_Op<"list", [NoMemoryEffect]> {
  let summary = "returns a list of the operands";
  let arguments = (ins Variadic<I64>:$values);
  let results = (outs Plan_ListType:$result);
  let assemblyFormat = "` ` `[` $values `]` attr-dict";
}
def Plan_ListLenOp : Plan_Op<"list_len", [Pure]> {
  let summary = "returns the list's length";
  let arguments = (ins Plan_ListType:$list);
  let results = (outs I64:$result);
  let assemblyFormat = "$list attr-dict";
  let hasCanonicalizer = 1;
}
def Plan_ListGetOp : Plan_Op<"list_get", [NoMemoryEffect]> {
  let summary = "returns one entry; a negative index counts from the end";
  let arguments = (ins Plan_ListType:$list, I64:$index);
  let results = (outs I64:$result);
  let assemblyFormat = "$list `,` $index attr-dict";
  let hasCanonicalizer = 1;
}
def Plan_ListSetOp : Plan_Op<"list_set", [NoMemoryEffect]> {
  let summary = "returns the list with one entry replaced";
  let arguments = (ins Plan_ListType:$list, I64:$index, I64:$value);
  let results = (outs Plan_ListType:$result);
  let assemblyFormat = "$list `,` $index `,` $value attr-dict";
}
def Plan_ListAppendOp : Plan_Op<"list_append", [NoMemoryEffect]> {
  let summary = "returns the list with one more entry";
  let arguments = (ins Plan_ListType:$list, I64:$value);
  let results = (outs Plan_ListType:$result);
  let assemblyFormat = "$list `,` $value attr-dict";
}
def Plan_ListConcatOp : Plan_Op<"list_concat", [NoMemoryEffect]> {
  let summary = "concatenates two lists";
  let arguments = (ins Plan_ListType:$lhs, Plan_ListType:$rhs);
  let results = (outs Plan_ListType:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict";
}
def Plan_ListSliceOp : Plan_Op<"list_slice", [NoMemoryEffect]> {
  let summary = "returns `list[start:stop]` as in Python; an open end is the greatest i64";
  let arguments = (ins Plan_ListType:$list, I64:$start, I64:$stop);
  let results = (outs Plan_ListType:$result);
  let assemblyFormat = "$list `from` $start `to` $stop attr-dict";
}
def Plan_ListEqOp : Plan_Op<"list_eq", [Pure]> {
  let summary = "returns whether two lists have the same length and entries";
  let arguments = (ins Plan_ListType:$lhs, Plan_ListType:$rhs);
  let results = (outs I1:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict";
}
def Plan_BroadcastShapesOp : Plan_Op<"broadcast_shapes", [NoMemoryEffect]> {
  let summary = "returns the shape to which both shapes broadcast; raises where they do not";
  let arguments = (ins Plan_ListType:$lhs, Plan_ListType:$rhs);
  let results = (outs Plan_ListType:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict";
}

//===--- Lists of tensors -----------------------------------------------------------------------------------------===//

def Plan_TensorsOp : Plan_Op<"tensors", [NoMemoryEffect]> {
  let summary = "returns a list of the operands";
  let arguments = (ins Variadic<Plan_TensorType>:$values);
  let results = (outs Plan_TensorListType:$result);
  let assemblyFormat = "` ` `[` $values `]` attr-dict";
}
def Plan_TensorsLenOp : Plan_Op<"tensors_len", [Pure]> {
  let summary = "returns the number of tensors";
  let arguments = (ins Plan_TensorListType:$list);
  let results = (outs I64:$result);
  let assemblyFormat = "$list attr-dict";
}
def Plan_TensorsGetOp : Plan_Op<"tensors_get", [NoMemoryEffect]> {
  let summary = "returns one tensor; a negative index counts from the end";
  let arguments = (ins Plan_TensorListType:$list, I64:$index);
  let results = (outs Plan_TensorType:$result);
  let assemblyFormat = "$list `,` $index attr-dict";
}
def Plan_TensorsAppendOp : Plan_Op<"tensors_append", [NoMemoryEffect]> {
  let summary = "returns the list with one more tensor";
  let arguments = (ins Plan_TensorListType:$list, Plan_TensorType:$value);
  let results = (outs Plan_TensorListType:$result);
  let assemblyFormat = "$list `,` $value attr-dict";
}
def Plan_TensorsConcatOp : Plan_Op<"tensors_concat", [NoMemoryEffect]> {
  let summary = "concatenates two lists";
  let arguments = (ins Plan_TensorListType:$lhs, Plan_TensorListType:$rhs);
  let results = (outs Plan_TensorListType:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict";
}
def Plan_TensorsSliceOp : Plan_Op<"tensors_slice", [NoMemoryEffect]> {
  let summary = "returns `list[start:stop]` as in Python; an open end is the greatest i64";
  let arguments = (ins Plan_TensorListType:$list, I64:$start, I64:$stop);
  let results = (outs Plan_TensorListType:$result);
  let assemblyFormat = "$list `from` $start `to` $stop attr-dict";
}
#endif
