// Declares how weights come to the device: from a checkpoint in another dtype, joined, or at random.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef DECODER_WEIGHTS_H
#define DECODER_WEIGHTS_H

#include "checkpoint.h"
#include "ops.h"

namespace decoder {

/// Places weights on the device of `ops` in one dtype.
class Weights {
public:
  /// Rows of a tensor that come from one of the checkpoint.
  struct Part {
    std::string name;
    int64_t rows;
  };

  /// Without a checkpoint, weights are random.
  Weights(const Ops &ops, const Checkpoint *checkpoint, kpkg::DType dtype)
      : ops(ops), checkpoint(checkpoint), dtype(dtype) {}

  /// Returns tensors `[rows, rest...]` of the checkpoint as one, in the order of `parts`.
  kpkg::Tensor joined(const std::vector<Part> &parts, const std::vector<int64_t> &rest);
  kpkg::Tensor tensor(const std::string &name, const std::vector<int64_t> &shape);
  bool has(const std::string &name) const { return checkpoint && checkpoint->has(name); }
  int64_t bytes() const { return placed; }

private:
  const Ops &ops;
  const Checkpoint *checkpoint;
  kpkg::DType dtype;
  int64_t placed = 0;
  int64_t seed = 0;
};

} // namespace decoder
#endif
