// Runs an op as the kernel of a node of ONNX Runtime.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_ONNXRUNTIME_KERNEL_H
#define KPKG_RUNTIME_ONNXRUNTIME_KERNEL_H

#include "runtime/onnxruntime/Arguments.h"

#include <memory>
#include <mutex>
#include <vector>

namespace kpkg::ort {

/// A node's kernel. Any number of threads may run it.
class Kernel {
public:
  /// Throws Failure if the attributes do not fit the op.
  Kernel(const Api &api, const Op &op, int32_t deviceType, const KernelInfo *info);
  ~Kernel();

  /// Runs the op on the node's tensors, on the stream of the context.
  OrtStatus *compute(KernelContext *context) const noexcept;

private:
  struct Call;
  /// The results' shapes for the inputs' shapes of a call. Most nodes see the same ones in every call.
  struct Shapes;

  void run(KernelContext *context) const;
  void bindInputs(Call &call) const;
  void bindShapes(Call &call) const;
  std::shared_ptr<const Shapes> inferShapes(Call &call) const;
  void bindOutputs(Call &call, bool isNew) const;
  const kpkg_tensor *output(Call &call, size_t index, const kpkg_result &result, bool isNew) const;

  const Api &api;
  const Op &op;
  int32_t deviceType;
  Arguments arguments;
  std::vector<size_t> tensors; ///< arguments that are inputs, in order
  mutable std::mutex lock;     ///< of what follows
  mutable std::shared_ptr<const Shapes> latest;
  mutable std::vector<std::unique_ptr<Call>> idle; ///< keep their memory for later calls
};

} // namespace kpkg::ort

#endif // KPKG_RUNTIME_ONNXRUNTIME_KERNEL_H
