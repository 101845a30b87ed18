// Declares errors of the runtime as values: Error, Result<T>, and the exceptions that Result<T>::value() throws.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RESULT_HPP
#define KPKG_RESULT_HPP

#include <kpkg/kpkg.h>

#include <cassert>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace kpkg {

/// Why a call failed. `op`, `instance` and `argument` are empty if they do not apply.
struct Error {
  kpkg_status status = KPKG_ERROR_INTERNAL;
  std::string message;
  std::string op;
  std::string instance;
  std::string argument;

  /// Returns whether the arguments or the package's kernels are the cause.
  bool isKernelError() const {
    return status == KPKG_ERROR_KERNEL || status == KPKG_ERROR_NO_INSTANCE || isCaptureError();
  }
  /// Returns whether the call would load or wait, which is impossible during graph capture; prewarm before.
  bool isCaptureError() const { return status == KPKG_ERROR_CAPTURE; }
  /// Returns whether a device driver is the cause.
  bool isDeviceError() const { return status == KPKG_ERROR_DEVICE; }

  /// Returns this thread's last failure.
  static Error last() {
    kpkg_error error = {};
    error.struct_size = sizeof error;
    kpkg_last_error(&error);
    return {error.status, error.message, error.op, error.instance, error.argument};
  }
};

/// Thrown only by Result<T>::value().
class Exception : public std::runtime_error {
public:
  explicit Exception(Error error) : std::runtime_error(error.message), details(std::move(error)) {}
  const Error &error() const { return details; }

private:
  Error details;
};
class KernelError : public Exception {
  using Exception::Exception;
};
class DeviceError : public Exception {
  using Exception::Exception;
};

/// Throws the exception class for the error; aborts in a build without exceptions.
[[noreturn]] inline void throwError(const Error &error) {
#if defined(__cpp_exceptions)
  if (error.isKernelError())
    throw KernelError(error);
  if (error.isDeviceError())
    throw DeviceError(error);
  throw Exception(error);
#else
  std::abort();
#endif
}

/// A value, or the Error that prevented it.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : state(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state.index() == 0; }
  bool ok() const { return state.index() == 0; }
  /// Requires ok().
  T &operator*() & { return *std::get_if<0>(&state); }
  const T &operator*() const & { return *std::get_if<0>(&state); }
  T &&operator*() && { return std::move(*std::get_if<0>(&state)); }
  T *operator->() { return std::get_if<0>(&state); }
  const T *operator->() const { return std::get_if<0>(&state); }
  /// Requires not ok().
  const Error &error() const { return *std::get_if<1>(&state); }

  /// Returns the value, or throws.
  T &value() & { return check(), **this; }
  const T &value() const & { return check(), **this; }
  T &&value() && { return check(), std::move(**this); }

private:
  void check() const {
    if (!ok())
      throwError(error());
  }
  std::variant<T, Error> state;
};

/// Success or an Error.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Error error) : failure(std::move(error)) {}
  explicit operator bool() const { return failure.status == KPKG_OK; }
  bool ok() const { return failure.status == KPKG_OK; }
  const Error &error() const { return failure; }
  /// Throws if not ok().
  void value() const {
    if (!ok())
      throwError(failure);
  }
  /// Converts a C status. A failure becomes this thread's last error.
  static Status from(kpkg_status status) { return status == KPKG_OK ? Status() : Status(Error::last()); }

private:
  Error failure = {KPKG_OK, {}, {}, {}, {}};
};

} // namespace kpkg
#endif
