// Declares the limit of results that the glue of frameworks has memory for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_LIMITS_HPP
#define KPKG_LIMITS_HPP

#include <cstddef>

namespace kpkg {

/// Limit of results of an op that a framework calls. The gradient of an op has one for each tensor argument.
inline constexpr size_t maxResults = 16;

} // namespace kpkg

#endif // KPKG_LIMITS_HPP
