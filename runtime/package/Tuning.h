// The tuning table of a package: which alternative measured fastest for a device and a class of shapes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_TUNING_H
#define KPKG_PACKAGE_TUNING_H

#include "runtime/package/Tables.h"
#include "runtime/plan/Evaluate.h"

#include <kpkg/result.hpp>
#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>
#include <string_view>

namespace kpkg::package {

/// The section's name and kind.
inline constexpr std::string_view tuningSection = "tuning";

/// `extent` rounded up to three significant binary digits: 1 to 8, 10, 12, 14, 16, 20, ... Launches whose extents are
/// all of one class share a row.
int64_t shapeClass(int64_t extent);

/// All extents of a launch: of each view argument, then of the grid; -1 stands before each argument's.
std::vector<int64_t> extentsOf(const plan::LaunchStep &launch);

/// A row without its choice, as the section has it: what `kpkg tune` completes.
nlohmann::json tuningKey(const Kernel &kernel, const Instance &alternative, const plan::LaunchStep &launch,
                         const std::string &device);

struct FoundRow {
  size_t choice;      ///< of the alternatives
  bool isForThisCall; ///< whether these extents were measured, rather than others of their classes, or the row is for
                      ///< all of these
};

/// What the table has for a launch of these alternatives: the row for its extents, else that for the nearest of the
/// same classes.
std::optional<FoundRow> findRow(const Tables &tables, std::span<const Instance *const> alternatives,
                                const plan::LaunchStep &launch, const std::string &device);

/// Fills `tables.tuning` from the section's text; the refusal names the row and what is wrong with it.
Status readTuning(std::string_view text, Tables &tables);

/// A parameter's value as manifests and tables have it.
nlohmann::json toJson(const ParamValue &value);

} // namespace kpkg::package
#endif
