// Evaluates an op's plan: from the metadata of a call's arguments to a flat list of steps.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "runtime/plan/DType.h"
#include "runtime/plan/Limits.h"
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kpkg::plan {

class Program;

inline constexpr int maxRank = 16;
/// Maximum length of a list of Int.
inline constexpr int maxList = 64;
/// Maximum length of a list of tensors.
inline constexpr size_t maxTensorList = 4096;
/// The number of compute units that plans see on every host, so that results that depend on the division of work are
/// the same everywhere.
inline constexpr int64_t hostProcessors = 16;

//===--- What goes in ---------------------------------------------------------------------------------------------===//

/// The metadata of a tensor that plans may use. Shape and strides belong to the caller.
struct TensorMeta {
  DType dtype = DType::None;
  int32_t rank = 0;
  const int64_t *shape = nullptr;
  /// In elements; null means dense with the last dimension contiguous.
  const int64_t *strides = nullptr;
};

/// One argument of a call, with defaults filled in.
struct Argument {
  enum class Kind : uint8_t { None, Tensor, Int, Float, Bool, List, DType, String, TensorList };
  Kind kind = Kind::None;
  TensorMeta tensor;             // Tensor
  int64_t integer = 0;           // Int; Bool (0 or 1); DType (its number)
  double real = 0;               // Float
  std::span<const int64_t> list; // List
  std::string_view string;       // String
  size_t first = 0, count = 0;   // TensorList: its tensors are these arguments of the call
};

/// The arguments in the order of the op's schema. Behind them are the tensors of all TensorLists, in the same order.
using CallSignature = std::span<const Argument>;

//===--- What comes out -------------------------------------------------------------------------------------------===//

/// A view of a buffer. evaluate() has checked that every element is inside.
struct View {
  /// Index in Resolution::buffers, or -1 for an absent tensor.
  int32_t buffer = -1;
  DType dtype = DType::None;
  int32_t rank = 0;
  /// In elements, from the buffer's first byte; for an argument's buffer, from the element with all indices 0.
  int64_t offset = 0;
  std::array<int64_t, maxRank> shape{};
  /// In elements; may be 0 or negative.
  std::array<int64_t, maxRank> strides{};

  std::span<const int64_t> shapeSpan() const { return {shape.data(), static_cast<size_t>(rank)}; }
  std::span<const int64_t> stridesSpan() const { return {strides.data(), static_cast<size_t>(rank)}; }
  int64_t numel() const {
    int64_t count = 1;
    for (int i = 0; i < rank; ++i)
      count *= shape[i];
    return count;
  }
};

struct Buffer {
  enum class Kind : uint8_t {
    Argument, ///< memory of the argument `argument` of the call, which may be a tensor of a list
    Result,   ///< new memory that outputs view, which is returned to the caller
    Temporary ///< lives until the call's last step; at `offset` in one block of Resolution::temporaryBytes
  };
  Kind kind = Kind::Argument;
  int32_t argument = -1;
  int64_t bytes = 0; ///< Result, Temporary
  int64_t offset = 0;
  /// Argument: the list in the schema whose tensor `element` it is, or -1.
  int32_t list = -1;
  int32_t element = -1;
};

/// Copies element by element. Both views have the same shape and dtype, and do not overlap.
struct CopyStep {
  View source, destination;
};

/// One instance parameter of a launch.
struct LaunchParam {
  enum class Kind : uint8_t { Int, Bool, Float, DType, String };
  std::string_view name; ///< points to the Program
  Kind kind = Kind::Int;
  bool atLeast = false; ///< the smallest listed value >= integer
  int64_t integer = 0;  ///< Int, Bool, DType (its number)
  double real = 0;
  std::string string; ///< String
};

/// One kernel argument.
struct LaunchArg {
  enum class Kind : uint8_t {
    View,
    Int,
    Float,
    Bool,
    PassThrough ///< the scalar argument `integer` of the call: not in the signature, so its value is read at each call
  };
  Kind kind = Kind::View;
  bool isMut = false; ///< a View that the kernel writes
  View view;
  int64_t integer = 0;
  double real = 0;
};

struct LaunchStep {
  std::string_view kernel; ///< name of the kernel family; points to the Program
  std::vector<LaunchParam> params;
  std::vector<LaunchArg> args;
  /// Extents, all >= 1, whose product fits int64. Persistent kernels have none.
  std::array<int64_t, 3> grid{1, 1, 1};
  bool persistent = false;
};

using Step = std::variant<CopyStep, LaunchStep>;

/// All steps of one call. They do not depend on data, addresses or pass-through scalars. So a resolution may be cached
/// by its key (appendKey), and executed many times, by many threads at once. The Program must outlive it.
struct Resolution {
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  /// The op's results; an absent tensor has buffer -1. No two share a buffer, and none has an argument's.
  std::vector<View> outputs;
  /// Size of the block for all temporaries, each 64-byte aligned in it; 0 if there are none.
  int64_t temporaryBytes = 0;
};

struct Error {
  enum class Kind : uint8_t {
    Raised,   ///< `raise` in the op
    Argument, ///< a check of the evaluator: dimension out of range, incompatible shapes, overflow, alias, ...
    Limit,    ///< too many instructions, too long a list, ...
    Malformed ///< the bytecode is refused
  };
  Kind kind = Kind::Raised;
  std::string message;   ///< includes the offending values
  std::string op;        ///< the op of the call, "kpkg::softmax"
  int32_t argument = -1; ///< index in the schema of the offending argument, or -1
};

//===--- Doing it -------------------------------------------------------------------------------------------------===//

/// Resolves a call. Pure: the same program and signature give the same result. It reads only tensors' metadata.
///
/// `resolution` is overwritten; after an error its contents are undefined. Reusing one `resolution` saves allocations.
/// `processors` is the device's number of compute units, clamped to 1 ... maxProcessors. Only programs with
/// Program::usesProcessors() read it.
std::optional<Error> evaluate(const Program &program, CallSignature call, Resolution &resolution,
                              int64_t processors = hostProcessors);

/// Appends words that are equal exactly if evaluate() gives the same result for the same reasons. They are dtypes,
/// shapes, strides, and scalars by their bits (so NaN equals itself), except pass-through scalars.
///
/// The caller must add alignment and device (which determines `processors`). A call with wrong argument kinds gives
/// some key, and evaluate() then reports the error.
void appendKey(const Program &program, CallSignature call, std::vector<uint64_t> &key);

/// Checks that memory that the op writes (`mut`) overlaps neither another argument's memory nor itself. Each call must
/// do so, cached or not, because the result depends on addresses.
///
/// `addresses[i]` is the data pointer of argument i (ignored unless a tensor). Costs nothing for ops without `mut`
/// arguments.
std::optional<Error> checkAliases(const Program &program, CallSignature call, std::span<const uint64_t> addresses);

/// Returns one line per step: copies, launches with parameters and grid; then outputs. For `kpkg explain`.
std::string describe(const Program &program, const Resolution &resolution);

} // namespace kpkg::plan
