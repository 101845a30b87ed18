// Converts tensors from and to DLPack's structures.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Dlpack.h"

#include <kpkg/dtype.hpp>

#include <memory>
#include <vector>

namespace kpkg::package {

// The layout of DLPack 1.0, which never changes. It is copied here because distributions still ship the header of 0.6,
// which has neither DLManagedTensorVersioned nor bool and float8.
namespace {
struct DLDevice {
  int32_t type;
  int32_t id;
};
struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byteOffset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void *context;
  void (*deleter)(DLManagedTensor *self);
};
struct DLManagedTensorVersioned {
  uint32_t major;
  uint32_t minor;
  void *context;
  void (*deleter)(DLManagedTensorVersioned *self);
  uint64_t flags;
  DLTensor tensor;
};

/// Returns DLPack's type of a dtype.
DLDataType dataType(int32_t dtype) {
  const DTypeRecord &record = dtypeRecord(DType(dtype));
  return {record.dlpackCode, uint8_t(record.bits), 1};
}

/// A managed tensor, and the data to which its pointers refer.
template <typename Managed> struct Export {
  Managed managed = {};
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  void *owner = nullptr;
  void (*release)(void *) = nullptr;

  static void destroy(Managed *self) {
    std::unique_ptr<Export> exported(static_cast<Export *>(self->context));
    if (exported->release)
      exported->release(exported->owner);
  }
};
} // namespace

Result<kpkg_tensor> fromDlpack(const void *dlTensor) {
  auto refuse = [](const std::string &why) {
    return Error{KPKG_ERROR_USE, "DLPack tensor refused: " + why, {}, {}, {}};
  };
  if (!dlTensor)
    return refuse("it is null");
  const DLTensor &source = *static_cast<const DLTensor *>(dlTensor);
  if (source.ndim < 0 || source.ndim > KPKG_MAX_RANK || (source.ndim > 0 && !source.shape))
    return refuse("rank " + std::to_string(source.ndim) + " is not from 0 to " + std::to_string(KPKG_MAX_RANK));
  kpkg_tensor tensor = {};
  tensor.data = source.data ? static_cast<char *>(source.data) + source.byteOffset : nullptr;
  tensor.shape = source.shape;
  tensor.strides = source.strides;
  tensor.rank = source.ndim;
  tensor.device = {source.device.type, source.device.id};
  for (int32_t dtype = 1; dtype < KPKG_DTYPE_COUNT; ++dtype)
    if (DLDataType type = dataType(dtype);
        type.code == source.dtype.code && type.bits == source.dtype.bits && type.lanes == source.dtype.lanes)
      tensor.dtype = dtype;
  return tensor;
}

template <typename Managed>
static void *exportTensor(const kpkg_tensor &tensor, void *owner, void (*release)(void *owner)) {
  auto exported = std::make_unique<Export<Managed>>();
  exported->shape.assign(tensor.shape, tensor.shape + tensor.rank);
  exported->strides.resize(size_t(tensor.rank));
  int64_t dense = 1;
  for (int32_t d = tensor.rank; d-- > 0;) {
    exported->strides[size_t(d)] = tensor.strides ? tensor.strides[d] : dense;
    dense *= tensor.shape[d];
  }
  Managed &managed = exported->managed;
  managed.tensor = {tensor.data,
                    {tensor.device.type, tensor.device.index},
                    tensor.rank,
                    dataType(tensor.dtype),
                    exported->shape.data(),
                    exported->strides.data(),
                    0};
  managed.deleter = Export<Managed>::destroy;
  managed.context = exported.get();
  exported->owner = owner;
  exported->release = release;
  return &exported.release()->managed;
}

Result<void *> toDlpack(const kpkg_tensor &tensor, bool versioned, void *owner, void (*release)(void *owner)) {
  if (tensor.rank < 0 || tensor.rank > KPKG_MAX_RANK || (tensor.rank > 0 && !tensor.shape) ||
      tensor.dtype <= KPKG_NO_DTYPE || tensor.dtype >= KPKG_DTYPE_COUNT)
    return Error{KPKG_ERROR_USE, "no DLPack tensor has this rank or dtype", {}, {}, {}};
  if (!versioned)
    return exportTensor<DLManagedTensor>(tensor, owner, release);
  void *made = exportTensor<DLManagedTensorVersioned>(tensor, owner, release);
  static_cast<DLManagedTensorVersioned *>(made)->major = 1;
  return made;
}

} // namespace kpkg::package
