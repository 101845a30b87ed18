// Declares Tensor, a shape over borrowed or shared memory with DLPack conversions, and Value, any argument.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_TENSOR_HPP
#define KPKG_TENSOR_HPP

#include <kpkg/device.hpp>
#include <kpkg/dtype.hpp>
#include <kpkg/result.hpp>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

namespace kpkg {

/// Returns the dtype of a C++ element type: float, double, bool and the fixed-width integers.
template <typename T> constexpr DType dtypeOf() {
  static_assert(std::is_arithmetic_v<T>, "no kpkg dtype has this C++ type");
  constexpr DTypeKind kind = std::is_same_v<T, bool>       ? DTypeKind::Bool
                             : std::is_floating_point_v<T> ? DTypeKind::Float
                             : std::is_signed_v<T>         ? DTypeKind::Signed
                                                           : DTypeKind::Unsigned;
  constexpr DType dtype = dtypeOfNumber(kind, int32_t(8 * sizeof(T)));
  static_assert(dtype != DType::None, "no kpkg dtype has this C++ type");
  return dtype;
}

/// Shape, strides and address of memory. Copies share the memory; `owner` keeps it alive (null: borrowed).
class Tensor {
public:
  Tensor() = default;

  /// Borrows dense memory with the last dimension contiguous.
  Tensor(void *data, DType dtype, std::vector<int64_t> shape, kpkg_device device = Cpu)
      : Tensor(data, dtype, std::move(shape), {}, device, nullptr) {}
  /// Uses memory that `owner` keeps alive. Empty `strides` mean dense.
  Tensor(void *data, DType dtype, std::vector<int64_t> shape, std::vector<int64_t> strides, kpkg_device device,
         std::shared_ptr<void> owner)
      : address(data), elementType(dtype), extents(std::move(shape)), steps(std::move(strides)), place(device),
        keeper(std::move(owner)) {
    if (steps.empty() && !extents.empty()) {
      steps.resize(extents.size());
      int64_t step = 1;
      for (size_t i = extents.size(); i-- > 0;) {
        steps[i] = step;
        step = int64_t(
            uint64_t(step) *
            uint64_t(extents[i] > 0 ? extents[i] : 1)); // any strides will do for an impossible shape: calls refuse it
      }
    }
  }

  /// Returns new uninitialised host memory, 64-byte aligned. Throws kpkg::Exception for a negative extent or more than
  /// 2^63 - 1 bytes, and std::bad_alloc if memory is exhausted.
  static Tensor empty(DType dtype, std::vector<int64_t> shape) {
    int64_t bytes = byteCount(dtype, shape);
    if (bytes < 0)
      throwError(sizeError(shape));
    auto memory = allocate(size_t(bytes));
    void *data = memory.get();
    return Tensor(data, dtype, std::move(shape), {}, Cpu, std::move(memory));
  }
  static std::shared_ptr<void> allocate(size_t bytes) {
    return {::operator new(bytes ? bytes : 1, std::align_val_t(64)),
            [](void *memory) { ::operator delete(memory, std::align_val_t(64)); }};
  }

  /// Returns new uninitialised memory of a device in stream order: work queued on `stream` later may use it. It is
  /// freed, again in that order, with the last tensor that shares it.
  static Result<Tensor> empty(DType dtype, std::vector<int64_t> shape, kpkg_device device, Stream stream = {}) {
    int64_t bytes = byteCount(dtype, shape);
    if (bytes < 0)
      return sizeError(shape);
    auto memory = allocate(size_t(bytes), device, std::move(stream));
    if (!memory)
      return memory.error();
    void *data = memory->get();
    return Tensor(data, dtype, std::move(shape), {}, device, std::move(*memory));
  }
  static Result<std::shared_ptr<void>> allocate(size_t bytes, kpkg_device device, Stream stream) {
    if (stream.allocate && device.type == stream.device.type && device.index == stream.device.index)
      return stream.allocate(bytes);
    void *data = nullptr;
    if (kpkg_memory_allocate(device, bytes, stream.handle, &data) != KPKG_OK)
      return Error::last();
    return std::shared_ptr<void>(
        data, [device, stream = std::move(stream)](void *memory) { kpkg_memory_free(device, memory, stream.handle); });
  }

