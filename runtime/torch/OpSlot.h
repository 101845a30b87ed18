// An op as PyTorch's dispatcher sees it: a numbered slot behind a boxed kernel function.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_TORCH_OPSLOT_H
#define KPKG_RUNTIME_TORCH_OPSLOT_H

#include "runtime/torch/BoxedArguments.h"
#include "runtime/torch/Register.h"
#include <kpkg/kpkg.h>

#include <string>
#include <vector>

namespace kpkg::torch_abi {

/// What a boxed call needs to know. Never changed once published; replaced as a whole.
struct OpSlot {
  const kpkg_op *op;
  std::string name;                ///< "kpkg::softmax"
  std::string fallback;            ///< the dispatcher's name of the PyTorch implementation, "" when there is none
  std::vector<ArgumentType> types; ///< of the schema, the out arguments of an out= form included
  int32_t argumentCount;           ///< without out arguments
  int32_t resultCount;
  std::vector<bool> optionalResults; ///< of those, which may be None
  bool isOut;
  int32_t precision = -1; ///< the argument that says how float32 is multiplied; negative without one
};

/// A boxed kernel of the stable ABI gets no context, so each op needs a function of its own: this many are compiled in.
/// An op takes two, one for its out= form.
inline constexpr int maxSlots = 4096;

using BoxedFunction = void (*)(StableIValue *, uint64_t, uint64_t);

/// The boxed kernel that runs whatever slot `index` holds.
BoxedFunction boxedFunction(int index);

/// Makes calls that arrive at slot `index` run `slot`, which must live for ever.
void publishSlot(int index, const OpSlot *slot);

/// The fallback of every op registered here: asks the dispatcher for the op's PyTorch implementation. `call->user` is
/// the call's state, so it serves only calls that came through a boxed kernel.
kpkg_status runTorchFallback(void *context, const kpkg_op *op, kpkg_call *call);

/// What kpkg_torch_follow_precision said last; null at first.
void setPrecisionReader(kpkg_torch_precision_fn reader);

/// Clears and reads the text of an error that a fallback implementation reported on this thread.
void setFallbackError(const char *message);

} // namespace kpkg::torch_abi

#endif // KPKG_RUNTIME_TORCH_OPSLOT_H
