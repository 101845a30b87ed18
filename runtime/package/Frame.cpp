// Implements the working memory of a running call, which its thread keeps for the next call.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Frame.h"

#include <cmath>
#include <cstdlib>
#include <memory>
#include <utility>

namespace kpkg::package {

/// Limit of memory that a frame keeps after a large call.
static constexpr size_t keptBytes = size_t(256) << 20;

AlignedBlock::~AlignedBlock() { std::free(memory); }

std::byte *AlignedBlock::get(size_t bytes) {
  if (bytes > size || size > keptBytes) {
    std::free(memory);
    size = 0;
    size_t rounded = (bytes + 4095) / 4096 * 4096 + 4096;
    memory = static_cast<std::byte *>(std::aligned_alloc(4096, rounded));
    if (memory)
      size = rounded;
  }
  return memory;
}

namespace {
struct FramePool {
  std::vector<std::unique_ptr<Frame>> frames;
  size_t used = 0;
};
} // namespace

static FramePool &pool() {
  static thread_local FramePool frames;
  return frames;
}

FrameLease::FrameLease() {
  FramePool &frames = pool();
  if (frames.used == frames.frames.size())
    frames.frames.push_back(std::make_unique<Frame>());
  frame = frames.frames[frames.used++].get();
}

FrameLease::~FrameLease() { --pool().used; }

static const char *kindName(int32_t kind) {
  static const char *const names[] = {"a default", "None",           "a tensor", "an int",   "a float",
                                      "a bool",    "a list of ints", "a dtype",  "a string", "a list of tensors"};
  return kind >= 0 && kind < int32_t(std::size(names)) ? names[kind] : "of an unknown kind";
}

size_t Frame::declaredIndex(size_t index) const {
  for (size_t i = 0; index >= declared && i < declared; ++i)
    if (arguments[i].kind == plan::Argument::Kind::TensorList && index - arguments[i].first < arguments[i].count)
      return i;
  return index;
}

std::string Frame::nameOf(const OpEntry &op, size_t index) const {
  size_t number = declaredIndex(index);
  const std::string &name = op.arguments[number].name;
  return number == index ? name : name + "[" + std::to_string(index - arguments[number].first) + "]";
}

Error Frame::argumentError(const OpEntry &op, size_t index, const std::string &what) const {
  return {KPKG_ERROR_KERNEL,
          op.name + ": argument '" + nameOf(op, index) + "' " + what,
          op.name,
          {},
          op.arguments[declaredIndex(index)].name};
}

static std::string deviceName(kpkg_device device) {
  if (const device::Driver *driver = findDriver(device.type))
    return driver->deviceName(device.index);
  return "device of type " + std::to_string(device.type) + ", " + std::to_string(device.index);
}

void Frame::appendDeviceKey() {
  if (!driver->traits.plansByAlignment)
    return;
  key.push_back(uint64_t(driver->traits.type) << 32 | uint32_t(device.index));
  constexpr int bitsPerAddress = 4;
  static_assert(addressAlignment == 1 << bitsPerAddress);
  uint64_t word = 0;
  int filled = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].kind != KPKG_TENSOR)
      continue;
    word = word << bitsPerAddress | addresses[i] % addressAlignment;
    if (++filled % (64 / bitsPerAddress) == 0)
      key.push_back(std::exchange(word, 0));
  }
  key.push_back(word);
}

void Frame::placeOn(kpkg_device where) {
  if (!driver || driver->traits.type != where.type)
    driver = findDriver(where.type);
  device = where;
  if (driver && driver->traits.isSingle)
    device.index = 0;
}

void Frame::bindAsGiven(const kpkg_call &call) {
  size_t count = call.arguments && call.argument_count > 0 ? size_t(call.argument_count) : 0;
  values.assign(call.arguments, call.arguments + count);
  arguments.assign(count, {});
  addresses.assign(count, 0);
  declared = count;
  foreign = "no package of the registry has it"; // a package may be added meanwhile, for which nothing was checked
  placeOn(defaultDevice);
  stream = call.stream;
  restriction = nullptr;
  invariance = requiresBatchInvariance(nullptr) ? BatchInvariance::ByInstances : BatchInvariance::NotWanted;
}

