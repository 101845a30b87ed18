// Plan bytecode, decoded and verified.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "runtime/plan/Evaluate.h"
#include <memory>

namespace kpkg::plan {

struct DecodedModule;

/// One op's plan with all that it calls. Immutable; may be shared by threads.
class Program {
public:
  /// What the schema position `i` takes.
  struct ArgumentInfo {
    std::string_view name;
    Argument::Kind kind; ///< never None; a Tensor argument also takes None
    bool isMut = false;
    /// A scalar that only flows into launch arguments: no part of the key.
    bool passThrough = false;
  };

  /// Decodes and verifies. On failure `error` says why the bytes are refused. The bytes are not needed afterwards.
  static std::optional<Program> load(std::span<const uint8_t> bytes, Error &error);

  Program(Program &&) noexcept;
  Program &operator=(Program &&) noexcept;
  ~Program();

  std::string_view name() const;
  std::span<const ArgumentInfo> arguments() const;
  bool hasMutArguments() const;
  /// Whether it asks for the number of compute units.
  bool usesProcessors() const;
  /// Number of results (each a tensor or None).
  int resultCount() const;
  /// Instructions as plain data, for printers and other evaluators.
  const DecodedModule &decoded() const { return *module; }

private:
  Program();
  std::unique_ptr<DecodedModule> module;
};

} // namespace kpkg::plan
