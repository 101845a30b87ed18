// Which instance of a kernel runs a launch, and why not the others.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_CHOICE_H
#define KPKG_PACKAGE_CHOICE_H

#include "runtime/package/Alternatives.h"
#include "runtime/package/Restriction.h"
#include "runtime/package/Tables.h"
#include "runtime/plan/Evaluate.h"

#include <kpkg/result.hpp>

#include <span>
#include <string>
#include <vector>

namespace kpkg::package {

/// Where the tensors of a call are.
struct ExecutionDevice {
  bool isCuda = false;
  int32_t index = 0;
  /// Of a GPU.
  int32_t major = 0, minor = 0;
  int32_t multiprocessors = 0;
  /// What plans see.
  int64_t processors() const { return isCuda ? multiprocessors : plan::hostProcessors; }
};

/// What a choice looks at.
struct ChoiceQuery {
  const Tables &tables;
  const plan::LaunchStep &launch;
  const std::string &op;
  const ExecutionDevice &device;
  /// What the address of each buffer is a multiple of, in bytes.
  std::span<const int64_t> alignments;
  /// Nothing else is taken; null: all.
  const Restriction *restriction = nullptr;
};

struct Verdict {
  const Instance *instance = nullptr;
  /// Why it was not taken; empty for the chosen one.
  std::string reason;
};

/// Everything about a choice, for explanations.
struct ChoiceReport {
  std::vector<Verdict> verdicts;
  /// When the chosen instance was one of several alternatives.
  std::optional<AlternativeChoice> alternatives;
};

/// Chooses among all instances of the launch's kernel: parameters must fit (of `at_least` parameters the smallest value
/// that does), the device must run the target, facts must hold for the views, flags of KPKG_REQUIRE must be there. Then
/// the best target wins, then the variant with most facts, then among alternatives what chooseAlternative() says. With
/// `report`, says for each instance what became of it.
///
/// The error (KPKG_ERROR_NO_INSTANCE) says which requirement nothing meets. KPKG_ERROR_KERNEL: the arguments themselves
/// do not fit the kernel.
Result<const Instance *> chooseInstance(const ChoiceQuery &query, ChoiceReport *report = nullptr);

/// Whether the device runs the instance's target.
bool runsOn(const Instance &instance, const ExecutionDevice &device);

} // namespace kpkg::package
#endif
