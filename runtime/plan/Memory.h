// Tracks the memory of one evaluation: buffers, the tensors that view them, copies and launches in order.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "runtime/plan/Views.h"

namespace kpkg::plan {

/// Index of a tensor created during an evaluation; -1 is the null tensor.
using TensorId = int32_t;

/// Where a tensor argument comes from.
struct ArgumentPlace {
  int32_t index = -1;    ///< among the arguments of the call
  int32_t declared = -1; ///< in the schema: the same, or the list
  int32_t element = -1;  ///< in the list, or -1
};

/// Creates tensors, and converts their uses to steps. Functions return false with error() set.
///
/// A fold, reshape or contiguous may need a copy. The copy is emitted at its first use, refreshed if its source was
/// written since, and written back after a launch that writes it. It thus behaves like the view that strides did not
/// allow.
class Memory {
public:
  struct Storage;
  /// Discards the contents of `storage`.
  Memory(Resolution &resolution, Storage &storage);

  /// Creates the tensor of an argument after checking its metadata. `name` is that in the schema.
  bool addArgument(const TensorMeta &meta, const ArgumentPlace &place, std::string_view name, bool isMut, TensorId &id);
  bool allocate(std::span<const int64_t> shape, DType dtype, TensorId &id);
  /// Creates a tensor that views the buffer of `view.buffer`, after checking that it is inside.
  bool addView(const View &view, TensorId &id);
  /// Creates a contiguous copy of `source`, which is emitted on first use.
  bool addCopy(View source, TensorId &id);

  const View &view(TensorId id) const { return tensors[static_cast<size_t>(id)]; }
  /// Returns whether the tensor is a whole argument, not a view of a part.
  bool isWholeArgument(TensorId id) const;
  /// Returns "`input` (float32[2, 3])" for an argument itself, else "float32[2, 3]".
  std::string describe(TensorId id) const;
  /// Returns the argument of the schema whose memory the tensor views, or -1.
  int32_t argumentOf(TensorId id) const;

  /// Emits a launch with the necessary copies. `ids[i]` is the tensor of the launch's argument i if that is a view.
  bool launch(LaunchStep step, std::span<const TensorId> ids);
  bool output(TensorId id);
  /// Lays out temporaries. Must be called last.
  bool finish();

  const std::string &error() const { return message; }
  bool errorIsLimit() const { return isLimit; }
  /// Returns the argument that caused the error, or -1.
  int32_t blamed() const { return argument; }

private:
  struct BufferState {
    Buffer::Kind kind = Buffer::Kind::Temporary;
    ArgumentPlace place;
    std::string_view name;
    bool isMut = false;
    bool isOutput = false;
    DType dtype = DType::None;
    int64_t least = 0, greatest = -1; ///< existing element offsets
    View whole;                       ///< all of it; for an argument its own view
    uint32_t version = 0;             ///< number of writes; 0: contents undefined
    TensorId origin = -1;             ///< a copy: of this tensor
    uint32_t originVersion = 0;       ///< version of the origin's buffer that was copied
    uint32_t copies = 0;              ///< number of copies from here to the root
    int32_t emitted = -1;             ///< index in Resolution::buffers

    /// Returns the argument as the caller knows it: "params[3]".
    std::string text() const;
  };

  bool fail(std::string text, int32_t blame = -1);
  bool failLimit(std::string text);
  BufferState &bufferOf(const View &view) { return buffers[static_cast<size_t>(view.buffer)]; }
  const BufferState &rootOf(const View &view) const;
  bool add(const BufferState &buffer, TensorId &id);
  /// Returns the view with its buffer's number in the resolution.
  View emitted(const View &view);
  bool emitCopy(const View &source, const View &destination);
  bool beforeRead(const View &view);
  bool afterWrite(const View &view);
  bool checkWritable(const View &view, std::string_view kernel);
  bool checkDisjoint(const LaunchStep &step, std::span<const TensorId> ids);

  Resolution &resolution;
  std::vector<BufferState> &buffers;
  std::vector<View> &tensors; ///< `buffer` indexes `buffers`
  std::string message;
  int32_t argument = -1;
  bool isLimit = false;
  size_t launchArgs = 0, overlapChecks = 0;
};

/// The allocations of an evaluation, which later ones may reuse.
struct Memory::Storage {
  std::vector<BufferState> buffers;
  std::vector<View> tensors;
};

/// Checks an argument's metadata and creates its view with offset 0 (its buffer stays -1).
bool viewOfArgument(const TensorMeta &meta, View &view, std::string &why);

} // namespace kpkg::plan
