// Writes calls into files, for `kpkg replay`: KPKG_RECORD names the folder.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_RECORD_H
#define KPKG_PACKAGE_RECORD_H

#include "runtime/package/CallableOp.h"

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <optional>
#include <string>

namespace kpkg::format {
struct Safetensors;
}

namespace kpkg::package {

/// One call of which no equal one was recorded: the same op, shapes, strides, dtypes, device, alignment and integers.
///
/// The arguments are written before the call, so that they are there if it ends the process. After it the results
/// follow.
class RecordedCall {
public:
  /// Nothing if an equal call was recorded, a limit is reached, or the call's stream is captured into a graph.
  static std::optional<RecordedCall> begin(const CallableOp &op, const kpkg_call &call);
  RecordedCall(RecordedCall &&);
  RecordedCall &operator=(RecordedCall &&);
  ~RecordedCall();

  /// Adds the results. A call that failed leaves no file.
  void finish(const kpkg_call &call, bool succeeded);

private:
  RecordedCall(const OpEntry &op, std::string path);
  Status addArguments(const CallableOp &op, const kpkg_call &call);
  Status addResults(const kpkg_call &call);
  Status write() const;

  const OpEntry *op;
  std::string path;
  std::unique_ptr<format::Safetensors> file;
  std::unique_ptr<nlohmann::json> description;
};

} // namespace kpkg::package
#endif
