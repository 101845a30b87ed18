// Declares the manifest as tables: kernels, their compiled instances, and ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_TABLES_H
#define KPKG_PACKAGE_TABLES_H

#include "runtime/package/TripCount.h"
#include "runtime/plan/DType.h"

#include <kpkg/kpkg.h>
#include <kpkg/result.hpp>
#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kpkg::package {

/// The value of an instance parameter.
struct ParamValue {
  enum class Kind : uint8_t { Int, Bool, Float, DType, String };
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

struct KernelParam {
  std::string name;
  ParamValue::Kind kind;
  bool isFunction = false; ///< a String whose values are names of functions
  bool isTuned = false;    ///< instances that differ only in tuned parameters are alternatives with equal results
};

/// The type of a scalar argument's word.
enum class ScalarType : uint8_t { Int, Bool, Float };

struct KernelArgument {
  std::string name;
  bool isView = false;
  bool mut = false;
  int32_t rank = 0;
  /// A fixed dtype; or `none` if it is the value of parameter `dtypeParam`, or differs between instances.
  plan::DType dtype = plan::DType::none;
  int32_t dtypeParam = -1;

  /// Number of 8-byte words in the kernel's argument list.
  size_t words() const { return isView ? 1 + 2 * size_t(rank) : 1; }
};

struct Instance;

/// As many as a word has bits, so that a launch has one bit for each accepted value.
inline constexpr size_t mostIndexedValues = 64;

struct Kernel {
  std::string name;
  std::vector<KernelParam> params;
  std::vector<KernelArgument> args;
  bool persistent = false;
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

/// The assumptions of an instance about view argument `arg`. Defaults assume nothing, and an absent tensor meets every
/// fact.
struct Fact {
  int32_t arg = 0;
  /// The dimension whose stride is 1 or whose extent is at most 1; -1: none.
  int32_t unit = -1;
  /// The alignment of the first element's address, in bytes.
  int64_t align = 1;
  /// The divisor of the unit dimension's extent and of all other strides, in elements.
  int64_t divisible = 1;
  /// Bits of a signed integer that holds extents and offsets of elements.
  int32_t index = 64;
  /// The number of leading dimensions whose offsets do not count for `index`.
  int32_t outer = 0;
};

/// Of one kernel. All parameters together have another limit.
inline constexpr size_t maxTensorMaps = 8;

/// How a window traverses one extent of a view of images: pixel * stride + start + tap * step, by numbers of the
/// kernel's arguments. Pixels count to `count`, taps to the extent of dimension `tapsDim` of view `tapsArg`.
struct WindowExtent {
  int32_t count = 0, stride = 0, start = 0, step = 0;
  int32_t tapsArg = 0, tapsDim = 0;
};

/// A kernel parameter that describes the boxes of view `arg` to the GPU's TMA.
struct TensorMap {
  int32_t arg = 0;
  int32_t unit = 0;          ///< dimension of stride 1
  uint32_t swizzle = 0;      ///< bytes: 0, 32, 64 or 128
  uint32_t copies = 0;       ///< boxes per step; 0: none, or unknown
  uint32_t sharedBy = 1;     ///< CTAs of a cluster that receive one multicast copy
  std::vector<uint32_t> box; ///< elements in each of the view's dimensions
  /// For each extent of a view `[images, extents ..., channels]`; empty if TMA copies boxes. Otherwise the box has the
  /// numbers of pixels and channels.
  std::vector<WindowExtent> window;
};

/// How a GPU instance is launched.
struct LaunchShape {
  uint32_t threads = 0;
  uint32_t blocks = 1;               ///< kernel blocks that a CTA runs, along x
  uint32_t cluster = 1;              ///< CTAs that run one kernel block, or share a tile's operands
  uint32_t occupancy = 0;            ///< CTAs per multiprocessor of persistent kernels; 0: the grid determines it
  uint32_t shared = 0;               ///< bytes of dynamic shared memory
  uint32_t registers = 0;            ///< per thread; 0: unknown
  uint32_t spills = 0;               ///< bytes that a thread writes to local memory
  bool overlaps = false;             ///< may start before the previous kernel in the stream has ended: it waits itself
  uint32_t counters = 0;             ///< counters of the code; each launch in flight uses one; 0: none needed
  std::vector<TensorMap> tensorMaps; ///< in the order of the parameters
};

/// count * product of the factors; see docs/package-format.md.
struct CostTerm {
  enum class Kind : uint8_t { Blocks, Dim, Tiles, Clip, Share, Count };
  struct Factor {
    Kind kind = Kind::Blocks;
    int32_t arg = 0;
    int32_t dim = 0;
    int64_t size = 1;
    std::vector<TripCountStep> steps;
  };
  double count = 0;
  std::vector<Factor> factors;
};

/// The inputs of the cost model for an alternative.
struct TileWork {
  std::vector<CostTerm> flops;   ///< of a tile or a block of the grid, including its part beyond the edges
  double flopsPerCycle = 1;      ///< of a processor, for such code
  double flopsPerCycleAlone = 1; ///< of a processor that holds a single tile
  double bytesPerCycle = 1;      ///< per processor, from the cache that all share
  uint32_t resident = 1;         ///< resident tiles, or CTAs, per processor
};

/// A row of the tuning table: calls of these extents on this device run this instance instead of its alternatives.
struct TuningRow {
  uint32_t instance = 0;
  std::string device;
  std::vector<int64_t> classes;  ///< of the extents, as extentsOf() lists them
  std::vector<int64_t> measured; ///< the extents themselves; empty if the table does not have them
};

/// One compiled form of a kernel.
struct Instance {
  uint32_t kernel = 0;
  std::vector<ParamValue> params;
  /// For each argument; `none`, only for views, if the package does not say.
  std::vector<plan::DType> dtypes;
  std::string variant;
  std::vector<Fact> facts;
  std::string target;
  std::string section;
  std::string symbol;
  size_t scratch = 0;
  /// Only for GPU instances.
  std::optional<LaunchShape> launch;
  std::vector<std::string> asserts;
  std::vector<std::string> prints;
  std::vector<std::string> flags;
  std::vector<CostTerm> flops;
  std::vector<CostTerm> bytes;
  /// The number of tiles of a persistent kernel; empty: unknown.
  std::vector<CostTerm> tiles;
  /// Only for alternatives.
  std::optional<TileWork> work;
  /// "softmax_rows[T=float32, COLS=1024] unit x86-64-v3"
  std::string label;
};

struct OpArgument {
  std::string name;
  std::string type;
  kpkg_kind kind = KPKG_TENSOR;
  bool optional = false;
  bool mutates = false;
  /// kind KPKG_DEFAULT if there is none. Lists and strings point to `list` and `text`.
  kpkg_value defaultValue = {};
  std::vector<int64_t> list;
  std::string text;
};

/// The gradient of an op: another op of the package, whose results are the gradients of the op's tensor arguments in
/// order.
struct Backward {
  /// The source of a backward op's argument.
  enum class Source : uint8_t {
    Gradient,     ///< the gradient of result `index`; these come first, in order
    Result,       ///< result `index`
    Argument,     ///< argument `index`
    Needs,        ///< whether the gradient of tensor argument `index` is needed
    Deterministic ///< whether gradients must be equal from run to run; `index` is 0
  };
  struct Argument {
    Source source = Source::Gradient;
    uint64_t index = 0;
  };
  std::string op;
  std::vector<Argument> arguments;
};

struct OpEntry {
  std::string name;
  /// PyTorch's schema, without namespace; empty for an op that is known by its name alone. Schemas of packages equal
  /// schemaOf().
  std::string schema;
  std::string doc;
  std::string reference;
  std::optional<Backward> backward;
  /// How PyTorch treats the op, as JSON; empty: by its defaults.
  std::string torch;
  std::string plan;
  std::string shapePlan;
  /// For calls on GPUs; empty: `plan` and `shapePlan`.
  std::string gpuPlan;
  std::string gpuShapePlan;
  std::vector<OpArgument> arguments;
  std::vector<std::string> results;
};

/// Points the defaults of the arguments to `list` and `text`, once the entry no longer moves.
void referToTexts(OpEntry &op);
/// Reads an op of the manifest. Throws Refusal if it is invalid.
OpEntry readOp(const nlohmann::json &value, const std::string &where);
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
};

/// Reads and checks a manifest. The error names the entry and its problem.
///
/// The result is a pointer, because names refer into it, so that it must not move. Rows of the tuning table are
/// missing: readTuning() adds them.
Result<std::shared_ptr<Tables>> readTables(const nlohmann::json &manifest);

} // namespace kpkg::package
#endif