/// Returns the precision for an empty `precision`: the configuration's, else the caller's default, else the op's.
static const char *precisionOf(const kpkg_call &call, const Restriction *restriction) {
  if (restriction && !restriction->precision.empty())
    return restriction->precision.c_str();
  return call.precision ? call.precision : "";
}

/// Returns who ensures batch invariance of a call of an op without that argument.
static BatchInvariance invarianceOf(const OpEntry &op, const Restriction *restriction) {
  bool isRequired = !op.isGradient && requiresBatchInvariance(restriction);
  return isRequired ? BatchInvariance::ByInstances : BatchInvariance::NotWanted;
}

/// Binds a Bool argument, which becomes true where it is batch_invariant and that is required.
static void bindFlag(plan::Argument &argument, kpkg_value &value, const OpArgument &expected,
                     const Restriction *restriction, BatchInvariance &invariance) {
  if (expected.name == batchInvariant) {
    value.as.integer |= requiresBatchInvariance(restriction);
    invariance = value.as.integer ? BatchInvariance::ByOp : BatchInvariance::NotWanted;
  }
  argument.kind = plan::Argument::Kind::Bool;
  argument.integer = value.as.integer != 0;
}

/// Accepts an int where the schema says float, and as a list of one, like PyTorch's `stride=2`. `single` keeps the
/// entry of the list. An empty list has no kind of its own.
static void adaptKind(kpkg_value &value, kpkg_kind expected, int64_t &single) {
  if (value.kind == KPKG_INT_LIST && expected == KPKG_TENSOR_LIST && value.count == 0)
    value.kind = KPKG_TENSOR_LIST;
  if (value.kind != KPKG_INT)
    return;
  if (expected == KPKG_FLOAT) {
    value.kind = KPKG_FLOAT;
    value.as.real = double(value.as.integer);
  } else if (expected == KPKG_INT_LIST) {
    single = value.as.integer;
    value.kind = KPKG_INT_LIST;
    value.as.list = &single;
    value.count = 1;
  }
}

Status Frame::bindTensor(const OpEntry &op, size_t index, std::optional<size_t> &placed) {
  const kpkg_tensor *tensor = values[index].as.tensor;
  if (!tensor || tensor->rank < 0 || tensor->rank > KPKG_MAX_RANK || (tensor->rank > 0 && !tensor->shape))
    return argumentError(op, index, "has no shape of rank 0 to " + std::to_string(KPKG_MAX_RANK));
  kpkg_device other = device;
  placeOn(tensor->device);
  if (!driver)
    foreign = "argument '" + nameOf(op, index) + "' is on a device of type " + std::to_string(device.type) +
              ", for which there is no code";
  if (placed && (other.type != device.type || other.index != device.index))
    return argumentError(
        op, index, "is on " + deviceName(device) + ", but '" + nameOf(op, *placed) + "' is on " + deviceName(other));
  placed = index;
  if (tensor->dtype <= KPKG_NO_DTYPE || tensor->dtype >= KPKG_DTYPE_COUNT)
    foreign = "argument '" + nameOf(op, index) + "' has a dtype that kpkg does not know";
  arguments[index].kind = plan::Argument::Kind::Tensor;
  arguments[index].tensor = {plan::DType(tensor->dtype), tensor->rank, tensor->shape, tensor->strides};
  addresses[index] = reinterpret_cast<uint64_t>(tensor->data);
  return {};
}

