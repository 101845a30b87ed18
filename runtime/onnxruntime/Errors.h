// Converts between exceptions, errors of kpkg and statuses of ONNX Runtime.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_ONNXRUNTIME_ERRORS_H
#define KPKG_RUNTIME_ONNXRUNTIME_ERRORS_H

#include "runtime/onnxruntime/OrtApi.h"

#include <kpkg/kpkg.hpp>

#include <exception>
#include <stdexcept>
#include <string>

namespace kpkg::ort {

/// What ONNX Runtime is told of a failure.
struct Failure : std::runtime_error {
  Failure(ErrorCode code, const std::string &message) : std::runtime_error(message), code(code) {}
  ErrorCode code;
};

/// Throws the error of a failed function of kpkg. Its message names the op.
[[noreturn]] void raise(const Error &error);

/// Throws the message of a status that is no success, and releases it.
void check(const Api &api, OrtStatus *status);

/// Returns whether a function succeeded, and releases its status.
inline bool succeeds(const Api &api, OrtStatus *status) {
  if (status)
    api.releaseStatus(status);
  return !status;
}

/// Runs the body of a function that ONNX Runtime calls: no exception crosses its C ABI.
template <typename Body> OrtStatus *guarded(const Api &api, Body body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const Failure &failure) {
    return api.createStatus(failure.code, failure.what());
  } catch (const std::exception &error) {
    return api.createStatus(ErrorCode::Fail, error.what());
  }
}

} // namespace kpkg::ort

#endif // KPKG_RUNTIME_ONNXRUNTIME_ERRORS_H
