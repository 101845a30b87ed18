// Implements the conversion of errors between kpkg and ONNX Runtime.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/onnxruntime/Errors.h"

namespace kpkg::ort {
namespace {

ErrorCode codeOf(kpkg_status status) {
  switch (status) {
  case KPKG_ERROR_USE:
  case KPKG_ERROR_KERNEL:
    return ErrorCode::InvalidArgument;
  case KPKG_ERROR_NO_INSTANCE:
  case KPKG_ERROR_UNSUPPORTED:
    return ErrorCode::NotImplemented;
  case KPKG_ERROR_DEVICE:
  case KPKG_ERROR_CAPTURE:
    return ErrorCode::EpFail;
  default:
    return ErrorCode::Fail;
  }
}

} // namespace

void raise(const Error &error) {
  std::string message = error.message;
  if (!error.op.empty() && message.find(error.op) == std::string::npos)
    message = error.op + ": " + message;
  throw Failure(codeOf(error.status), message);
}

void check(const Api &api, OrtStatus *status) {
  if (!status)
    return;
  std::string message = api.getErrorMessage(status);
  api.releaseStatus(status);
  throw Failure(ErrorCode::Fail, message);
}

} // namespace kpkg::ort
