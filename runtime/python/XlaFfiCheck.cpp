// Compiles only if kpkg's declarations of XLA's C ABI for custom calls match those of the jaxlib at hand.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <xla/ffi/api/c_api.h>

#include "runtime/python/XlaFfi.h"

namespace xla = kpkg::xla;

#define SAME(Ours, ours, Theirs, theirs)                                                                               \
  static_assert(offsetof(xla::Ours, ours) == offsetof(Theirs, theirs) &&                                               \
                    sizeof(xla::Ours::ours) == sizeof(Theirs::theirs),                                                 \
                #Ours "::" #ours " differs from " #Theirs "::" #theirs)
#define SAME_NUMBER(ours, theirs) static_assert(int(xla::ours) == int(theirs), #ours " differs from " #theirs)

static_assert(xla::majorVersion == XLA_FFI_API_MAJOR && xla::minorVersion <= XLA_FFI_API_MINOR);

SAME(Extension, size, XLA_FFI_Extension_Base, struct_size);
SAME(Extension, type, XLA_FFI_Extension_Base, type);
SAME(Extension, next, XLA_FFI_Extension_Base, next);
SAME(Version, major, XLA_FFI_Api_Version, major_version);
SAME(Version, minor, XLA_FFI_Api_Version, minor_version);
SAME(ErrorCreateArgs, message, XLA_FFI_Error_Create_Args, message);
SAME(ErrorCreateArgs, code, XLA_FFI_Error_Create_Args, errc);
SAME(StreamGetArgs, context, XLA_FFI_Stream_Get_Args, ctx);
SAME(StreamGetArgs, stream, XLA_FFI_Stream_Get_Args, stream);
SAME(DeviceOrdinalGetArgs, context, XLA_FFI_DeviceOrdinal_Get_Args, ctx);
SAME(DeviceOrdinalGetArgs, ordinal, XLA_FFI_DeviceOrdinal_Get_Args, device_ordinal);
SAME(Api, version, XLA_FFI_Api, api_version);
SAME(Api, createError, XLA_FFI_Api, XLA_FFI_Error_Create);
SAME(Api, getStream, XLA_FFI_Api, XLA_FFI_Stream_Get);
SAME(Api, getDeviceOrdinal, XLA_FFI_Api, XLA_FFI_DeviceOrdinal_Get);
SAME(Buffer, dtype, XLA_FFI_Buffer, dtype);
SAME(Buffer, data, XLA_FFI_Buffer, data);
SAME(Buffer, rank, XLA_FFI_Buffer, rank);
SAME(Buffer, dims, XLA_FFI_Buffer, dims);
SAME(Bytes, data, XLA_FFI_ByteSpan, ptr);
SAME(Bytes, size, XLA_FFI_ByteSpan, len);
SAME(Scalar, dtype, XLA_FFI_Scalar, dtype);
SAME(Scalar, value, XLA_FFI_Scalar, value);
SAME(Array, dtype, XLA_FFI_Array, dtype);
SAME(Array, count, XLA_FFI_Array, size);
SAME(Array, data, XLA_FFI_Array, data);
SAME(Buffers, count, XLA_FFI_Args, size);
SAME(Buffers, types, XLA_FFI_Args, types);
SAME(Buffers, buffers, XLA_FFI_Args, args);
SAME(Buffers, count, XLA_FFI_Rets, size);
SAME(Buffers, types, XLA_FFI_Rets, types);
SAME(Buffers, buffers, XLA_FFI_Rets, rets);
SAME(Attributes, count, XLA_FFI_Attrs, size);
SAME(Attributes, types, XLA_FFI_Attrs, types);
SAME(Attributes, names, XLA_FFI_Attrs, names);
SAME(Attributes, values, XLA_FFI_Attrs, attrs);
SAME(CallFrame, extensions, XLA_FFI_CallFrame, extension_start);
SAME(CallFrame, api, XLA_FFI_CallFrame, api);
SAME(CallFrame, context, XLA_FFI_CallFrame, ctx);
SAME(CallFrame, stage, XLA_FFI_CallFrame, stage);
SAME(CallFrame, arguments, XLA_FFI_CallFrame, args);
SAME(CallFrame, results, XLA_FFI_CallFrame, rets);
SAME(CallFrame, attributes, XLA_FFI_CallFrame, attrs);
SAME(Metadata, version, XLA_FFI_Metadata, api_version);
SAME(Metadata, traits, XLA_FFI_Metadata, traits);
SAME(MetadataExtension, metadata, XLA_FFI_Metadata_Extension, metadata);

SAME_NUMBER(ExtensionType::Metadata, XLA_FFI_Extension_Metadata);
SAME_NUMBER(Stage::Execute, XLA_FFI_ExecutionStage_EXECUTE);
SAME_NUMBER(AttributeType::Array, XLA_FFI_AttrType_ARRAY);
SAME_NUMBER(AttributeType::Dictionary, XLA_FFI_AttrType_DICTIONARY);
SAME_NUMBER(AttributeType::Scalar, XLA_FFI_AttrType_SCALAR);
SAME_NUMBER(AttributeType::String, XLA_FFI_AttrType_STRING);
SAME_NUMBER(ErrorCode::InvalidArgument, XLA_FFI_Error_Code_INVALID_ARGUMENT);
SAME_NUMBER(ErrorCode::ResourceExhausted, XLA_FFI_Error_Code_RESOURCE_EXHAUSTED);
SAME_NUMBER(ErrorCode::Unimplemented, XLA_FFI_Error_Code_UNIMPLEMENTED);
SAME_NUMBER(ErrorCode::Internal, XLA_FFI_Error_Code_INTERNAL);
SAME_NUMBER(DataType::Pred, XLA_FFI_DataType_PRED);
SAME_NUMBER(DataType::S8, XLA_FFI_DataType_S8);
SAME_NUMBER(DataType::S16, XLA_FFI_DataType_S16);
SAME_NUMBER(DataType::S32, XLA_FFI_DataType_S32);
SAME_NUMBER(DataType::S64, XLA_FFI_DataType_S64);
SAME_NUMBER(DataType::U8, XLA_FFI_DataType_U8);
SAME_NUMBER(DataType::U16, XLA_FFI_DataType_U16);
SAME_NUMBER(DataType::U32, XLA_FFI_DataType_U32);
SAME_NUMBER(DataType::U64, XLA_FFI_DataType_U64);
SAME_NUMBER(DataType::F16, XLA_FFI_DataType_F16);
SAME_NUMBER(DataType::F32, XLA_FFI_DataType_F32);
SAME_NUMBER(DataType::F64, XLA_FFI_DataType_F64);
SAME_NUMBER(DataType::BF16, XLA_FFI_DataType_BF16);
SAME_NUMBER(DataType::F8E5M2, XLA_FFI_DataType_F8E5M2);
SAME_NUMBER(DataType::F8E4M3FN, XLA_FFI_DataType_F8E4M3FN);
SAME_NUMBER(DataType::F8E8M0FNU, XLA_FFI_DataType_F8E8M0FNU);
