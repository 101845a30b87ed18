// Implements the state that the modules and the checker of one program share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Context.h"

namespace kpkg::compiler {

CheckContext::CheckContext(const ProgramOptions &options, DiagnosticEngine &diags)
    : options(options), diags(diags), evaluator(diags, [&] {
        ComptimeLimits limits;
        limits.steps = options.maxComptimeSteps;
        return limits;
      }()) {}

const std::string *CheckContext::defined(const std::string &name) const {
  const std::string *found = nullptr;
  for (const auto &[defined, text] : options.defines)
    if (defined == name)
      found = &text; // the last definition counts
  return found;
}

} // namespace kpkg::compiler
