// Implements Program, the owner of decoded and verified bytecode.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plan/Program.h"
#include "runtime/plan/Decoded.h"

namespace kpkg::plan {

Program::Program() = default;
Program::Program(Program &&) noexcept = default;
Program &Program::operator=(Program &&) noexcept = default;
Program::~Program() = default;

std::optional<Program> Program::load(std::span<const uint8_t> bytes, Error &error) {
  Program program;
  program.module = std::make_unique<DecodedModule>();
  std::optional<Error> failure = decode(bytes, *program.module);
  if (!failure)
    failure = verify(*program.module);
  if (failure) {
    error = std::move(*failure);
    return std::nullopt;
  }
  return program;
}

std::string_view Program::name() const { return module->strings[module->functions.front().name]; }
std::span<const Program::ArgumentInfo> Program::arguments() const { return module->arguments; }
bool Program::hasMutArguments() const { return module->hasMutArguments; }
bool Program::usesProcessors() const { return module->usesProcessors; }
int Program::resultCount() const { return static_cast<int>(module->functions.front().resultTypes.size()); }

} // namespace kpkg::plan
