// Declares the ops of packages on one device, by name.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef DECODER_OPS_H
#define DECODER_OPS_H

#include <kpkg/kpkg.hpp>

#include <map>
#include <string>
#include <vector>

namespace decoder {

/// The ops that the decoder calls, on one stream of one device.
class Ops {
public:
  /// Opens the packages in a folder, and loads their code. Throws if one of them is missing.
  Ops(const std::string &folder, kpkg_device device, bool hasExperts);

  /// Returns the results of an op. Throws kpkg::Exception with the op's message.
  std::vector<kpkg::Tensor> all(const std::string &name, const std::vector<kpkg::Tensor> &tensors,
                                const std::vector<kpkg::Named> &named = {}) const {
    return ops.at(name).call(stream, tensors, named).value();
  }
  kpkg::Tensor operator()(const std::string &name, const std::vector<kpkg::Tensor> &tensors,
                          const std::vector<kpkg::Named> &named = {}) const {
    return all(name, tensors, named)[0];
  }
  /// Writes the results of an op into `outputs`.
  void into(const std::string &name, const std::vector<kpkg::Tensor> &tensors, const std::vector<kpkg::Tensor> &outputs,
            const std::vector<kpkg::Named> &named = {}) const {
    ops.at(name).callInto(stream, tensors, outputs, named).value();
  }

  kpkg::Tensor empty(kpkg::DType dtype, const std::vector<int64_t> &shape) const {
    return kpkg::Tensor::empty(dtype, shape, device, stream).value();
  }
  /// Returns whether the device is a GPU.
  bool isOnGpu() const { return device.type == KPKG_DEVICE_CUDA; }

  const kpkg_device device;
  kpkg::Stream stream; ///< with memory of its own

private:
  kpkg::Registry registry;
  std::map<std::string, kpkg::Op> ops;
};

/// Returns a view of `size` elements from `offset` on along dimension 1, as `shape` in place of that dimension.
kpkg::Tensor columns(const kpkg::Tensor &matrix, int64_t offset, const std::vector<int64_t> &shape);

/// Returns a view with dimensions 1 and 2 exchanged.
kpkg::Tensor transposed(const kpkg::Tensor &tensor);

/// Returns the elements of a contiguous tensor in another shape.
kpkg::Tensor reshaped(const kpkg::Tensor &tensor, std::vector<int64_t> shape);

} // namespace decoder
#endif