Status Frame::bindTensorList(const OpEntry &op, size_t number, size_t &next, std::optional<size_t> &placed) {
  const kpkg_value list = values[number];
  if (list.count < 0 || (list.count && !list.as.tensor))
    return argumentError(op, number, "is a list without tensors");
  if (size_t(list.count) > plan::maxTensorList)
    return argumentError(op, number,
                         "is a list of " + std::to_string(list.count) + " tensors, more than " +
                             std::to_string(plan::maxTensorList));
  plan::Argument &argument = arguments[number];
  argument.kind = plan::Argument::Kind::TensorList;
  argument.first = next;
  argument.count = size_t(list.count);
  next += argument.count;
  values.resize(next);
  arguments.resize(next);
  addresses.resize(next);
  for (size_t i = 0; i < size_t(list.count); ++i) {
    size_t index = arguments[number].first + i;
    values[index].kind = KPKG_TENSOR;
    values[index].as.tensor = list.as.tensor + i;
    if (Status status = bindTensor(op, index, placed); !status)
      return status;
  }
  return {};
}

Status Frame::bind(const OpEntry &op, const kpkg_call &call, const Restriction *allowed) {
  size_t count = op.arguments.size();
  auto useError = [&](std::string what) { return Error{KPKG_ERROR_USE, op.name + ": " + what, op.name, {}, {}}; };
  if (call.argument_count < 0 || size_t(call.argument_count) > count || (call.argument_count && !call.arguments))
    return useError(std::to_string(call.argument_count) + " arguments given, it takes " + std::to_string(count));
  declared = count;
  values.resize(count);
  arguments.resize(count);
  addresses.assign(count, 0);
  singles.resize(count);
  foreign.clear();
  placeOn(defaultDevice);
  stream = call.stream;
  restriction = allowed;
  invariance = invarianceOf(op, allowed);
  std::optional<size_t> placed; ///< the first tensor
  size_t next = count;
  for (size_t i = 0; i < count; ++i) {
    const OpArgument &expected = op.arguments[i];
    kpkg_value &value = values[i];
    bool isGiven = i < size_t(call.argument_count) && call.arguments[i].kind != KPKG_DEFAULT;
    value = isGiven ? call.arguments[i] : expected.defaultValue;
    if (value.kind == KPKG_DEFAULT)
      return argumentError(op, i, "is missing");
    plan::Argument &argument = arguments[i];
    if (value.kind == KPKG_NONE) {
      if (!expected.optional)
        return argumentError(op, i, "is None, expected " + std::string(kindName(expected.kind)));
      argument = {};
      continue;
    }
    adaptKind(value, expected.kind, singles[i]);
    if (value.kind != expected.kind)
      return argumentError(op, i, "is " + std::string(kindName(value.kind)) + ", expected " + kindName(expected.kind));
    switch (value.kind) {
    case KPKG_TENSOR:
      if (Status status = bindTensor(op, i, placed); !status)
        return status;
      break;
    case KPKG_TENSOR_LIST:
      if (Status status = bindTensorList(op, i, next, placed); !status)
        return status;
      break;
    case KPKG_INT:
      argument.kind = plan::Argument::Kind::Int;
      argument.integer = value.as.integer;
      break;
    case KPKG_FLOAT:
      if (expected.optional && std::isnan(value.as.real))
        return argumentError(op, i, "is NaN, expected a number or None");
      argument.kind = plan::Argument::Kind::Float;
      argument.real = value.as.real;
      break;
    case KPKG_BOOLEAN:
      bindFlag(argument, value, expected, allowed, invariance);
      break;
    case KPKG_INT_LIST:
      if (value.count < 0 || (value.count && !value.as.list))
        return argumentError(op, i, "is a list without entries");
      argument.kind = plan::Argument::Kind::List;
      argument.list = {value.as.list, size_t(value.count)};
      break;
    case KPKG_DTYPE:
      if (value.as.integer <= KPKG_NO_DTYPE || value.as.integer >= KPKG_DTYPE_COUNT)
        return argumentError(op, i, "is no dtype that kpkg knows");
      argument.kind = plan::Argument::Kind::DType;
      argument.integer = value.as.integer;
      break;
    default:
      if (!value.as.string)
        return argumentError(op, i, "is a null string");
      if (!*value.as.string && expected.name == "precision")
        value.as.string = precisionOf(call, allowed);
      argument.kind = plan::Argument::Kind::String;
      argument.string = value.as.string;
      break;
    }
  }
  return {};
}

} // namespace kpkg::package
