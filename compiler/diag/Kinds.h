// Declares the kinds of diagnostics as typed constants from Diagnostics.def: diag::UnknownName and so on.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <cstdint>
#include <fmt/core.h>
#include <span>
#include <string_view>

namespace kpkg::compiler {

enum class Severity : uint8_t { Error, Warning, Note };

enum class DiagnosticId : uint16_t {
#define KPKG_ERROR(Name, Number, Text, ...) Name,
#define KPKG_WARNING(Name, Number, Text, ...) Name,
#define KPKG_NOTE(Name, Text, ...) Name,
#include "compiler/diag/Diagnostics.def"
};

/// A kind with the types of its arguments, so that a report with wrong arguments does not compile.
template <typename... Args> struct DiagnosticKind {
  DiagnosticId id;
  Severity severity;
  fmt::format_string<const Args &...> text;
};

namespace diag {
using Str = std::string_view;
using Int = int64_t;
#define KPKG_ERROR(Name, Number, Text, ...)                                                                            \
  inline constexpr DiagnosticKind<__VA_ARGS__> Name{DiagnosticId::Name, Severity::Error, Text};
#define KPKG_WARNING(Name, Number, Text, ...)                                                                          \
  inline constexpr DiagnosticKind<__VA_ARGS__> Name{DiagnosticId::Name, Severity::Warning, Text};
#define KPKG_NOTE(Name, Text, ...)                                                                                     \
  inline constexpr DiagnosticKind<__VA_ARGS__> Name{DiagnosticId::Name, Severity::Note, Text};
#include "compiler/diag/Diagnostics.def"
} // namespace diag

/// The properties of a kind.
struct KindInfo {
  DiagnosticId id;
  std::string_view name; // "ExpectedToken"
  std::string_view code; // "K0121"; empty for notes
  Severity severity;
  std::string_view text; // with its placeholders
};
std::span<const KindInfo> allKinds();
const KindInfo &info(DiagnosticId id);
/// Finds a kind by "K0121" (case and leading zeros do not matter: "k121"). Returns null if there is none.
const KindInfo *findKind(std::string_view code);
/// Returns the long explanation of `docs/diagnostics.md`, as Markdown; empty if there is none. `kpkg explain` prints
/// it.
std::string_view explanation(DiagnosticId id);

} // namespace kpkg::compiler
