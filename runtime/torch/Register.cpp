// Defines a package's ops in PyTorch's dispatcher with boxed kernels. Called by the Python package and kpkg_torch_load.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/torch/Register.h"
#include "runtime/torch/OpSlot.h"
#include "runtime/torch/Schemas.h"

#include <kpkg/limits.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

namespace kpkg::torch_abi {
namespace {

/// An op name that the dispatcher already knows. PyTorch cannot redefine it, but its slot can get another op.
struct Registered {
  std::string schema;
  int slot;
};

std::mutex registrationLock;
std::map<std::string, Registered> registered; // by name and overload: "kpkg::softmax.out"
std::vector<std::unique_ptr<const OpSlot>>
    everySlot; // includes replaced ones, which calls on other threads may still use

/// Returns one library handle per namespace and kind. It is kept forever, because releasing it would remove the ops.
TorchLibraryHandle libraryFor(const std::string &ns, const char *key) {
  static std::map<std::pair<std::string, std::string>, TorchLibraryHandle> handles;
  auto [entry, isNew] = handles.try_emplace({ns, key});
  if (isNew) {
    int32_t failed = *key ? aoti_torch_library_init_impl(ns.c_str(), key, __FILE_NAME__, 0, &entry->second)
                          : aoti_torch_library_init_fragment(ns.c_str(), __FILE_NAME__, 0, &entry->second);
    if (failed)
      entry->second = nullptr;
  }
  return entry->second;
}

kpkg_status fail(const std::string &message) { return kpkg_set_error(KPKG_ERROR_USE, message.c_str()); }

kpkg_status readTypes(const kpkg_op *op, const kpkg_op_info &info, std::vector<ArgumentType> &types) {
  for (int32_t i = 0; i < info.argument_count; ++i) {
    kpkg_argument_info argument = {};
    argument.struct_size = sizeof argument;
    if (kpkg_status status = kpkg_op_argument(op, i, &argument); status != KPKG_OK)
      return status;
    types.push_back({argument.kind, argument.optional != 0});
  }
  return KPKG_OK;
}

/// Registers one form. `schema` is the op's own, or that of its out= form; its name may include the overload.
kpkg_status registerForm(std::unique_ptr<OpSlot> slot, const std::string &ns, const std::string &schema) {
  std::string local = schema.substr(0, schema.find('('));
  std::string key = ns + "::" + local;
  auto known = registered.find(key);
  if (known != registered.end()) {
    if (known->second.schema != schema)
      return fail("op " + key + " is already registered with PyTorch as\n  " + known->second.schema +
                  "\nand cannot become\n  " + schema + "\nin the same process");
    publishSlot(known->second.slot, slot.get());
    everySlot.push_back(std::move(slot));
    return KPKG_OK;
  }
  int index = int(registered.size());
  if (index >= maxSlots)
    return fail("more than " + std::to_string(maxSlots) + " op forms in one process: " + key + " has no slot");
  const std::vector<ArgumentType> &types = slot->types;
  publishSlot(index, slot.get());
  everySlot.push_back(std::move(slot));
  TorchLibraryHandle definitions = libraryFor(ns, "");
  if (!definitions || aoti_torch_library_def(definitions, schema.c_str()) != 0)
    return fail("PyTorch refuses the schema " + ns + "::" + schema);
  auto has = [&](kpkg_kind kind) {
    return std::any_of(types.begin(), types.end(), [=](const ArgumentType &type) { return type.kind == kind; });
  };
  std::vector<const char *> devices;
  if (has(KPKG_TENSOR) || has(KPKG_TENSOR_LIST))
    devices = {"CPU", "CUDA"};
  if (!has(KPKG_TENSOR)) // without one, as in a call with empty lists, the dispatcher cannot select a device
    devices.push_back("CompositeExplicitAutograd");
  for (const char *device : devices) {
    TorchLibraryHandle kernels = libraryFor(ns, device);
    if (!kernels || torch_library_impl(kernels, local.c_str(), boxedFunction(index), version) != 0)
      return fail("PyTorch refuses a " + std::string(device) + " kernel for " + key);
  }
  registered[key] = {schema, index};
  return KPKG_OK;
}

/// Returns the last number of torch.set_num_threads.
int32_t torchThreads() {
  uint32_t count = 1;
  return torch_get_num_threads(&count) == 0 ? int32_t(count) : 1;
}

} // namespace
} // namespace kpkg::torch_abi

using namespace kpkg::torch_abi;

const char *kpkg_torch_schema(const kpkg_op *op, int32_t isOut) {
  static thread_local std::optional<std::string> schema;
  schema = torchSchema(op, isOut != 0);
  return schema ? schema->c_str() : nullptr;
}

kpkg_status kpkg_torch_register(const kpkg_op *op, const char *ns, int32_t isOut, const char *fallback) {
  kpkg_op_info info = {};
  info.struct_size = sizeof info;
  if (kpkg_status status = kpkg_op_describe(op, &info); status != KPKG_OK)
    return status;
  auto slot = std::make_unique<OpSlot>();
  slot->op = op;
  slot->name = info.name;
  slot->fallback = fallback;
  slot->argumentCount = info.argument_count;
  slot->resultCount = info.result_count;
  slot->isOut = isOut != 0;
  if (kpkg_status status = readTypes(op, info, slot->types); status != KPKG_OK)
    return status;
  for (int32_t i = 0; i < info.result_count; ++i) {
    const char *type = nullptr;
    if (kpkg_status status = kpkg_op_result_type(op, i, &type); status != KPKG_OK)
      return status;
    slot->optionalResults.push_back(std::string_view(type).ends_with('?'));
  }
  for (int32_t i = 0; i < info.argument_count; ++i) {
    kpkg_argument_info argument = {};
    argument.struct_size = sizeof argument;
    if (kpkg_op_argument(op, i, &argument) == KPKG_OK && argument.kind == KPKG_STRING &&
        std::string_view(argument.name) == "precision")
      slot->precision = i;
  }
  if (isOut)
    slot->types.insert(slot->types.end(), size_t(info.result_count), {KPKG_TENSOR, false});
  if (slot->types.size() > maxArguments || size_t(info.result_count) > kpkg::maxResults)
    return fail(slot->name + " has more arguments or results than the PyTorch glue can pass");
  std::optional<std::string> schema = torchSchema(op, isOut != 0);
  if (!schema)
    return fail(slot->name + " has no form with out=");
  std::lock_guard<std::mutex> hold(registrationLock);
  kpkg_follow_cpu_threads(torchThreads); // two thread pools, but one number of cores
  return registerForm(std::move(slot), ns, *schema);
}

kpkg_status kpkg_torch_use_fallback(kpkg_registry *registry, const char *op) {
  return kpkg_registry_set_fallback(registry, op, runTorchFallback, nullptr, nullptr);
}

void kpkg_torch_follow_precision(kpkg_torch_precision_fn reader) { setPrecisionReader(reader); }

void kpkg_torch_set_fallback_error(const char *message) { setFallbackError(message); }
