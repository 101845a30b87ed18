// Formats the text of a kernel's print from its format and value words.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_PRINTFORMAT_H
#define KPKG_PACKAGE_PRINTFORMAT_H

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kpkg::package {

/// Replaces each `{type}` in turn by a word: i64 (also if empty), u64, bool, f32, f64, with the value in the low bytes.
/// Further words are appended with the last type.
std::string formatPrint(std::string_view format, std::span<const uint64_t> words);

} // namespace kpkg::package
#endif
