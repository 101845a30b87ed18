// The manifest as tables: kernels, their compiled instances, ops.
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
  bool isFunction = false; ///< a String that names a function; no part of the value

  bool operator==(const ParamValue &other) const {
    return kind == other.kind && integer == other.integer && real == other.real && text == other.text;
  }
  std::string str() const;
};

struct KernelParam {
  std::string name;
  ParamValue::Kind kind;
  bool isFunction = false; ///< a String whose values are names of functions
  bool isTuned = false;    ///< instances that differ only in such parameters are alternatives with equal results
};

/// The type of a scalar argument's word.
enum class ScalarType : uint8_t { Int, Bool, Float };

struct KernelArgument {
  std::string name;
  bool isView = false;
  bool mut = false;
  int32_t rank = 0;
  /// Fixed; or `none` when it is the value of parameter `dtypeParam`, or another one for each instance.
  plan::DType dtype = plan::DType::none;
  int32_t dtypeParam = -1;

  /// Number of 8-byte words in the kernel's argument list.
  size_t words() const { return isView ? 1 + 2 * size_t(rank) : 1; }
};

struct Instance;

/// As many as a word has bits: so launches say by one bit each which values they accept.
inline constexpr size_t mostIndexedValues = 64;

struct Kernel {
  std::string name;
  std::vector<KernelParam> params;
  std::vector<KernelArgument> args;
  bool persistent = false;
  /// Indices into Tables::instances.
  std::vector<uint32_t> instances;
  /// Indices into Tables::tuning.
  std::vector<uint32_t> tuning;
  /// For each parameter the values that instances have, each once; none where they are more than mostIndexedValues.
  std::vector<std::vector<ParamValue>> values;
  /// For each of `instances`, for each parameter: the number of its value in `values`.
  std::vector<uint8_t> valueNumbers;

  /// Fills `values` and `valueNumbers`, once all instances are there.
  void indexValues(const std::vector<Instance> &all);
  bool hasAlternatives() const;
  int paramIndex(std::string_view param) const;
};

/// What an instance assumes of view argument `arg`; a default assumes nothing. An absent tensor meets every fact.
struct Fact {
  int32_t arg = 0;
  /// The stride of this dimension is 1, or its extent at most 1; -1: no dimension.
  int32_t unit = -1;
  /// The address of the first element is a multiple of so many bytes.
  int64_t align = 1;
  /// The extent of the unit dimension and the strides of all others are multiples of so many elements.
  int64_t divisible = 1;
  /// Extents and offsets of elements fit signed integers of so many bits.
  int32_t index = 64;
  /// Offsets along so many of the first dimensions do not count for `index`.
  int32_t outer = 0;
};

/// Of one kernel: all parameters together have a limit of their own.
inline constexpr size_t maxTensorMaps = 8;

/// How a window walks over one extent of a view of images: pixel * stride + start + tap * step, by the numbers of the
/// kernel's arguments. Pixels count to `count`, taps to the extent of dimension `tapsDim` of view `tapsArg`.
struct WindowExtent {
  int32_t count = 0, stride = 0, start = 0, step = 0;
  int32_t tapsArg = 0, tapsDim = 0;
};

/// A kernel parameter that tells a GPU's copy engine which boxes of view `arg` it moves.
struct TensorMap {
  int32_t arg = 0;
  int32_t unit = 0;          ///< dimension of stride 1
  uint32_t swizzle = 0;      ///< bytes: 0, 32, 64 or 128
  uint32_t copies = 0;       ///< boxes that are read for a step; 0: none, or not known
  uint32_t sharedBy = 1;     ///< CTAs of a cluster that all get what one of them reads
  std::vector<uint32_t> box; ///< elements, of each of the view's dimensions
  /// Of a view [images, extents ..., channels], for each extent; empty: copies bring boxes. Else the box says how many
  /// pixels and channels.
  std::vector<WindowExtent> window;
};

