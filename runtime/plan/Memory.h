// The memory of one evaluation: buffers, the tensors that view them, copies and launches in order.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "runtime/plan/Views.h"

namespace kpkg::plan {

/// Index of a tensor made during an evaluation; -1 is the null tensor.
using TensorId = int32_t;

/// Makes tensors and turns their use into steps. A copy that a fold, reshape or contiguous needs is emitted at its
/// first use, is refreshed when its source was written since, and is written back after a launch that writes it: it
/// behaves as the view that strides did not allow. Functions return false with error() set.
class Memory {
public:
  struct Storage;
  /// What was in `storage` is gone.
  Memory(Resolution &resolution, Storage &storage);

  /// The tensor of argument `index`; checks its metadata.
  bool addArgument(const TensorMeta &meta, int32_t index, std::string_view name, bool isMut, TensorId &id);
  bool allocate(std::span<const int64_t> shape, DType dtype, TensorId &id);
  /// A tensor that views what `view.buffer` names. Checks that it lies inside.
  bool addView(const View &view, TensorId &id);
  /// A contiguous copy of `source`, made when it is used.
  bool addCopy(View source, TensorId &id);

  const View &view(TensorId id) const { return tensors[static_cast<size_t>(id)]; }
  /// Whether the tensor is an argument as it was given, and no view of a part of it.
  bool isWholeArgument(TensorId id) const;
  /// "`input` (float32[2, 3])" for an argument itself, else "float32[2, 3]".
  std::string describe(TensorId id) const;
  /// The argument whose memory the tensor views, or -1.
  int32_t argumentOf(TensorId id) const;

  /// `ids[i]` is the tensor of argument i of the launch where that is a view. Emits the copies that are needed around
  /// it.
  bool launch(LaunchStep step, std::span<const TensorId> ids);
  bool output(TensorId id);
  /// Lays out temporaries. To be called last.
  bool finish();

  const std::string &error() const { return message; }
  bool errorIsLimit() const { return isLimit; }
  /// The argument that the error is about, or -1.
  int32_t blamed() const { return argument; }

private:
  struct BufferState {
    Buffer::Kind kind = Buffer::Kind::Temporary;
    int32_t argument = -1;
    std::string_view name;
    bool isMut = false;
    bool isOutput = false;
    DType dtype = DType::none;
    int64_t least = 0, greatest = -1; ///< element offsets that exist
    View whole;                       ///< all of it; of an argument its own view
    uint32_t version = 0;             ///< times written; 0: contents undefined
    TensorId origin = -1;             ///< a copy: of this tensor
    uint32_t originVersion = 0;       ///< version of the origin's buffer that it holds
    uint32_t copies = 0;              ///< number of copies from here to the root
    int32_t emitted = -1;             ///< index in Resolution::buffers
  };

  bool fail(std::string text, int32_t blame = -1);
  bool failLimit(std::string text);
  BufferState &bufferOf(const View &view) { return buffers[static_cast<size_t>(view.buffer)]; }
  const BufferState &rootOf(const View &view) const;
  bool add(const BufferState &buffer, TensorId &id);
  /// The view with its buffer's number in the resolution.
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

/// What an evaluation allocates; the next one may use it again.
struct Memory::Storage {
  std::vector<BufferState> buffers;
  std::vector<View> tensors;
};

/// Checks an argument's metadata and makes the view with offset 0 of it (its buffer is left at -1).
bool viewOfArgument(const TensorMeta &meta, View &view, std::string &why);

} // namespace kpkg::plan
