// Declares the used part of ONNX Runtime's C ABI (version 24). Building the library of custom ops then needs no header.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ONNX Runtime keeps these layouts (include/onnxruntime/core/session/onnxruntime_c_api.h): the table of functions and
// the struct of a custom op only grow at their ends. With KPKG_ONNXRUNTIME_FOLDER set, OrtApiCheck.cpp compares all
// declarations with that header.
#ifndef KPKG_RUNTIME_ONNXRUNTIME_ORTAPI_H
#define KPKG_RUNTIME_ONNXRUNTIME_ORTAPI_H

#include <cstddef>
#include <cstdint>

namespace kpkg::ort {

/// The oldest ONNX Runtime is 1.24: earlier ones take no dtype from the inference of shapes.
inline constexpr uint32_t apiVersion = 24;

enum class ErrorCode : int { Fail = 1, InvalidArgument = 2, NotImplemented = 9, EpFail = 11 };
enum class Characteristic : int { Required = 0, Optional = 1 };
enum class AttributeType : int { Int = 1, Ints = 2, Float = 3, String = 5 };
enum class MemoryType : int { Default = 0 };

/// ElementTypes.h has the numbers.
enum class ElementType : int { Undefined = 0 };

struct OrtStatus;
struct SessionOptions;
struct Domain;
struct Value;
struct MemoryInfo;
struct ShapeInfo;
struct KernelInfo;
struct KernelContext;
struct ShapeContext;
struct Attribute;

/// ONNX Runtime's functions. Those that return a status return null for success.
struct Api {
  OrtStatus *(*createStatus)(ErrorCode, const char *message);
  void *unused1;
  const char *(*getErrorMessage)(const OrtStatus *);
  void *unused3[23];
  OrtStatus *(*createCustomOpDomain)(const char *name, Domain **);
  OrtStatus *(*addToDomain)(Domain *, const struct CustomOp *);
  OrtStatus *(*addCustomOpDomain)(SessionOptions *, Domain *);
  void *unused29[22];
  OrtStatus *(*getTensorMutableData)(Value *, void **);
  void *unused52[5];
  OrtStatus *(*createShapeInfo)(ShapeInfo **);
  OrtStatus *(*setElementType)(ShapeInfo *, ElementType);
  OrtStatus *(*setDimensions)(ShapeInfo *, const int64_t *, size_t count);
  OrtStatus *(*getElementType)(const ShapeInfo *, ElementType *);
  OrtStatus *(*getDimensionsCount)(const ShapeInfo *, size_t *);
  OrtStatus *(*getDimensions)(const ShapeInfo *, int64_t *, size_t count);
  OrtStatus *(*getSymbolicDimensions)(const ShapeInfo *, const char **, size_t count);
  void *unused64[8];
  OrtStatus *(*getMemoryId)(const MemoryInfo *, int *);
  void *unused73[12];
  OrtStatus *(*getFloat)(const KernelInfo *, const char *name, float *);
  OrtStatus *(*getInt)(const KernelInfo *, const char *name, int64_t *);
  OrtStatus *(*getString)(const KernelInfo *, const char *name, char *, size_t *size);
  OrtStatus *(*getInputCount)(const KernelContext *, size_t *);
  OrtStatus *(*getOutputCount)(const KernelContext *, size_t *);
  OrtStatus *(*getInput)(const KernelContext *, size_t index, const Value **);
  OrtStatus *(*getOutput)(KernelContext *, size_t index, const int64_t *dims, size_t count, Value **);
  void *unused92;
  void (*releaseStatus)(OrtStatus *);
  void *unused94[5];
  void (*releaseShapeInfo)(ShapeInfo *);
  void *unused100[63];
  OrtStatus *(*getInts)(const KernelInfo *, const char *name, int64_t *, size_t *count);
  void *unused164[29];
  OrtStatus *(*getGpuStream)(const KernelContext *, void **);
  OrtStatus *(*getTensorMemoryInfo)(const Value *, const MemoryInfo **);
  void *unused195[42];
  OrtStatus *(*hasConfigEntry)(const SessionOptions *, const char *key, int *);
  OrtStatus *(*getConfigEntry)(const SessionOptions *, const char *key, char *, size_t *size);
  void *unused239[28];
  OrtStatus *(*getInferInputCount)(const ShapeContext *, size_t *);
  OrtStatus *(*getInferInput)(const ShapeContext *, size_t index, ShapeInfo **);
  OrtStatus *(*getInferAttribute)(const ShapeContext *, const char *name, const Attribute **);
  OrtStatus *(*setInferOutput)(const ShapeContext *, size_t index, const ShapeInfo *);
  OrtStatus *(*setSymbolicDimensions)(ShapeInfo *, const char **, size_t count);
  OrtStatus *(*readAttribute)(const Attribute *, AttributeType, void *, size_t bytes, size_t *needed);
  void *unused273[117];
  bool (*hasShape)(const ShapeInfo *);
  void *unused391[23];
  OrtStatus *(*getTypeAndShape)(const Value *, ElementType *, const int64_t **dims, size_t *count);
};

struct ApiBase {
  const Api *(*getApi)(uint32_t version);
  const char *(*getVersion)();
};

/// A custom op. Functions that are null have a default, or belong to interfaces of older versions.
struct CustomOp {
  uint32_t version;
  void *unusedCreateKernel;
  const char *(*getName)(const CustomOp *);
  const char *(*getProvider)(const CustomOp *); ///< null for CPUs
  ElementType (*getInputType)(const CustomOp *, size_t index);
  size_t (*getInputTypeCount)(const CustomOp *);
  ElementType (*getOutputType)(const CustomOp *, size_t index);
  size_t (*getOutputTypeCount)(const CustomOp *);
  void *unusedCompute;
  void (*destroyKernel)(void *kernel);
  Characteristic (*getInputCharacteristic)(const CustomOp *, size_t index);
  Characteristic (*getOutputCharacteristic)(const CustomOp *, size_t index);
  MemoryType (*getInputMemoryType)(const CustomOp *, size_t index);
  void *unusedVariadic[4];
  OrtStatus *(*createKernel)(const CustomOp *, const Api *, const KernelInfo *, void **kernel);
  OrtStatus *(*compute)(void *kernel, KernelContext *);
  OrtStatus *(*inferShapes)(const CustomOp *, ShapeContext *);
  void *unusedVersions[2];
  void *unusedAliases[4];
};

// The numbers are those of the functions in ONNX Runtime's table.
#define KPKG_ORT_AT(member, index) static_assert(offsetof(Api, member) == index * sizeof(void *))
KPKG_ORT_AT(createCustomOpDomain, 26);
KPKG_ORT_AT(getTensorMutableData, 51);
KPKG_ORT_AT(createShapeInfo, 57);
KPKG_ORT_AT(getMemoryId, 72);
KPKG_ORT_AT(getFloat, 85);
KPKG_ORT_AT(getOutput, 91);
KPKG_ORT_AT(releaseStatus, 93);
KPKG_ORT_AT(releaseShapeInfo, 99);
KPKG_ORT_AT(getInts, 163);
KPKG_ORT_AT(getGpuStream, 193);
KPKG_ORT_AT(hasConfigEntry, 237);
KPKG_ORT_AT(getInferInputCount, 267);
KPKG_ORT_AT(readAttribute, 272);
KPKG_ORT_AT(hasShape, 390);
KPKG_ORT_AT(getTypeAndShape, 414);
#undef KPKG_ORT_AT
static_assert(sizeof(CustomOp) == 26 * sizeof(void *) && offsetof(CustomOp, createKernel) == 17 * sizeof(void *));

} // namespace kpkg::ort

#endif // KPKG_RUNTIME_ONNXRUNTIME_ORTAPI_H
