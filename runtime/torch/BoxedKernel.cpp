// Implements the boxed kernels: unpack the dispatcher's stack, run the op with results allocated by PyTorch, pack the
// results.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/torch/CudaStream.h"
#include "runtime/torch/DTypeCodes.h"
#include "runtime/torch/OpSlot.h"

#include <kpkg/limits.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <stdexcept>
#include <utility>

namespace kpkg::torch_abi {
namespace {

std::array<std::atomic<const OpSlot *>, maxSlots> slots;
std::atomic<PrecisionReader> precisionReader = nullptr;
thread_local std::string fallbackError;

/// State of one call, which the allocator and the fallback reach through the kpkg_call.
struct CallState {
  CallState(const OpSlot &slot, BoxedArguments &arguments) : slot(slot), arguments(arguments) {}
  ~CallState() {
    for (AtenTensorHandle handle : allocated)
      if (handle)
        aoti_torch_delete_tensor_object(handle);
  }

  const OpSlot &slot;
  BoxedArguments &arguments;
  std::array<AtenTensorHandle, maxResults> allocated{};
  /// The fallback's results, which their consumer owns.
  std::array<StableIValue, maxArguments> fallbackStack{};
  bool fellBack = false;
};

AtenTensorHandle emptyStrided(int32_t rank, const int64_t *shape, const int64_t *strides, int32_t dtype,
                              kpkg_device device) {
  AtenTensorHandle handle = nullptr;
  aoti_torch_empty_strided(rank, shape, strides, dtypeToTorch(dtype), deviceToTorch(device.type), device.index,
                           &handle);
  return handle;
}

kpkg_status allocate(void *context, const kpkg_allocation *wanted, void **data) {
  auto *state = static_cast<CallState *>(context);
  if (size_t(wanted->index) >= maxResults)
    return kpkg_set_error(KPKG_ERROR_UNSUPPORTED,
                          ("more than " + std::to_string(maxResults) + " results in PyTorch").c_str());
  AtenTensorHandle handle = emptyStrided(wanted->rank, wanted->shape, wanted->strides, wanted->dtype, wanted->device);
  if (!handle)
    return kpkg_set_error(KPKG_ERROR_MEMORY, "PyTorch could not allocate a result");
  state->allocated[wanted->index] = handle;
  return aoti_torch_get_data_ptr(handle, data) == 0
             ? KPKG_OK
             : kpkg_set_error(KPKG_ERROR_INTERNAL, "a new tensor without memory");
}

[[noreturn]] void throwLastError(const OpSlot &slot) {
  kpkg_error error = {};
  error.struct_size = sizeof error;
  kpkg_last_error(&error);
  std::string message = error.message;
  if (message.find(slot.name) == std::string::npos)
    message = slot.name + ": " + message;
  throw std::runtime_error(message);
}

/// Returns a new tensor for a result that is a part of an allocation, or an argument. It is a copy, because PyTorch
/// forbids results that alias arguments.
AtenTensorHandle freshResult(CallState &state, const kpkg_result &result) {
  AtenTensorHandle handle = emptyStrided(result.rank, result.shape, result.strides, result.dtype, result.device);
  if (!handle)
    throw std::runtime_error(state.slot.name + ": PyTorch could not allocate a result");
  AtenTensorHandle source =
      result.source == KPKG_FROM_ALLOCATION ? state.allocated[result.index] : state.arguments.handle(result.index);
  AtenTensorHandle view = nullptr;
  int64_t offset = 0;
  aoti_torch_get_storage_offset(source, &offset);
  aoti_torch__reinterpret_tensor(source, result.rank, result.shape, result.strides, offset + result.offset, &view);
  int32_t failed = view ? aoti_torch_copy_(handle, view, 0) : 1;
  if (view)
    aoti_torch_delete_tensor_object(view);
  if (failed) {
    aoti_torch_delete_tensor_object(handle);
    throw std::runtime_error(state.slot.name + ": PyTorch could not copy a result");
  }
  return handle;
}

StableIValue packResult(CallState &state, const kpkg_result &result) {
  switch (result.kind) {
  case KPKG_TENSOR:
    if (result.source == KPKG_FROM_ALLOCATION && result.whole)
      return std::bit_cast<StableIValue>(std::exchange(state.allocated[result.index], nullptr));
    return std::bit_cast<StableIValue>(freshResult(state, result));
  case KPKG_INT:
  case KPKG_BOOLEAN:
    return StableIValue(result.as.integer);
  case KPKG_FLOAT:
    return std::bit_cast<StableIValue>(result.as.real);
  default:
    throw std::runtime_error(state.slot.name + ": a result that is None cannot be given to PyTorch");
  }
}

/// Returns PyTorch's global precision for a call that leaves the precision of float32 products open.
const char *followedPrecision(const OpSlot &slot, const BoxedArguments &arguments) {
  if (slot.precision < 0 || *arguments.values()[slot.precision].as.string)
    return nullptr;
  PrecisionReader reader = precisionReader.load(std::memory_order_acquire);
  for (int32_t i = 0; i < slot.argumentCount && reader; ++i)
    if (auto tensors = arguments.tensorsOf(i); !tensors.empty())
      return tensors[0].dtype == KPKG_FLOAT32 ? reader(tensors[0].device.type) : nullptr;
  return nullptr;
}

[[gnu::noinline]] void callSlot(int index, StableIValue *stack, uint64_t inputCount, uint64_t outputCount) {
  const OpSlot &slot = *slots[index].load(std::memory_order_acquire);
  BoxedArguments arguments(stack, slot.types, slot.name.c_str());
  CallState state(slot, arguments);
  std::array<kpkg_result, maxResults> results;
  std::array<const kpkg_tensor *, maxResults> outputs;

  kpkg_call call = {};
  call.struct_size = sizeof call;
  call.arguments = arguments.values();
  call.argument_count = slot.argumentCount;
  call.results = results.data();
  call.result_capacity = int32_t(maxResults);
  call.allocate = allocate;
  call.allocate_context = &state;
  call.user = &state;
  if (slot.isOut) {
    for (int32_t i = 0; i < slot.resultCount; ++i)
      outputs[i] = arguments.tensor(slot.argumentCount + i);
    call.outputs = outputs.data();
  }

  for (int32_t i = 0; i < arguments.count(); ++i)
    if (auto tensors = arguments.tensorsOf(i); !tensors.empty() && hasStreams(tensors[0].device.type)) {
      call.stream = currentCudaStream(tensors[0].device.index);
      break;
    }
  call.precision = followedPrecision(slot, arguments);
  if (kpkg_op_call(slot.op, &call) != KPKG_OK)
    throwLastError(slot);

  if (state.fellBack) {
    for (uint64_t i = 0; i < outputCount; ++i)
      stack[i] = state.fallbackStack[i];
    return;
  }
  if (slot.isOut) // returns nothing: PyTorch cannot compile ops whose results are their arguments
    return;
  for (int32_t i = 0; i < slot.resultCount; ++i) {
    if (slot.optionalResults[size_t(i)] && results[i].kind == KPKG_NONE)
      stack[i] = 0;
    else
      stack[i] = packResult(state, results[i]);
    if (slot.optionalResults[size_t(i)] && stack[i]) // an optional value has its own heap cell, which PyTorch deletes
      stack[i] = std::bit_cast<StableIValue>(new StableIValue(stack[i]));
  }
}

// A function template instead of a lambda. The mangled name of a lambda in a pack would contain the whole pack, 6 MB of
// names in total.
template <int index> void trampoline(StableIValue *stack, uint64_t inputs, uint64_t outputs) {
  callSlot(index, stack, inputs, outputs);
}
template <int... indices> constexpr auto makeTable(std::integer_sequence<int, indices...>) {
  return std::array<BoxedFunction, sizeof...(indices)>{trampoline<indices>...};
}
constexpr auto boxedFunctions = makeTable(std::make_integer_sequence<int, maxSlots>());

} // namespace

BoxedFunction boxedFunction(int index) { return boxedFunctions[index]; }

void publishSlot(int index, const OpSlot *slot) { slots[index].store(slot, std::memory_order_release); }

void setPrecisionReader(PrecisionReader reader) { precisionReader.store(reader, std::memory_order_release); }

void setFallbackError(const char *message) { fallbackError = message; }

kpkg_status runTorchFallback(void *, const kpkg_op *, kpkg_call *call) {
  auto *state = static_cast<CallState *>(call->user);
  if (!state)
    return kpkg_set_error(
        KPKG_ERROR_NO_INSTANCE,
        "no kernel of the package can run this call; the fallback to PyTorch takes PyTorch tensors only");
  fallbackError.clear();
  state->arguments.takeStack(state->fallbackStack.data());
  int32_t failed = torch_call_dispatcher(state->slot.fallback.c_str(), state->slot.isOut ? "out" : "",
                                         state->fallbackStack.data(), version);
  // If one result may be None, the fallback declares all results optional, because PyTorch confuses the types of
  // differing results. Each then is in a cell, or null.
  const std::vector<bool> &optional = state->slot.optionalResults;
  bool hasCells = !state->slot.isOut && std::find(optional.begin(), optional.end(), true) != optional.end();
  if (!failed && fallbackError.empty()) {
    for (size_t i = 0; hasCells && i < optional.size(); ++i)
      if (auto *cell = std::bit_cast<StableIValue *>(state->fallbackStack[i]); cell && !optional[i]) {
        state->fallbackStack[i] = *cell;
        delete cell;
      }
    state->fellBack = true;
    for (int32_t i = 0; i < state->slot.resultCount; ++i)
      call->results[i] = {};
    return KPKG_OK;
  }
  if (!failed && !state->slot.isOut) // an implementation that reports an error still returns placeholders
    for (int32_t i = 0; i < state->slot.resultCount; ++i) {
      StableIValue bits = state->fallbackStack[size_t(i)];
      if (hasCells) {
        auto *cell = std::bit_cast<StableIValue *>(bits);
        bits = cell ? *cell : 0;
        delete cell;
      }
      if (bits)
        aoti_torch_delete_tensor_object(std::bit_cast<AtenTensorHandle>(bits));
    }
  std::string message =
      state->slot.fallback + " failed: " + (fallbackError.empty() ? "see the message above" : fallbackError);
  return kpkg_set_error(KPKG_ERROR_KERNEL, message.c_str());
}

} // namespace kpkg::torch_abi
