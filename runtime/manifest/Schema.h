// Describes the records of the manifest to templates: their fields with key, presence, limit and label.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_MANIFEST_SCHEMA_H
#define KPKG_MANIFEST_SCHEMA_H

#include "runtime/manifest/Limits.h"
#include "runtime/manifest/Records.h"

#include <limits>
#include <span>
#include <string_view>

namespace kpkg::manifest {

/// The values that a field may have.
struct Limit {
  int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max(); ///< of numbers
  bool isPowerOfTwo = false;
  bool isOpen = false;            ///< `least` itself is too small
  uint64_t maxItems = UINT64_MAX; ///< of a list
  uint64_t maxBytes = UINT64_MAX; ///< of a text, or of each text of a list

  /// Limits each number of a list.
  constexpr Limit each(int64_t from, int64_t to) const {
    Limit limit = *this;
    limit.least = from, limit.most = to;
    return limit;
  }
  /// Limits each text of a list.
  constexpr Limit bytes(uint64_t most) const {
    Limit limit = *this;
    limit.maxBytes = most;
    return limit;
  }
};

/// When a field stands in a file; see Manifest.def.
struct Presence {
  bool isNeeded = false, isWritten = false, isNullable = false;
  int minor = 0;            ///< the minor version that added it
  bool isEssential = false; ///< readers that do not know it must refuse the file

  constexpr Presence since(int version) const {
    Presence presence = *this;
    presence.minor = version;
    return presence;
  }
  constexpr Presence essential() const {
    Presence presence = *this;
    presence.isEssential = true;
    return presence;
  }
};

template <class Record, class Type> struct Field {
  Type Record::*member;
  std::string_view key;
  Presence presence;
  Limit limit;
  std::string_view label;
};

/// The words that limit and describe fields in Manifest.def.
namespace words {
inline constexpr Limit any;
constexpr Limit between(int64_t least, int64_t most) { return Limit{}.each(least, most); }
constexpr Limit upTo(int64_t most) { return between(0, most); }
constexpr Limit powerOfTwo(int64_t most) { return {.least = 1, .most = most, .isPowerOfTwo = true}; }
constexpr Limit aboveZero(int64_t most) { return {.least = 0, .most = most, .isOpen = true}; }
constexpr Limit count(uint64_t most) { return {.maxItems = most}; }
constexpr Limit bytes(uint64_t most) { return {.maxBytes = most}; }
inline constexpr Presence needed{.isNeeded = true, .isWritten = true}, written{.isWritten = true},
    nullable{.isWritten = true, .isNullable = true}, optional{};
} // namespace words

/// Has `name`, and `visit(callback)` that calls back with each Field.
template <class Record> struct Schema;

#define KPKG_RECORD(Struct, recordName)                                                                                \
  template <> struct Schema<Struct> {                                                                                  \
    static constexpr std::string_view name = recordName;                                                               \
    template <class Visit> static void visit(Visit &&visit) {                                                          \
      using namespace words;
#define KPKG_FIELD(Struct, type, member, initial, key, presence, limit, label, meaning)                                \
  visit(Field<Struct, type>{&Struct::member, key, presence, limit, label});
#define KPKG_RECORD_END(Struct)                                                                                        \
  }                                                                                                                    \
  }                                                                                                                    \
  ;
#include "runtime/manifest/Manifest.def"

template <class T>
concept IsRecord = requires { Schema<T>::name; };

/// The spelling of an enumerator. In lists, `operands` values follow it.
struct Word {
  std::string_view spelling;
  size_t operands = 0;

  constexpr Word(std::string_view spelling, std::string_view names)
      : spelling(spelling), operands(names.empty() ? 0 : 1) {
    for (char c : names)
      operands += c == ',';
  }
};

/// Has the array `list`, in the order of the enumerators.
template <class Enum> struct Words;

#define KPKG_WORDS(Enum)                                                                                               \
  template <> struct Words<Enum> {                                                                                     \
    static constexpr Word list[] = {
#define KPKG_WORD(Enum, name, spelling, operands, meaning) {spelling, operands},
#define KPKG_WORDS_END(Enum)                                                                                           \
  }                                                                                                                    \
  ;                                                                                                                    \
  }                                                                                                                    \
  ;
#include "runtime/manifest/Manifest.def"

template <class T>
concept IsWord = requires { Words<T>::list; };

/// Returns the enumerator of a word; nothing for other texts.
template <class Enum> constexpr std::optional<Enum> wordNamed(std::string_view text) {
  for (size_t i = 0; i < std::size(Words<Enum>::list); ++i)
    if (!text.empty() && text == Words<Enum>::list[i].spelling)
      return Enum(i);
  return std::nullopt;
}

template <class Enum> constexpr const Word &wordOf(Enum value) { return Words<Enum>::list[size_t(value)]; }

template <class T> inline constexpr bool isList = false;
template <class T> inline constexpr bool isList<std::vector<T>> = true;
template <class T> inline constexpr bool isOptional = false;
template <class T> inline constexpr bool isOptional<std::optional<T>> = true;

} // namespace kpkg::manifest
#endif
