// The hints of a kernel's `@schedule`: which ones exist, and the values that a kernel asks for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kpkg::tile {
enum class Hint {
#define KPKG_HINT(ENUMERATOR, SPELLING, KIND, MOST, MEANING) ENUMERATOR,
#include "dialect/tile/schedule/Hints.def"
};

enum class HintKind { Count, PowerOfTwo, Bool };

struct HintRecord {
  Hint hint;
  std::string_view name;
  HintKind kind;
  uint32_t most;            ///< the largest value
  std::string_view meaning; ///< Markdown, for the page of the language
};

inline constexpr HintRecord kHints[] = {
#define KPKG_HINT(ENUMERATOR, SPELLING, KIND, MOST, MEANING)                                                           \
  {Hint::ENUMERATOR, SPELLING, HintKind::KIND, MOST, MEANING},
#include "dialect/tile/schedule/Hints.def"
};
inline constexpr std::size_t kHintCount = std::size(kHints);

constexpr std::string_view nameOf(Hint hint) { return kHints[std::size_t(hint)].name; }

/// Returns the record of the hint with this name, or null.
constexpr const HintRecord *findHint(std::string_view name) {
  for (const HintRecord &record : kHints)
    if (record.name == name)
      return &record;
  return nullptr;
}

/// Whether `value` is one that the hint can have; 0 leaves the choice to the compiler.
constexpr bool isValueOf(const HintRecord &record, int64_t value) {
  return value >= 0 && value <= int64_t(record.most) &&
         (record.kind != HintKind::PowerOfTwo || (value & (value - 1)) == 0);
}

/// The hints of one kernel. A hint without a value is 0.
class Schedule {
public:
  uint32_t operator[](Hint hint) const { return values[std::size_t(hint)]; }
  void set(Hint hint, uint32_t value) { values[std::size_t(hint)] = value; }
  bool asksForNothing() const { return *this == Schedule(); }
  bool operator==(const Schedule &) const = default;
  const std::array<uint32_t, kHintCount> &all() const { return values; }

private:
  std::array<uint32_t, kHintCount> values{};
};
} // namespace kpkg::tile
