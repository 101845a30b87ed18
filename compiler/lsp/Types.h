// Declares the types that a check found for the expressions and names of one source.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Observer.h"
#include "compiler/lsp/Positions.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <unordered_map>

namespace kpkg::lsp {

/// The type of one expression in one or several instances.
struct TypeAt {
  std::string text;                             ///< `Tile[float32, 64, 64]`, `Int = 64`
  std::string memory;                           ///< of tiles: "64 x 64 elements of 32 bits, 16 KiB"; else empty
  std::string members;                          ///< see compiler::memberBaseOf
  std::string structPath = {}, structName = {}; ///< of values of structs: the module and the name there
  bool operator==(const TypeAt &) const = default;
};

/// The place of a tile in GPU code: the threads of a block that hold it.
struct LayoutAt {
  uint32_t begin = 0; ///< where its expression begins, or the name of a variable that receives it
  std::string type;   ///< `Tile[float32, 64, 64]`
  std::string text;   ///< "32 elements in 32 registers of each thread, `reg 1:1-2 ...`"
};

/// A hint of `@schedule` that the GPU code of a kernel does not follow.
struct DroppedHint {
  std::string kernel, hint, why;
};

/// What GPU code generation tells of one source.
struct GpuFindings {
  std::vector<LayoutAt> layouts; ///< sorted by places
  std::vector<DroppedHint> dropped;
};

/// The types of one source, for the text that was checked.
class Types {
public:
  struct Entry {
    Span span;
    std::vector<TypeAt> types; ///< distinct, at most `maxTypes`
    bool hasMore = false;      ///< there are further types
    bool operator<(const Entry &other) const { return span < other.span; }
  };
  static constexpr size_t maxTypes = 4;

  Types(Text text, std::vector<Entry> entries, GpuFindings gpu = {});
  const Text &text() const { return checked; }
  llvm::ArrayRef<Entry> entries() const { return all; }
  /// Returns the entry of exactly that span; null if the check did not reach it.
  const Entry *at(Span span) const;
  /// Returns the layouts of tiles whose expression, or variable, begins there: none before the code was generated.
  llvm::ArrayRef<LayoutAt> layoutsAt(uint32_t begin) const;
  const GpuFindings &gpu() const { return findings; }

private:
  Text checked;
  std::vector<Entry> all; ///< sorted
  GpuFindings findings;
};

/// Collects types during the check of a program.
class TypeCollector {
public:
  void add(compiler::SourceRange range, const compiler::Type &type, const compiler::Value *value);
  /// Returns the types of one file of the check. `pathOf` gives the canonical paths of files.
  std::vector<Types::Entry> take(uint32_t file, llvm::function_ref<std::string(uint32_t)> pathOf) const;

private:
  struct Place {
    uint32_t file, begin, end;
    bool operator==(const Place &) const = default;
  };
  struct Hash {
    size_t operator()(const Place &place) const {
      return std::hash<uint64_t>()((uint64_t(place.begin) << 32 | place.end) * 31 + place.file);
    }
  };
  struct Found {
    const compiler::Type *lastType = nullptr; ///< a shortcut for places that are checked again and again
    bool lastHadValue = false;
    std::vector<TypeAt> types;
    std::vector<uint32_t> structFiles; ///< for each type
    bool hasMore = false;
  };
  std::unordered_map<Place, Found, Hash> places;
};

} // namespace kpkg::lsp