  /// Returns a copy of the elements on `device`, with the same strides. From or to the host it is complete; within a
  /// device it is queued on `stream`.
  Result<Tensor> to(kpkg_device device, Stream stream = {}) const {
    int64_t lowest = 0, highest = 0;
    for (size_t i = 0; i < extents.size(); ++i)
      (steps[i] < 0 ? lowest : highest) += extents[i] > 0 ? (extents[i] - 1) * steps[i] : 0;
    int64_t before = dtypeBytes(elementType, lowest);
    size_t bytes = elements() == 0 ? 0 : size_t(dtypeBytes(elementType, highest + 1) - before);
    auto memory = allocate(bytes, device, stream);
    if (!memory)
      return memory.error();
    char *first = static_cast<char *>(address) + before;
    if (kpkg_memory_copy(device, memory->get(), place, first, bytes, stream.handle) != KPKG_OK)
      return Error::last();
    char *start = static_cast<char *>(memory->get()) - before;
    return Tensor(start, elementType, extents, steps, device, std::move(*memory));
  }

  /// Borrows a `DLTensor`'s memory.
  static Result<Tensor> viewDlpack(const void *dlTensor) {
    kpkg_tensor view;
    if (kpkg_tensor_from_dlpack(dlTensor, &view) != KPKG_OK)
      return Error::last();
    std::vector<int64_t> strides;
    if (view.strides)
      strides.assign(view.strides, view.strides + view.rank);
    return Tensor(view.data, DType(view.dtype), {view.shape, view.shape + view.rank}, std::move(strides), view.device,
                  {});
  }
  /// Takes ownership of a `DLManagedTensor`, which is released with the last copy of the result; not on failure.
  template <typename DLManagedTensor> static Result<Tensor> fromDlpack(DLManagedTensor *managed) {
    auto tensor = viewDlpack(&managed->dl_tensor);
    if (tensor)
      tensor->keeper = std::shared_ptr<void>(managed, [](void *pointer) {
        auto *tensor = static_cast<DLManagedTensor *>(pointer);
        if (tensor->deleter)
          tensor->deleter(tensor);
      });
    return tensor;
  }
  /// Returns a new `DLManagedTensor` (or `DLManagedTensorVersioned`) that shares the memory. The caller must call its
  /// deleter.
  Result<void *> toDlpack(bool versioned = false) const {
    auto *copy = new Tensor(*this);
    kpkg_tensor descriptor = copy->descriptor();
    void *managed = nullptr;
    auto release = [](void *owner) { delete static_cast<Tensor *>(owner); };
    if (kpkg_tensor_to_dlpack(&descriptor, versioned, copy, release, &managed) == KPKG_OK)
      return managed;
    delete copy;
    return Error::last();
  }

  void *data() const { return address; }
  template <typename T> T *as() const { return static_cast<T *>(address); }
  DType dtype() const { return elementType; }
  int32_t rank() const { return int32_t(extents.size()); }
  const std::vector<int64_t> &shape() const { return extents; }
  const std::vector<int64_t> &strides() const { return steps; }
  kpkg_device device() const { return place; }
  const std::shared_ptr<void> &owner() const { return keeper; }
  int64_t elements() const {
    int64_t count = 1;
    for (int64_t extent : extents)
      count *= extent;
    return count;
  }
  /// Valid while this object exists unchanged.
  kpkg_tensor descriptor() const {
    return {address, extents.data(), steps.data(), rank(), int32_t(elementType), place};
  }

private:
  /// Returns -1 for an impossible shape.
  static int64_t byteCount(DType dtype, const std::vector<int64_t> &shape) {
    int64_t count = 1;
    for (int64_t extent : shape) {
      if (extent < 0)
        return -1;
      if (extent == 0)
        count = 0;
    }
    for (int64_t extent : shape) {
      if (count != 0 && count > std::numeric_limits<int64_t>::max() / extent)
        return -1;
      count = count == 0 ? 0 : count * extent;
    }
    return kpkg_dtype_bytes(int32_t(dtype), count);
  }
  static Error sizeError(const std::vector<int64_t> &shape) {
    std::string text;
    for (int64_t extent : shape)
      text += (text.empty() ? "" : ", ") + std::to_string(extent);
    return {KPKG_ERROR_USE, "no tensor has the shape [" + text + "]: it is negative or too large", {}, {}, {}};
  }

