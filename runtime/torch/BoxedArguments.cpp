// Reads the stack of a boxed call by the types of the op's schema.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/torch/BoxedArguments.h"
#include "runtime/torch/DTypeCodes.h"

#include <bit>
#include <stdexcept>
#include <string>

namespace kpkg::torch_abi {
namespace {

/// Returns the heap cell of an optional value, or null. PyTorch allocates it with `new` for extensions of this ABI
/// version.
StableIValue *cellOf(StableIValue value) { return std::bit_cast<StableIValue *>(value); }

/// Deletes a list and its tensors, which PyTorch's function for lists keeps.
void deleteTensorList(StableListHandle list) {
  size_t size = 0;
  torch_list_size(list, &size);
  for (size_t i = 0; i < size; ++i) {
    StableIValue entry = 0;
    torch_list_get_item(list, i, &entry);
    aoti_torch_delete_tensor_object(std::bit_cast<AtenTensorHandle>(entry));
  }
  torch_delete_list(list);
}

} // namespace

BoxedArguments::BoxedArguments(const StableIValue *stack, const std::vector<ArgumentType> &types, const char *opName)
    : types(types) {
  for (int32_t i = 0; i < count(); ++i)
    owned[i] = stack[i];
  auto nameOf = [&](int32_t i) { return std::string(opName) + ": argument " + std::to_string(i); };
  try {
    size_t listEntries = 0, listedTensors = 0;
    for (int32_t i = 0; i < count(); ++i) {
      kpkg_value &value = valueStorage[i];
      value = {};
      StableIValue bits = owned[i];
      if (types[i].optional) {
        if (!cellOf(bits)) {
          value.kind = KPKG_NONE;
          continue;
        }
        bits = *cellOf(bits);
      }
      value.kind = types[i].kind;
      switch (types[i].kind) {
      case KPKG_TENSOR:
        tensors[i] = describe(handle(i), nameOf(i));
        value.as.tensor = &tensors[i];
        break;
      case KPKG_INT:
        value.as.integer = int64_t(bits);
        break;
      case KPKG_BOOLEAN:
        value.as.integer = bits & 0xff ? 1 : 0;
        break;
      case KPKG_FLOAT:
        value.as.real = std::bit_cast<double>(bits);
        break;
      case KPKG_DTYPE:
        value.as.integer = dtypeFromTorch(int32_t(bits));
        break;
      case KPKG_INT_LIST:
      case KPKG_TENSOR_LIST: {
        size_t size = 0;
        torch_list_size(std::bit_cast<StableListHandle>(bits), &size);
        value.count = int32_t(size);
        (types[i].kind == KPKG_INT_LIST ? listEntries : listedTensors) += size;
        break;
      }
      case KPKG_STRING:
        torch_string_c_str(std::bit_cast<StringHandle>(bits), &value.as.string);
        break;
      }
    }
    listStorage.reserve(listEntries); // keeps pointers into it valid
    tensorStorage.reserve(listedTensors);
    for (int32_t i = 0; i < count() && (listEntries || listedTensors); ++i)
      if (valueStorage[i].kind == KPKG_INT_LIST)
        readList(i);
      else if (valueStorage[i].kind == KPKG_TENSOR_LIST)
        readTensorList(i, nameOf(i));
  } catch (...) {
    release();
    throw;
  }
}

BoxedArguments::~BoxedArguments() { release(); }

AtenTensorHandle BoxedArguments::handle(int32_t index) const {
  return std::bit_cast<AtenTensorHandle>(types[index].optional ? *cellOf(owned[index]) : owned[index]);
}

kpkg_tensor BoxedArguments::describe(AtenTensorHandle handle, const std::string &what) {
  kpkg_tensor tensor = {};
  int64_t rank = 0, *sizes = nullptr, *strides = nullptr;
  int32_t dtype = 0, device = 0, deviceIndex = 0, layout = 0;
  static const int32_t strided = aoti_torch_layout_strided();
  aoti_torch_get_layout(handle, &layout);
  if (layout != strided)
    throw std::runtime_error(what + " has a sparse or other layout that is not strided; call .to_dense() first");
  aoti_torch_get_dim(handle, &rank);
  aoti_torch_get_sizes(handle, &sizes);
  aoti_torch_get_strides(handle, &strides);
  aoti_torch_get_dtype(handle, &dtype);
  aoti_torch_get_device_type(handle, &device);
  aoti_torch_get_device_index(handle, &deviceIndex);
  tensor.shape = sizes;
  tensor.strides = strides;
  tensor.rank = int32_t(rank);
  tensor.dtype = dtypeFromTorch(dtype);
  tensor.device = {deviceFromTorch(device), deviceIndex < 0 ? 0 : deviceIndex};
  if (aoti_torch_get_data_ptr(handle, &tensor.data) != 0 || tensor.device.type == 0)
    throw std::runtime_error(what + " has no memory that kpkg can reach");
  return tensor;
}

StableListHandle BoxedArguments::listHandle(int32_t index) const {
  return std::bit_cast<StableListHandle>(types[index].optional ? *cellOf(owned[index]) : owned[index]);
}

void BoxedArguments::readTensorList(int32_t index, const std::string &what) {
  StableListHandle list = listHandle(index);
  size_t start = tensorStorage.size();
  for (int32_t i = 0; i < valueStorage[index].count; ++i) {
    StableIValue entry = 0; // the list owns it
    torch_list_get_item(list, size_t(i), &entry);
    tensorStorage.push_back(describe(std::bit_cast<AtenTensorHandle>(entry), what + "[" + std::to_string(i) + "]"));
  }
  valueStorage[index].as.tensor = tensorStorage.data() + start;
}

void BoxedArguments::readList(int32_t index) {
  StableListHandle list = listHandle(index);
  size_t start = listStorage.size();
  for (int32_t i = 0; i < valueStorage[index].count; ++i) {
    StableIValue entry = 0;
    torch_list_get_item(list, size_t(i), &entry);
    listStorage.push_back(int64_t(entry));
  }
  valueStorage[index].as.list = listStorage.data() + start;
}

void BoxedArguments::takeStack(StableIValue *stack) {
  for (int32_t i = 0; i < count(); ++i)
    stack[i] = owned[i];
  taken = true;
}

void BoxedArguments::release() {
  if (taken)
    return;
  taken = true;
  for (int32_t i = 0; i < count(); ++i) {
    StableIValue bits = owned[i];
    if (types[i].optional) {
      StableIValue *cell = cellOf(bits);
      if (!cell)
        continue;
      bits = *cell;
      delete cell;
    }
    if (!bits)
      continue;
    if (types[i].kind == KPKG_TENSOR)
      aoti_torch_delete_tensor_object(std::bit_cast<AtenTensorHandle>(bits));
    else if (types[i].kind == KPKG_INT_LIST)
      torch_delete_list(std::bit_cast<StableListHandle>(bits));
    else if (types[i].kind == KPKG_TENSOR_LIST)
      deleteTensorList(std::bit_cast<StableListHandle>(bits));
    else if (types[i].kind == KPKG_STRING)
      torch_delete_string(std::bit_cast<StringHandle>(bits));
  }
}

} // namespace kpkg::torch_abi
