// Implements calls of ops with tensors of ONNX Runtime: inputs as they are, results in memory of its allocator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/onnxruntime/Kernel.h"
#include "runtime/onnxruntime/ElementTypes.h"
#include "runtime/onnxruntime/Errors.h"

#include <algorithm>

namespace kpkg::ort {

struct Kernel::Shapes {
  std::vector<int64_t> inputs; ///< of each input -1 and its rank, if it is there, and its extents
  std::vector<kpkg_result> results;
};

/// One call, and the memory that its pointers refer to.
struct Kernel::Call {
  KernelContext *context = nullptr;
  size_t outputCount = 0;
  std::vector<kpkg_value> values;
  std::vector<kpkg_tensor> descriptors; ///< of inputs, then of outputs
  std::vector<const kpkg_tensor *> outputs;
  std::vector<kpkg_result> results;
  std::vector<void *> unwanted; ///< memory of results that the node does not use
  std::shared_ptr<const Shapes> shapes;
  kpkg_device device = {};
  kpkg_call call = {};

  ~Call() { freeUnwanted(); }

  void freeUnwanted() {
    for (void *data : unwanted)
      kpkg_memory_free(device, data, call.stream);
    unwanted.clear();
  }

  static kpkg_status allocate(void *context, const kpkg_allocation *wanted, void **data) {
    auto &call = *static_cast<Call *>(context);
    kpkg_status status = kpkg_memory_allocate(wanted->device, wanted->bytes, call.call.stream, data);
    if (status == KPKG_OK)
      call.unwanted.push_back(*data);
    return status;
  }

