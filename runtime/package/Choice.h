// Chooses the instance of a kernel that runs a launch, and explains why the others do not.
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

/// The device of a call's tensors.
struct ExecutionDevice {
  bool isCuda = false;
  int32_t index = 0;
  /// Only for GPUs.
  int32_t major = 0, minor = 0;
  int32_t multiprocessors = 0;
  /// The number of processors that plans see.
  int64_t processors() const { return isCuda ? multiprocessors : plan::hostProcessors; }
};

/// The inputs of a choice.
struct ChoiceQuery {
  const Tables &tables;
  const plan::LaunchStep &launch;
  const std::string &op;
  const ExecutionDevice &device;
  /// The alignment of each buffer's address, in bytes.
  std::span<const int64_t> alignments;
  /// Limits the choice; null: no limits.
  const Restriction *restriction = nullptr;
};

struct Verdict {
  const Instance *instance = nullptr;
  /// Why it was not chosen; empty for the chosen instance.
  std::string reason;
};

/// Details of a choice, for explanations.
struct ChoiceReport {
  std::vector<Verdict> verdicts;
  /// Set if the chosen instance was one of several alternatives.
  std::optional<AlternativeChoice> alternatives;
};

/// Chooses among all instances of the launch's kernel.
///
/// Parameters must fit (for `at_least` parameters, the smallest value that does), the device must run the target, and
/// facts must hold for the views. The flags of KPKG_REQUIRE must be set. The best target wins, then the variant with
/// most facts, then the result of chooseAlternative(). `report` receives a verdict for each instance.
///
/// The error KPKG_ERROR_NO_INSTANCE names the requirement that no instance meets. KPKG_ERROR_KERNEL means that the
/// arguments themselves do not fit the kernel.
Result<const Instance *> chooseInstance(const ChoiceQuery &query, ChoiceReport *report = nullptr);

/// Returns whether the device runs the instance's target.
bool runsOn(const Instance &instance, const ExecutionDevice &device);

} // namespace kpkg::package
#endif
