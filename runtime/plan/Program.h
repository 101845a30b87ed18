// Declares decoded and verified plan bytecode.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "runtime/plan/ArgumentInfo.h"
#include <memory>

namespace kpkg::plan {

struct DecodedModule;

/// One op's plan with its callees. Immutable; threads may share it.
class Program {
public:
  using ArgumentInfo = plan::ArgumentInfo;

  /// Decodes and verifies bytecode. On failure `error` says why. The bytes are not needed afterwards.
  static std::optional<Program> load(std::span<const uint8_t> bytes, Error &error);

  Program(Program &&) noexcept;
  Program &operator=(Program &&) noexcept;
  ~Program();

  std::string_view name() const;
  std::span<const ArgumentInfo> arguments() const;
  bool hasMutArguments() const;
  /// Returns whether the plan uses the number of compute units.
  bool usesProcessors() const;
  /// Returns the number of results (each a tensor or None).
  int resultCount() const;
  /// Returns the instructions as plain data, for printers and other evaluators.
  const DecodedModule &decoded() const { return *module; }

private:
  Program();
  std::unique_ptr<DecodedModule> module;
};

} // namespace kpkg::plan
