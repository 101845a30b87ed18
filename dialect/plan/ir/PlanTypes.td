// Defines the types of the plan dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PLAN_TYPES_TD
#define KPKG_PLAN_TYPES_TD
include "PlanDialect.td"
include "mlir/IR/AttrTypeBase.td"

class Plan_Type<string cppName, string typeMnemonic> : TypeDef<Plan_Dialect, cppName> {
  let mnemonic = typeMnemonic;
}
def Plan_TensorType : Plan_Type<"Tensor", "tensor"> {
  let summary = "a view of memory with run-time dtype, rank, shape and strides; may be null";
}
def Plan_ListType : Plan_Type<"List", "list"> {
  let summary = "a list of i64 with at most 64 entries";
}
def Plan_TensorListType : Plan_Type<"TensorList", "tensors"> {
  let summary = "a list of tensors with at most 4096 entries";
}
def Plan_DTypeType : Plan_Type<"DType", "dtype"> {
  let summary = "a dtype: float32, bfloat16, int64, ...";
}
def Plan_StringType : Plan_Type<"String", "string"> {
  let summary = "a string";
}

def Plan_Scalar : AnyTypeOf<[I64, F64, I1], "scalar (i64, f64 or i1)">;
def Plan_Any : AnyTypeOf<[I64, F64, I1, Plan_TensorType, Plan_ListType, Plan_TensorListType, Plan_DTypeType,
                          Plan_StringType],
                         "plan value (i64, f64, i1, tensor, list, list of tensors, dtype or string)">;
#endif
