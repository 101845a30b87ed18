// Declares the mutator of .k source and of IR, which works on tokens and lines.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_FUZZ_MUTATESOURCE_H
#define KPKG_FUZZ_MUTATESOURCE_H

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace kpkg::fuzz {

/// Changes one to three tokens or lines, so that much of the result still parses and checks: most mutations of bytes
/// end in the parser. Some mutations nest expressions or blocks deeply, or repeat them often. New tokens are those of
/// `known`.
std::string mutateSource(const std::string &text, std::string_view known, std::mt19937 &random);

/// Mutates the input of a libFuzzer target in place, and returns its new size: one of eight times by bytes, else by
/// mutateSource.
size_t mutateInput(uint8_t *data, size_t size, size_t maxSize, unsigned seed, std::string_view known);

} // namespace kpkg::fuzz
#endif
