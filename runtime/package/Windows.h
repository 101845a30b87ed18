// Computes the corners of tensor maps for windows over images.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_WINDOWS_H
#define KPKG_PACKAGE_WINDOWS_H

#include "runtime/device/Device.h"
#include "runtime/package/Tables.h"
#include "runtime/plan/Evaluate.h"

#include <string>

namespace kpkg::package {

/// Returns why the device cannot traverse the launch's windows; empty if it can, or if the map has none.
std::string unmappableWindow(const TensorMap &map, const plan::LaunchStep &launch,
                             const device::TensorMapLimits &limits);

/// Returns the windows in the order of the map's dimensions, for a launch without unmappable windows.
std::array<device::TensorWindow, device::TensorMapShape::maxRank - 2> tensorWindows(const TensorMap &map,
                                                                                    const plan::LaunchStep &launch);

} // namespace kpkg::package
#endif
