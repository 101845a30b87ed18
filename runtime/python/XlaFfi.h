// Declares the used part of XLA's C ABI for custom calls (XLA FFI, version 0.1). Building handlers then needs no XLA.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// XLA keeps these layouts (xla/ffi/api/c_api.h): structs only grow at their end. It refuses handlers of a version newer
// than its own, so handlers state the oldest one. If the build finds jaxlib's header, XlaFfiCheck.cpp compares all
// declarations.
#ifndef KPKG_RUNTIME_PYTHON_XLAFFI_H
#define KPKG_RUNTIME_PYTHON_XLAFFI_H

#include <cstddef>
#include <cstdint>

namespace kpkg::xla {

inline constexpr int majorVersion = 0, minorVersion = 1;

enum class ExtensionType : int { Metadata = 1 };
enum class Stage : int { Execute = 3 };
enum class AttributeType : int { Array = 1, Dictionary = 2, Scalar = 3, String = 4 };
enum class ErrorCode : int { InvalidArgument = 3, ResourceExhausted = 8, Unimplemented = 12, Internal = 13 };

/// The element types that kpkg has, too.
enum class DataType : int {
  Pred = 1,
  S8 = 2,
  S16 = 3,
  S32 = 4,
  S64 = 5,
  U8 = 6,
  U16 = 7,
  U32 = 8,
  U64 = 9,
  F16 = 10,
  F32 = 11,
  F64 = 12,
  BF16 = 16,
  F8E5M2 = 19,
  F8E4M3FN = 20,
  F8E8M0FNU = 33
};

struct Error;
struct ExecutionContext;

struct Extension {
  size_t size;
  ExtensionType type;
  Extension *next;
};

struct Version {
  size_t size;
  Extension *extensions;
  int major;
  int minor;
};

struct ErrorCreateArgs {
  size_t size;
  Extension *extensions;
  const char *message;
  ErrorCode code;
};

struct StreamGetArgs {
  size_t size;
  Extension *extensions;
  ExecutionContext *context;
  void *stream; // filled by XLA
};

struct DeviceOrdinalGetArgs {
  size_t size;
  Extension *extensions;
  ExecutionContext *context;
  int32_t ordinal; // filled by XLA
};

/// XLA's functions. Those after `unusedBeforeOrdinal` came with later versions: `size` tells whether they exist.
struct Api {
  size_t size;
  Extension *extensions;
  Version version;
  const void *internal;
  Error *(*createError)(ErrorCreateArgs *);
  void *unusedBeforeStream[3];
  Error *(*getStream)(StreamGetArgs *);
  void *unusedBeforeOrdinal[12];
  Error *(*getDeviceOrdinal)(DeviceOrdinalGetArgs *);
};

struct Buffer {
  size_t size;
  Extension *extensions;
  DataType dtype;
  void *data;
  int64_t rank;
  int64_t *dims;
};

struct Bytes {
  const char *data;
  size_t size;
};

struct Scalar {
  DataType dtype;
  void *value;
};

struct Array {
  DataType dtype;
  size_t count;
  void *data;
};

/// Arguments and results. All are buffers, the only kind in version 0.1.
struct Buffers {
  size_t size;
  Extension *extensions;
  int64_t count;
  int *types;
  Buffer **buffers;
};

/// Attributes, sorted by name. An entry of `values` is a Scalar, an Array or Bytes, as `types` says.
struct Attributes {
  size_t size;
  Extension *extensions;
  int64_t count;
  AttributeType *types;
  Bytes **names;
  void **values;
};

struct CallFrame {
  size_t size;
  Extension *extensions;
  const Api *api;
  ExecutionContext *context;
  Stage stage;
  Buffers arguments;
  Buffers results;
  Attributes attributes;
};

struct Metadata {
  size_t size;
  Version version; // filled by the handler
  uint32_t traits; // filled by the handler
};

struct MetadataExtension {
  Extension base;
  Metadata *metadata;
};

} // namespace kpkg::xla

#endif // KPKG_RUNTIME_PYTHON_XLAFFI_H
