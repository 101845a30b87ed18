// Declares the manifest's records as tables for calls: kernels, their compiled instances, and ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_TABLES_H
#define KPKG_PACKAGE_TABLES_H

#include "runtime/manifest/Limits.h"
#include "runtime/manifest/Records.h"
#include "runtime/plan/DType.h"

#include <kpkg/kpkg.h>
#include <kpkg/result.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kpkg::package {

using manifest::CostFactor;
using manifest::CostTerm;
using manifest::Fact;
using manifest::KernelArgument;
using manifest::KernelParam;
using manifest::maxTensorMaps;
using manifest::TensorMap;
using LaunchShape = manifest::Launch;
using TileWork = manifest::Work;

/// The value of an instance parameter.
struct ParamValue {
  using Kind = manifest::ParamKind;
  Kind kind = Kind::Int;
  int64_t integer = 0; ///< Int, Bool, DType (its number)
  double real = 0;
  std::string text;
  bool isFunction = false; ///< a String that names a function; not part of the value

  bool operator==(const ParamValue &other) const {
    return kind == other.kind && integer == other.integer && real == other.real && text == other.text;
  }
  std::string str() const;
};

inline bool isView(const KernelArgument &argument) { return argument.kind == manifest::ArgumentKind::View; }
/// Returns the number of 8-byte words in the kernel's argument list.
inline size_t wordsOf(const KernelArgument &argument) { return isView(argument) ? 1 + 2 * size_t(argument.rank) : 1; }

struct Instance;

/// As many as a word has bits, so that a launch has one bit for each accepted value.
inline constexpr size_t mostIndexedValues = 64;

struct Kernel : manifest::Kernel {
  /// The dtype of an argument: a fixed one, else `none` if it is the value of parameter `param`, or differs between
  /// instances.
  struct ArgumentType {
    plan::DType fixed = plan::DType::None;
    int32_t param = -1;
  };
  std::vector<ArgumentType> argumentTypes;
  /// Indices in Tables::instances.
  std::vector<uint32_t> instances;
  /// Indices in Tables::tuning.
  std::vector<uint32_t> tuning;
  /// For each parameter, the distinct values of all instances; empty if there are more than mostIndexedValues.
  std::vector<std::vector<ParamValue>> values;
  /// For each of `instances` and each parameter, the number of its value in `values`.
  std::vector<uint8_t> valueNumbers;

  /// Fills `values` and `valueNumbers`, once all instances are read.
  void indexValues(const std::vector<Instance> &all);
  bool hasAlternatives() const;
  int paramIndex(std::string_view param) const;
};

/// A row of the tuning table: calls of these extents on this device run this instance instead of its alternatives.
struct TuningRow {
  uint32_t instance = 0;
  std::string device;
  std::vector<int64_t> classes;  ///< of the extents, as extentsOf() lists them
  std::vector<int64_t> measured; ///< the extents themselves; empty if the table does not have them
};

/// One compiled form of a kernel, with values and dtypes that fit it.
struct Instance : manifest::Instance {
  std::vector<ParamValue> params;
  /// For each argument; `none`, only for views, if the package does not say.
  std::vector<plan::DType> dtypes;
  /// "softmax_rows[T=float32, COLS=1024] unit x86-64-v3"
  std::string label;
};

struct OpArgument : manifest::OpArgument {
  kpkg_kind kind = KPKG_TENSOR;
  bool optional = false;
  bool mutates = false;
  /// kind KPKG_DEFAULT if there is none. Lists and strings point to `list` and `text`.
  kpkg_value defaultValue = {};
  std::vector<int64_t> list;
  std::string text;
};

/// An op. The schema of an op that is known by its name alone is empty. Schemas of packages equal schemaOf().
struct OpEntry : manifest::Op {
  std::vector<OpArgument> arguments;
  bool isGradient = false; ///< whether it is the backward of an op of the package
  /// How PyTorch treats the op, as JSON; empty: by its defaults.
  std::string torchText;
};

/// Points the defaults of the arguments to `list` and `text`, once the entry no longer moves.
void referToTexts(OpEntry &op);
/// Derives types and defaults of an op's arguments. Throws manifest::Refusal if they are invalid.
OpEntry resolveOp(manifest::Op op);
/// Returns whether both take the same arguments, with the same names, and return the same kinds of results.
bool haveOneSignature(const OpEntry &a, const OpEntry &b);
/// Returns whether their defaults are equal, too.
bool haveOneSchema(const OpEntry &a, const OpEntry &b);

struct Tables {
  std::vector<Kernel> kernels;
  std::vector<Instance> instances;
  std::vector<OpEntry> ops;
  std::vector<TuningRow> tuning;
  std::unordered_map<std::string_view, uint32_t> kernelByName;
  std::string buildOptions; ///< the part of kpkg's command line that determined the package
};

} // namespace kpkg::package
#endif
