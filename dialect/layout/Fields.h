// Copies the fields of a layout, from which files of this folder make other layouts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Layout.h"

namespace kpkg::layout {
/// Returns the fields of a layout, for changes before Layout::get() or Layout::make().
Layout::Fields fieldsOf(const Layout &layout);
} // namespace kpkg::layout