/// How a GPU instance is launched.
struct LaunchShape {
  uint32_t threads = 0;
  uint32_t blocks = 1;  ///< kernel blocks that a CTA runs, along x
  uint32_t cluster = 1; ///< CTAs that run one kernel block, or share operands of a tile each
  uint32_t occupancy =
      0; ///< CTAs of a multiprocessor for kernels that share out their work themselves; 0: as the grid says
  uint32_t shared = 0;               ///< bytes of dynamic shared memory
  uint32_t registers = 0;            ///< of a thread; 0: not known
  uint32_t spills = 0;               ///< bytes that a thread writes to local memory
  bool overlaps = false;             ///< may start while the kernel before it in the stream ends: it waits itself
  uint32_t counters = 0;             ///< of its code, of which each launch that is under way has one; 0: it needs none
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

/// What the cost model knows of an alternative.
struct TileWork {
  std::vector<CostTerm> flops;   ///< of a tile, or of a block of the grid, with what it has beyond the edges
  double flopsPerCycle = 1;      ///< of a processor, for such code
  double flopsPerCycleAlone = 1; ///< of a processor that holds a single tile
  double bytesPerCycle = 1;      ///< that reach a processor from the cache which all share
  uint32_t resident = 1;         ///< tiles, or CTAs, that a processor holds at once
};

/// A row of the tuning table: calls of these extents on this device run this instance rather than its alternatives.
struct TuningRow {
  uint32_t instance = 0;
  std::string device;
  std::vector<int64_t> classes;  ///< of the extents, as extentsOf() lists them
  std::vector<int64_t> measured; ///< the extents themselves; empty where the table does not say
};

/// One compiled form of a kernel.
struct Instance {
  uint32_t kernel = 0;
  std::vector<ParamValue> params;
  /// Of each argument; `none`, only for views, where the package does not say.
  std::vector<plan::DType> dtypes;
  std::string variant;
  std::vector<Fact> facts;
  std::string target;
  std::string section;
  std::string symbol;
  size_t scratch = 0;
  /// Of a GPU instance.
  std::optional<LaunchShape> launch;
  std::vector<std::string> asserts;
  std::vector<std::string> prints;
  std::vector<std::string> flags;
  std::vector<CostTerm> flops;
  std::vector<CostTerm> bytes;
  /// How many tiles a persistent kernel shares out; empty: not known.
  std::vector<CostTerm> tiles;
  /// Of an alternative among several.
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
  /// kind KPKG_DEFAULT when there is none. Lists and strings point into `list` and `text`.
  kpkg_value defaultValue = {};
  std::vector<int64_t> list;
  std::string text;
};

/// The gradient of an op: another op of the package, whose results are the gradients of the op's tensor arguments in
/// order.
struct Backward {
  /// Where an argument of the backward op comes from.
  enum class Source : uint8_t {
    Gradient,     ///< of result `index`; those come first, in order
    Result,       ///< result `index`
    Argument,     ///< argument `index`
    Needs,        ///< whether the gradient of tensor argument `index` is asked for
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
  /// PyTorch's, without namespace; empty of an op that is known by its name alone. Those of packages are schemaOf()'s.
  std::string schema;
  std::string doc;
  std::string reference;
  std::optional<Backward> backward;
  /// How PyTorch treats the op, as JSON; empty: by its defaults.
  std::string torch;
  std::string plan;
  std::string shapePlan;
  /// Of calls on GPUs; empty: `plan` and `shapePlan`.
  std::string gpuPlan;
  std::string gpuShapePlan;
  std::vector<OpArgument> arguments;
  std::vector<std::string> results;
};

/// Points the defaults of the arguments at `list` and `text`, once the entry stays where it is.
void referToTexts(OpEntry &op);
/// Of an op of the manifest; refused with a Refusal.
OpEntry readOp(const nlohmann::json &value, const std::string &where);
/// Whether calls of both take the same arguments, under the same names, and give the same kinds of results.
bool haveOneSignature(const OpEntry &a, const OpEntry &b);
/// Whether their defaults are equal, too.
bool haveOneSchema(const OpEntry &a, const OpEntry &b);

struct Tables {
  std::vector<Kernel> kernels;
  std::vector<Instance> instances;
  std::vector<OpEntry> ops;
  std::vector<TuningRow> tuning;
  std::unordered_map<std::string_view, uint32_t> kernelByName;
};

/// Reads and checks a manifest; the refusal names the entry and what is wrong with it. The result does not move
/// afterwards (names are referred to), hence by pointer. Without rows of the tuning table: readTuning() adds them.
Result<std::shared_ptr<Tables>> readTables(const nlohmann::json &manifest);

} // namespace kpkg::package
#endif
