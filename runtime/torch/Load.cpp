// Defines the ops of a package in PyTorch's dispatcher for programs without Python.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/torch/Register.h"

#include <kpkg/torch.h>

#include <set>
#include <string>
#include <string_view>

namespace {

/// Defines an op, whose full name gives the namespace, and its out= form.
kpkg_status define(const kpkg_op *op, std::string_view name) {
  std::string ns(name.substr(0, name.find("::")));
  if (kpkg_status status = kpkg_torch_register(op, ns.c_str(), 0, ""); status != KPKG_OK)
    return status;
  return kpkg_torch_schema(op, 1) ? kpkg_torch_register(op, ns.c_str(), 1, "") : KPKG_OK;
}

/// Defines all ops of a registry but the references.
kpkg_status defineAll(const kpkg_registry *registry) {
  std::set<std::string> references;
  for (bool isFirst : {true, false})
    for (size_t i = 0; i < kpkg_registry_op_count(registry); ++i) {
      const kpkg_op *op = kpkg_registry_op_at(registry, i);
      kpkg_op_info info = {};
      info.struct_size = sizeof info;
      if (kpkg_status status = kpkg_op_describe(op, &info); status != KPKG_OK)
        return status;
      if (isFirst)
        references.insert(info.reference);
      else if (!references.contains(info.name))
        if (kpkg_status status = define(op, info.name); status != KPKG_OK)
          return status;
    }
  return KPKG_OK;
}

} // namespace

kpkg_status kpkg_torch_load(const char *path, const kpkg_open_options *options) {
  kpkg_library *library = nullptr;
  if (kpkg_status status = kpkg_library_open(path, options, &library); status != KPKG_OK)
    return status;
  kpkg_registry *registry = nullptr; // kept for ever: PyTorch cannot forget an op
  kpkg_status status = kpkg_registry_create(&registry);
  if (status == KPKG_OK)
    status = kpkg_registry_add(registry, library);
  kpkg_library_close(library);
  return status == KPKG_OK ? defineAll(registry) : status;
}
