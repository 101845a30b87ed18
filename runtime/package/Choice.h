// Chooses the instance of a kernel that runs a launch, and explains why the others do not.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_CHOICE_H
#define KPKG_PACKAGE_CHOICE_H

#include "runtime/device/Device.h"
#include "runtime/package/Alternatives.h"
#include "runtime/package/BatchInvariance.h"
#include "runtime/package/Refusals.h"
#include "runtime/package/Restriction.h"
#include "runtime/package/Tables.h"
#include "runtime/plan/Evaluate.h"

#include <kpkg/result.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kpkg::package {

/// The inputs of a choice.
struct ChoiceQuery {
  const Tables &tables;
  const plan::LaunchStep &launch;
  const std::string &op;
  const device::Device &device;
  /// The alignment of each buffer's address, in bytes.
  std::span<const int64_t> alignments;
  /// Limits the choice; null: no limits.
  const Restriction *restriction = nullptr;
  BatchInvariance invariance = BatchInvariance::NotWanted;
  /// The code that devices have refused; null: none.
  const Refusals *refusals = nullptr;
  /// The only target, which the device need not run; empty: those that it runs.
  std::string_view target = {};
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
/// Parameters must fit (for `at_least` parameters, the smallest value that does). The device must run the target, and
/// not have refused the code. Facts must hold for the views. The flags of KPKG_REQUIRE and of the restriction must be
/// set. The best target wins, then the variant with most facts, then the result of chooseAlternative(). `report`
/// receives a verdict for each instance.
///
/// With BatchInvariance::ByOp, facts must also hold for strides of dimensions with one element, and the first
/// alternative wins. So the choice is the same for one row and for many.
///
/// The error KPKG_ERROR_NO_INSTANCE names the requirement that no instance meets. KPKG_ERROR_KERNEL means that the
/// arguments themselves do not fit the kernel.
Result<const Instance *> chooseInstance(const ChoiceQuery &query, ChoiceReport *report = nullptr);

} // namespace kpkg::package
#endif
