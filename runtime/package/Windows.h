// Windows over images in a call: the corners of their tensor maps.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_WINDOWS_H
#define KPKG_PACKAGE_WINDOWS_H

#include "runtime/device/cuda/TensorMap.h"
#include "runtime/package/Tables.h"
#include "runtime/plan/Evaluate.h"

#include <string>

namespace kpkg::package {

/// What of the launch's windows the copy engine does not do; empty when it does all, or the map has none.
std::string unmappableWindow(const TensorMap &map, const plan::LaunchStep &launch);

/// The windows in the order of the map's dimensions, of a launch of which nothing is unmappable.
std::array<cuda::TensorWindow, cuda::TensorMapShape::maxRank - 2> tensorWindows(const TensorMap &map,
                                                                                const plan::LaunchStep &launch);

} // namespace kpkg::package
#endif