  /// Compares without copies.
  bool hasShapes(const std::vector<int64_t> &shapes, const std::vector<size_t> &tensors) const {
    auto next = shapes.begin();
    for (size_t argument : tensors) {
      const kpkg_value &value = values[argument];
      if (value.kind != KPKG_TENSOR) {
        if (*next++ != -1)
          return false;
        continue;
      }
      const kpkg_tensor &tensor = *value.as.tensor;
      if (*next++ != tensor.rank || !std::equal(tensor.shape, tensor.shape + tensor.rank, next))
        return false;
      next += tensor.rank;
    }
    return true;
  }
};

Kernel::Kernel(const Api &api, const Op &op, int32_t deviceType, const KernelInfo *info)
    : api(api), op(op), deviceType(deviceType), arguments(op, KernelAttributes(api, info)) {
  for (size_t i = 0; i < op.arguments().size(); ++i)
    if (op.arguments()[i].kind == KPKG_TENSOR)
      tensors.push_back(i);
}

Kernel::~Kernel() = default;

OrtStatus *Kernel::compute(KernelContext *context) const noexcept {
  return guarded(api, [&] { run(context); });
}

void Kernel::run(KernelContext *context) const {
  std::unique_ptr<Call> taken;
  std::shared_ptr<const Shapes> known;
  {
    std::lock_guard guard(lock);
    known = latest;
    if (!idle.empty()) {
      taken = std::move(idle.back());
      idle.pop_back();
    }
  }
  if (!taken)
    taken = std::make_unique<Call>();
  Call &call = *taken;
  call.context = context;
  call.shapes = std::move(known);
  bindInputs(call);
  bindShapes(call);
  if (kpkg_op_call(op.get(), &call.call) != KPKG_OK)
    raise(Error::last());
  call.freeUnwanted();
  std::lock_guard guard(lock);
  idle.push_back(std::move(taken));
}

void Kernel::bindInputs(Call &call) const {
  call.device = {deviceType, 0};
  call.values = arguments.values();
  call.descriptors.clear();
  call.descriptors.reserve(tensors.size() + size_t(op.info().result_count)); // pointers to its entries stay
  call.outputs.clear();
  size_t inputCount = 0;
  check(api, api.getInputCount(call.context, &inputCount));
  check(api, api.getOutputCount(call.context, &call.outputCount));
  for (size_t i = 0; i < std::min(inputCount, tensors.size()); ++i) {
    const Value *input = nullptr;
    check(api, api.getInput(call.context, i, &input));
    if (!input)
      continue; // the default
    kpkg_tensor tensor = {};
    ElementType type = ElementType::Undefined;
    size_t rank = 0;
    check(api, api.getTypeAndShape(input, &type, &tensor.shape, &rank));
    check(api, api.getTensorMutableData(const_cast<Value *>(input), &tensor.data));
    if (deviceType != KPKG_DEVICE_CPU) {
      const MemoryInfo *memory = nullptr;
      check(api, api.getTensorMemoryInfo(input, &memory));
      check(api, api.getMemoryId(memory, &call.device.index));
    }
    tensor.rank = int32_t(rank);
    tensor.dtype = int32_t(dtypeOf(type));
    tensor.device = call.device;
    call.descriptors.push_back(tensor);
    call.values[tensors[i]].kind = KPKG_TENSOR;
    call.values[tensors[i]].as.tensor = &call.descriptors.back();
  }
  call.results.resize(size_t(op.info().result_count));
  call.call = {};
  call.call.struct_size = sizeof call.call;
  call.call.arguments = call.values.data();
  call.call.argument_count = int32_t(call.values.size());
  call.call.results = call.results.data();
  call.call.result_capacity = int32_t(call.results.size());
  call.call.allocate = Call::allocate;
  call.call.allocate_context = &call;
  if (deviceType != KPKG_DEVICE_CPU)
    check(api, api.getGpuStream(call.context, &call.call.stream));
}

void Kernel::bindShapes(Call &call) const {
  bool isNew = !call.shapes || !call.hasShapes(call.shapes->inputs, tensors);
  if (isNew)
    call.shapes = inferShapes(call);
  bindOutputs(call, isNew);
  call.call.outputs = call.outputs.data();
  if (!isNew)
    return;
  std::lock_guard guard(lock);
  latest = call.shapes;
}

std::shared_ptr<const Kernel::Shapes> Kernel::inferShapes(Call &call) const {
  if (kpkg_op_infer(op.get(), &call.call) != KPKG_OK)
    raise(Error::last());
  auto shapes = std::make_shared<Shapes>();
  shapes->results = call.results;
  for (size_t argument : tensors) {
    const kpkg_value &value = call.values[argument];
    shapes->inputs.push_back(value.kind == KPKG_TENSOR ? value.as.tensor->rank : -1);
    if (value.kind == KPKG_TENSOR)
      shapes->inputs.insert(shapes->inputs.end(), value.as.tensor->shape,
                            value.as.tensor->shape + value.as.tensor->rank);
  }
  return shapes;
}

void Kernel::bindOutputs(Call &call, bool isNew) const {
  const std::vector<kpkg_result> &results = call.shapes->results;
  for (size_t i = 0; i < results.size(); ++i)
    call.outputs.push_back(i < call.outputCount ? output(call, i, results[i], isNew) : nullptr);
}

const kpkg_tensor *Kernel::output(Call &call, size_t index, const kpkg_result &result, bool isNew) const {
  auto refuse = [&](const std::string &what) {
    throw Failure(ErrorCode::InvalidArgument, op.name() + ": result " + std::to_string(index) + " " + what);
  };
  bool isTensor = result.kind == KPKG_TENSOR;
  Value *output = nullptr;
  check(api, api.getOutput(call.context, index, result.shape, isTensor ? size_t(result.rank) : 0, &output));
  if (!output)
    return nullptr; // the node leaves it out
  if (!isTensor)
    refuse("is None for these arguments, and the node uses it");
  if (isNew) {
    ElementType type = ElementType::Undefined;
    const int64_t *dims = nullptr;
    size_t rank = 0;
    check(api, api.getTypeAndShape(output, &type, &dims, &rank));
    if (dtypeOf(type) != DType(result.dtype))
      refuse("has dtype " + std::string(dtypeName(DType(result.dtype))) + ", and the model takes it for " +
             std::string(dtypeName(dtypeOf(type))) + ": give the node's output a type in the model");
  }
  kpkg_tensor tensor = {};
  check(api, api.getTensorMutableData(output, &tensor.data));
  tensor.shape = result.shape;
  tensor.rank = result.rank;
  tensor.dtype = result.dtype;
  tensor.device = call.device;
  call.descriptors.push_back(tensor);
  return &call.descriptors.back();
}

} // namespace kpkg::ort
