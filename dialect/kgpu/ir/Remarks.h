// Emits remarks of passes for kernel authors: optimisations that were applied or refused, and the reason.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include <optional>
#include <string>
#include <variant>

namespace kpkg::kgpu {

/// An optimisation that passes report on. `pass` is the pass's flag. `name` describes the optimisation to authors of
/// kernels, who do not know passes.
struct Optimisation {
  llvm::StringLiteral pass, name;
};

/// The place of a remark. It stays valid when its op is erased.
struct RemarkPlace {
  RemarkPlace(mlir::Operation *op);
  RemarkPlace(mlir::OpState op) : RemarkPlace(op.getOperation()) {}

  mlir::Location location;
  llvm::StringRef kernel;
};

/// Emits a remark that `optimisation` was applied at `place`. `how` gives its figures. Costs nothing without MLIR's
/// remark engine.
void remarkApplied(const RemarkPlace &place, const Optimisation &optimisation, const llvm::Twine &how);
/// Emits a remark that `optimisation` was considered at `place`, and refused because of `why`.
void remarkRefused(const RemarkPlace &place, const Optimisation &optimisation, const llvm::Twine &why);

/// The condition that forbids an optimisation, or nothing.
using WhyNot = std::optional<std::string>;

/// Emits a remark that `optimisation` was refused because of `why`, or applied if there is no reason. Returns whether
/// it was applied.
bool remarkOn(const RemarkPlace &place, const Optimisation &optimisation, const WhyNot &why, const llvm::Twine &how);

/// Returns the name of an element type in kernels: "bfloat16".
std::string dtypeName(mlir::Type type);

/// The reason why there is no result.
struct Refusal {
  std::string why;
};

/// A result, or the reason why there is none.
template <typename T> class ResultOrWhy {
public:
  ResultOrWhy(T result) : value(std::move(result)) {}
  ResultOrWhy(Refusal refusal) : value(std::move(refusal)) {}

  explicit operator bool() const { return std::holds_alternative<T>(value); }
  T &operator*() { return std::get<T>(value); }
  const T &operator*() const { return std::get<T>(value); }
  T *operator->() { return &std::get<T>(value); }
  const T *operator->() const { return &std::get<T>(value); }
  /// Returns the reason; there must be no result.
  const std::string &why() const { return std::get<Refusal>(value).why; }
  /// Returns the refusal, for another result that fails for the same reason.
  Refusal refusal() const { return std::get<Refusal>(value); }
  /// Returns the result without the reason.
  std::optional<T> toOptional() const { return *this ? std::optional<T>(**this) : std::nullopt; }

private:
  std::variant<T, Refusal> value;
};

} // namespace kpkg::kgpu
