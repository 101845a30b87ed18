// Declares the tuning table of a package: the fastest measured alternative for a device and a class of shapes.
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

/// Returns `extent` rounded up to three significant binary digits: 1 to 8, 10, 12, 14, 16, 20, ... Launches share a row
/// if all their extents are of the same classes.
int64_t shapeClass(int64_t extent);

/// Returns all extents of a launch: of each view argument, preceded by -1, then of the grid.
std::vector<int64_t> extentsOf(const plan::LaunchStep &launch);

/// Returns a row without its choice, in the section's format, which `kpkg tune` completes.
nlohmann::json tuningKey(const Kernel &kernel, const Instance &alternative, const plan::LaunchStep &launch,
                         const std::string &device);

struct FoundRow {
  size_t choice;      ///< among the alternatives
  bool isForThisCall; ///< whether exactly these extents were measured; else others of their classes were, or the row
                      ///< does not say
};

/// Returns the table's row for a launch of these alternatives: the row for its extents, else for the nearest extents of
/// the same classes.
std::optional<FoundRow> findRow(const Tables &tables, std::span<const Instance *const> alternatives,
                                const plan::LaunchStep &launch, const std::string &device);

/// Fills `tables.tuning` from the section's text. The error names the row and its problem.
Status readTuning(std::string_view text, Tables &tables);

/// Returns a parameter's value in the format of manifests and tables.
nlohmann::json toJson(const ParamValue &value);

} // namespace kpkg::package
#endif
