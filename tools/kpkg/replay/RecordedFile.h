// Reads a call that KPKG_RECORD wrote.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <kpkg/kpkg.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kpkg::format {
struct Safetensors;
}

namespace kpkg::command::replay {

struct RecordedFile {
  std::string path, op;
  /// Labels of the instances that ran; empty if a fallback did.
  std::vector<std::string> instances;
  /// Nothing if the recorded process ended within the call.
  std::optional<std::vector<Tensor>> results;

  /// Errors name the file.
  static Result<RecordedFile> open(const std::string &path);
  /// Returns new arguments on the host, with the recorded strides.
  Result<std::vector<Named>> arguments() const;

private:
  std::shared_ptr<const format::Safetensors> file;
  std::string description; ///< JSON, checked by open()
};

} // namespace kpkg::command::replay
