// Compiles only if kpkg's declarations of ONNX Runtime's C ABI match the header at hand.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <onnxruntime_c_api.h>

#include "runtime/onnxruntime/ElementTypes.h"

namespace ort = kpkg::ort;

#define SAME(ours, theirs)                                                                                             \
  static_assert(offsetof(ort::Api, ours) == offsetof(OrtApi, theirs), #ours " differs from " #theirs)
#define SAME_FIELD(ours, theirs)                                                                                       \
  static_assert(offsetof(ort::CustomOp, ours) == offsetof(OrtCustomOp, theirs), #ours " differs from " #theirs)
#define SAME_NUMBER(ours, theirs) static_assert(int(ort::ours) == int(theirs), #ours " differs from " #theirs)

static_assert(ort::apiVersion <= ORT_API_VERSION);
static_assert(offsetof(ort::ApiBase, getVersion) == offsetof(OrtApiBase, GetVersionString));

SAME(createStatus, CreateStatus);
SAME(getErrorMessage, GetErrorMessage);
SAME(createCustomOpDomain, CreateCustomOpDomain);
SAME(addToDomain, CustomOpDomain_Add);
SAME(addCustomOpDomain, AddCustomOpDomain);
SAME(getTensorMutableData, GetTensorMutableData);
SAME(createShapeInfo, CreateTensorTypeAndShapeInfo);
SAME(setElementType, SetTensorElementType);
SAME(setDimensions, SetDimensions);
SAME(getElementType, GetTensorElementType);
SAME(getDimensionsCount, GetDimensionsCount);
SAME(getDimensions, GetDimensions);
SAME(getSymbolicDimensions, GetSymbolicDimensions);
SAME(getMemoryId, MemoryInfoGetId);
SAME(getFloat, KernelInfoGetAttribute_float);
SAME(getInt, KernelInfoGetAttribute_int64);
SAME(getString, KernelInfoGetAttribute_string);
SAME(getInputCount, KernelContext_GetInputCount);
SAME(getOutputCount, KernelContext_GetOutputCount);
SAME(getInput, KernelContext_GetInput);
SAME(getOutput, KernelContext_GetOutput);
SAME(releaseStatus, ReleaseStatus);
SAME(releaseShapeInfo, ReleaseTensorTypeAndShapeInfo);
SAME(getInts, KernelInfoGetAttributeArray_int64);
SAME(getGpuStream, KernelContext_GetGPUComputeStream);
SAME(getTensorMemoryInfo, GetTensorMemoryInfo);
SAME(hasConfigEntry, HasSessionConfigEntry);
SAME(getConfigEntry, GetSessionConfigEntry);
SAME(getInferInputCount, ShapeInferContext_GetInputCount);
SAME(getInferInput, ShapeInferContext_GetInputTypeShape);
SAME(getInferAttribute, ShapeInferContext_GetAttribute);
SAME(setInferOutput, ShapeInferContext_SetOutputTypeShape);
SAME(setSymbolicDimensions, SetSymbolicDimensions);
SAME(readAttribute, ReadOpAttr);
SAME(hasShape, TensorTypeAndShape_HasShape);
SAME(getTypeAndShape, GetTensorElementTypeAndShapeDataReference);

static_assert(sizeof(ort::CustomOp) == sizeof(OrtCustomOp));
SAME_FIELD(version, version);
SAME_FIELD(getName, GetName);
SAME_FIELD(getProvider, GetExecutionProviderType);
SAME_FIELD(getInputType, GetInputType);
SAME_FIELD(getInputTypeCount, GetInputTypeCount);
SAME_FIELD(getOutputType, GetOutputType);
SAME_FIELD(getOutputTypeCount, GetOutputTypeCount);
SAME_FIELD(destroyKernel, KernelDestroy);
SAME_FIELD(getInputCharacteristic, GetInputCharacteristic);
SAME_FIELD(getOutputCharacteristic, GetOutputCharacteristic);
SAME_FIELD(getInputMemoryType, GetInputMemoryType);
SAME_FIELD(createKernel, CreateKernelV2);
SAME_FIELD(compute, KernelComputeV2);
SAME_FIELD(inferShapes, InferOutputShapeFn);

SAME_NUMBER(ErrorCode::Fail, ORT_FAIL);
SAME_NUMBER(ErrorCode::InvalidArgument, ORT_INVALID_ARGUMENT);
SAME_NUMBER(ErrorCode::NotImplemented, ORT_NOT_IMPLEMENTED);
SAME_NUMBER(ErrorCode::EpFail, ORT_EP_FAIL);
SAME_NUMBER(Characteristic::Required, INPUT_OUTPUT_REQUIRED);
SAME_NUMBER(Characteristic::Optional, INPUT_OUTPUT_OPTIONAL);
SAME_NUMBER(AttributeType::Int, ORT_OP_ATTR_INT);
SAME_NUMBER(AttributeType::Ints, ORT_OP_ATTR_INTS);
SAME_NUMBER(AttributeType::Float, ORT_OP_ATTR_FLOAT);
SAME_NUMBER(AttributeType::String, ORT_OP_ATTR_STRING);
SAME_NUMBER(MemoryType::Default, OrtMemTypeDefault);
SAME_NUMBER(ElementType::Undefined, ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED);
#define SAME_TYPE(kind, bits, exponentBits, theirs)                                                                    \
  SAME_NUMBER(elementType(kpkg::DTypeKind::kind, bits, exponentBits), ONNX_TENSOR_ELEMENT_DATA_TYPE_##theirs)
SAME_TYPE(Float, 32, 8, FLOAT);
SAME_TYPE(Unsigned, 8, 0, UINT8);
SAME_TYPE(Signed, 8, 0, INT8);
SAME_TYPE(Unsigned, 16, 0, UINT16);
SAME_TYPE(Signed, 16, 0, INT16);
SAME_TYPE(Signed, 32, 0, INT32);
SAME_TYPE(Signed, 64, 0, INT64);
SAME_TYPE(Bool, 8, 0, BOOL);
SAME_TYPE(Float, 16, 5, FLOAT16);
SAME_TYPE(Float, 64, 11, DOUBLE);
SAME_TYPE(Unsigned, 32, 0, UINT32);
SAME_TYPE(Unsigned, 64, 0, UINT64);
SAME_TYPE(Float, 16, 8, BFLOAT16);
SAME_TYPE(Float, 8, 4, FLOAT8E4M3FN);
SAME_TYPE(Float, 8, 5, FLOAT8E5M2);
