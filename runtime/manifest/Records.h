// Declares the records of the manifest as plain structs, for its writer and its reader.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_MANIFEST_RECORDS_H
#define KPKG_MANIFEST_RECORDS_H

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

// runtime/manifest/Manifest.def says what each record, field and word means.

namespace kpkg::manifest {

#define KPKG_WORDS(Enum) enum class Enum : uint8_t {
#define KPKG_WORD(Enum, name, spelling, operands, meaning) name,
#define KPKG_WORDS_END(Enum)                                                                                           \
  }                                                                                                                    \
  ;
#include "runtime/manifest/Manifest.def"

/// A value of a parameter or a default: None, a bool, a number, a text (also the name of a dtype) or a list.
using Value = std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<int64_t>>;

/// The number of a view argument, and its dimension.
using Tap = std::array<int32_t, 2>;

/// A step of a trip count in reverse Polish notation. It pushes a number, or replaces the two topmost numbers by the
/// result of an operation.
struct TripCountStep {
  using Kind = StepKind;
  Kind kind = Kind::Constant;
  int64_t number = 0; ///< the constant, the argument or the axis
  uint32_t dimension = 0;
  bool operator==(const TripCountStep &) const = default;
};

/// A factor of a term. A launch determines its value, by the shapes and values of the arguments and by the grid.
struct CostFactor {
  using Kind = FactorKind;
  Kind kind = Kind::Blocks;
  uint32_t argument = 0;
  uint32_t dimension = 0;
  int64_t size = 0;
  std::vector<TripCountStep> steps = {};
  bool operator==(const CostFactor &) const = default;
};

/// The source of a backward op's argument.
struct BackwardArgument {
  using Kind = BackwardSource;
  Kind kind = Kind::Gradient;
  uint64_t index = 0;
  bool operator==(const BackwardArgument &) const = default;
};

#define KPKG_RECORD(Struct, name) struct Struct {
#define KPKG_FIELD(Struct, type, member, initial, key, presence, limit, label, meaning) type member = initial;
#define KPKG_INTERNAL(Struct, type, member, initial, meaning) type member = initial;
#define KPKG_RECORD_END(Struct)                                                                                        \
  bool operator==(const Struct &) const = default;                                                                     \
  }                                                                                                                    \
  ;
#include "runtime/manifest/Manifest.def"

} // namespace kpkg::manifest
#endif