  void *address = nullptr;
  DType elementType = DType::None;
  std::vector<int64_t> extents;
  std::vector<int64_t> steps;
  kpkg_device place = Cpu;
  std::shared_ptr<void> keeper;
};

/// An argument: a number, a list of integers, a dtype, text, a tensor, a list of tensors or nothing.
class Value {
public:
  Value() { value.kind = KPKG_NONE; }
  Value(std::nullptr_t) : Value() {}
  Value(bool flag) {
    value.kind = KPKG_BOOLEAN;
    value.as.integer = flag;
  }
  template <typename T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0> Value(T integer) {
    value.kind = KPKG_INT;
    value.as.integer = int64_t(integer);
  }
  Value(double real) {
    value.kind = KPKG_FLOAT;
    value.as.real = real;
  }
  Value(DType dtype) {
    value.kind = KPKG_DTYPE;
    value.as.integer = int64_t(dtype);
  }
  Value(std::vector<int64_t> list) : integers(std::move(list)) { value.kind = KPKG_INT_LIST; }
  Value(std::initializer_list<int64_t> list) : Value(std::vector<int64_t>(list)) {}
  Value(std::string string) : text(std::move(string)) { value.kind = KPKG_STRING; }
  Value(const char *string) : Value(std::string(string)) {}
  Value(Tensor operand) : tensor(std::move(operand)) { value.kind = KPKG_TENSOR; }
  Value(std::vector<Tensor> operands) : list(std::make_shared<const TensorList>(std::move(operands))) {
    value.kind = KPKG_TENSOR_LIST;
  }

  /// Returns the C format; `storage` holds a tensor's descriptor. Valid while this object and `storage` exist
  /// unchanged.
  kpkg_value lower(kpkg_tensor &storage) const {
    kpkg_value lowered = value;
    if (value.kind == KPKG_INT_LIST) {
      lowered.count = int32_t(integers.size());
      lowered.as.list = integers.data();
    } else if (value.kind == KPKG_STRING) {
      lowered.as.string = text.c_str();
    } else if (value.kind == KPKG_TENSOR) {
      storage = tensor.descriptor();
      lowered.as.tensor = &storage;
    } else if (value.kind == KPKG_TENSOR_LIST) {
      lowered.count = int32_t(list->descriptors.size());
      lowered.as.tensor = list->descriptors.data();
    }
    return lowered;
  }
  /// Without a dtype if this is no tensor.
  const Tensor &asTensor() const { return tensor; }
  bool isTensorList() const { return value.kind == KPKG_TENSOR_LIST; }
  /// Returns the tensors of a list; none of another value.
  const std::vector<Tensor> &asTensors() const {
    static const std::vector<Tensor> none;
    return list ? list->tensors : none;
  }

private:
  /// Tensors, and descriptors that refer to them. Copies of a value share it.
  struct TensorList {
    explicit TensorList(std::vector<Tensor> operands) : tensors(std::move(operands)) {
      for (const Tensor &operand : tensors)
        descriptors.push_back(operand.descriptor());
    }
    std::vector<Tensor> tensors;
    std::vector<kpkg_tensor> descriptors;
  };
  kpkg_value value = {};
  std::vector<int64_t> integers;
  std::string text;
  Tensor tensor;
  std::shared_ptr<const TensorList> list;
};

} // namespace kpkg
#endif
