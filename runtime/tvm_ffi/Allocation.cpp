// Implements the allocation of results by tvm-ffi's environment or by kpkg.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/tvm_ffi/Allocation.h"
#include "runtime/tvm_ffi/Call.h"

#include <tvm/ffi/extra/c_env_api.h>

namespace ffi = tvm::ffi;

namespace kpkg::tvm_abi {
namespace {

/// Memory of kpkg, in the order of a stream.
struct OwnMemory {
  void *stream;

  static kpkg_device deviceOf(const DLTensor &tensor) {
    return {int32_t(tensor.device.device_type), tensor.device.device_id};
  }
  void AllocData(DLTensor *tensor) {
    size_t bytes = ffi::GetDataSize(*tensor);
    if (kpkg_memory_allocate(deviceOf(*tensor), bytes, stream, &tensor->data) != KPKG_OK)
      raise(Error::last());
  }
  void FreeData(DLTensor *tensor) { kpkg_memory_free(deviceOf(*tensor), tensor->data, stream); }
};

bool isDense(const kpkg_allocation &wanted) {
  int64_t dense = 1;
  for (int32_t d = wanted.rank; d-- > 0;) {
    if (wanted.shape[d] > 1 && wanted.strides[d] != dense)
      return false;
    dense *= wanted.shape[d];
  }
  return true;
}

} // namespace

ffi::Tensor allocateTensor(const kpkg_allocation &wanted, void *stream) {
  const DTypeRecord &record = dtypeRecord(DType(wanted.dtype));
  DLDataType dtype = {record.dlpackCode, uint8_t(record.bits), 1};
  DLDevice device = {DLDeviceType(wanted.device.type), wanted.device.index};
  int64_t elements = int64_t(wanted.bytes) * 8 / record.bits;
  ffi::ShapeView shape =
      isDense(wanted) ? ffi::ShapeView(wanted.shape, size_t(wanted.rank)) : ffi::ShapeView(&elements, 1);
  if (TVMFFIEnvGetDLPackManagedTensorAllocator())
    return ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, shape, dtype, device);
  return ffi::Tensor::FromNDAlloc(OwnMemory{stream}, shape, dtype, device);
}

} // namespace kpkg::tvm_abi
