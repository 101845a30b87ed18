// Declares an op in PyTorch's dispatcher: a numbered slot behind a boxed kernel function.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_TORCH_OPSLOT_H
#define KPKG_RUNTIME_TORCH_OPSLOT_H

#include "runtime/torch/BoxedArguments.h"
#include <kpkg/kpkg.h>

#include <string>
#include <vector>

namespace kpkg::torch_abi {

/// The data of a boxed call. Never changed once published; replaced as a whole.
struct OpSlot {
  const kpkg_op *op;
  std::string name;                ///< "kpkg::softmax"
  std::string fallback;            ///< the dispatcher's name of the PyTorch implementation, "" if there is none
  std::vector<ArgumentType> types; ///< of the schema, including the out arguments of an out= form
  int32_t argumentCount;           ///< without out arguments
  int32_t resultCount;
  std::vector<bool> optionalResults; ///< whether each result may be None
  bool isOut;
  int32_t precision = -1; ///< the argument that sets the precision of float32 products; negative without one
};

/// Limit of slots. A boxed kernel of the stable ABI has no context, so each op needs its own function, and this many
/// are compiled in. An op uses two, one for its out= form.
inline constexpr int maxSlots = 4096;

using BoxedFunction = void (*)(StableIValue *, uint64_t, uint64_t);

/// Returns the boxed kernel that runs the current slot `index`.
BoxedFunction boxedFunction(int index);

/// Makes calls at slot `index` run `slot`, which must live forever.
void publishSlot(int index, const OpSlot *slot);

/// The fallback of every op registered here, which calls the op's PyTorch implementation through the dispatcher.
/// `call->user` is the call's state, so it only works for calls from a boxed kernel.
kpkg_status runTorchFallback(void *context, const kpkg_op *op, kpkg_call *call);

/// Returns how PyTorch may multiply float32 on a device of this type; see kpkg_torch_follow_precision.
using PrecisionReader = const char *(*)(int32_t device);

/// Sets the function of kpkg_torch_follow_precision; null at first.
void setPrecisionReader(PrecisionReader reader);

/// Clears and reads the text of an error that a fallback implementation reported on this thread.
void setFallbackError(const char *message);

} // namespace kpkg::torch_abi

#endif // KPKG_RUNTIME_TORCH_OPSLOT_H
