// The native module `kpkg._native`: packages, ops and calls on host memory, over the C ABI. Knows nothing of PyTorch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/python/Call.h"
#include "runtime/python/Gil.h"
#include "runtime/python/Precision.h"
#include "runtime/python/Unrecorded.h"
#include "runtime/python/XlaHandler.h"

#include <kpkg/dtype.hpp>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string_view>

namespace nb = nanobind;
using namespace kpkg::python;

namespace {

std::string text(kpkg_string *string) {
  std::string copy(kpkg_string_data(string), kpkg_string_size(string));
  kpkg_string_free(string);
  return copy;
}

kpkg_op_info describe(const kpkg_op *op) {
  kpkg_op_info info = {};
  info.struct_size = sizeof info;
  check(kpkg_op_describe(op, &info));
  return info;
}

nb::object defaultValue(const kpkg_value &value) {
  switch (value.kind) {
  case KPKG_INT:
    return nb::int_(value.as.integer);
  case KPKG_BOOLEAN:
    return nb::bool_(value.as.integer != 0);
  case KPKG_FLOAT:
    return nb::float_(value.as.real);
  case KPKG_DTYPE:
    return nb::str(kpkg_dtype_name(int32_t(value.as.integer)));
  case KPKG_STRING:
    return nb::str(value.as.string);
  case KPKG_INT_LIST: {
    nb::list entries;
    for (int32_t i = 0; i < value.count; ++i)
      entries.append(value.as.list[i]);
    return entries;
  }
  default:
    return nb::none();
  }
}

/// (name, schema type, kind, optional, mutates, has default, default)
nb::list argumentsOf(const OpHandle &op) {
  nb::list all;
  for (int32_t i = 0; i < describe(op.op).argument_count; ++i) {
    kpkg_argument_info info = {};
    info.struct_size = sizeof info;
    check(kpkg_op_argument(op.op, i, &info));
    all.append(nb::make_tuple(info.name, info.type, info.kind, info.optional != 0, info.mutates != 0,
                              info.has_default != 0, defaultValue(info.default_value)));
  }
  return all;
}

nb::list resultTypesOf(const OpHandle &op) {
  nb::list all;
  for (int32_t i = 0; i < describe(op.op).result_count; ++i) {
    const char *type = nullptr;
    check(kpkg_op_result_type(op.op, i, &type));
    all.append(nb::str(type));
  }
  return all;
}

nb::dict statsOf(const OpHandle &op) {
  kpkg_op_stats stats = {};
  stats.struct_size = sizeof stats;
  check(kpkg_op_get_stats(op.op, &stats));
  nb::dict all;
  all["calls"] = stats.calls;
  all["resolutions"] = stats.resolutions;
  all["launches"] = stats.launches;
  all["copies"] = stats.copies;
  all["copied_bytes"] = stats.copied_bytes;
  all["fallbacks"] = stats.fallbacks;
  all["references"] = stats.references;
  all["errors"] = stats.errors;
  return all;
}

/// An open package and a registry that holds it, so that fallbacks and policy are its own.
class Library {
public:
  Library(const std::string &path, const std::optional<std::string> &policy, const std::optional<std::string> &lock) {
    kpkg_library *library = nullptr;
    kpkg_open_options options = {};
    options.struct_size = sizeof options;
    options.policy = policy ? policy->c_str() : nullptr;
    options.lock = lock ? lock->c_str() : nullptr;
    check(kpkg_library_open(path.c_str(), &options, &library));
    handle.reset(library, kpkg_library_close);
    kpkg_registry *created = nullptr;
    check(kpkg_registry_create(&created));
    registry.reset(created, kpkg_registry_destroy);
    check(kpkg_registry_add(created, library));
  }

  std::vector<OpHandle> ops() const {
    std::vector<OpHandle> all;
    for (size_t i = 0; i < kpkg_registry_op_count(registry.get()); ++i)
      all.push_back({kpkg_registry_op_at(registry.get(), i), registry});
    return all;
  }
  std::string manifest() const { return kpkg_library_manifest(handle.get()); }
  nb::bytes section(const std::string &name) const {
    const void *data = nullptr;
    size_t size = 0;
    check(kpkg_library_section(handle.get(), name.c_str(), &data, &size));
    return nb::bytes(data, size);
  }
  void verify() const { check(kpkg_library_verify(handle.get())); }
  void prewarm(int type, int index) const { check(kpkg_library_prewarm(handle.get(), {type, index})); }
  void setPolicy(int policy) const { check(kpkg_registry_set_policy(registry.get(), kpkg_policy(policy))); }
  void setOpPolicy(const std::string &op, int policy) const {
    check(kpkg_registry_set_op_policy(registry.get(), op.c_str(), kpkg_policy(policy)));
  }
  void restrict(const std::string &op, const std::optional<std::string> &json) const {
    check(kpkg_registry_restrict(registry.get(), op.c_str(), json ? json->c_str() : nullptr));
  }
  uintptr_t registryAddress() const { return reinterpret_cast<uintptr_t>(registry.get()); }

private:
  std::shared_ptr<kpkg_library> handle;
  std::shared_ptr<kpkg_registry> registry;
};

/// The Python callable that gets the runtime's messages; kept for ever, since messages may come until the process ends.
nb::object *logReceiver = nullptr;

void forwardLog(void *, kpkg_log_level level, const char *message) {
  if (!Py_IsInitialized())
    return;
  HoldGil hold;
  try {
    (*logReceiver)(int(level), message);
  } catch (nb::python_error &error) {
    error.restore(); // a warning that a filter made an error: it cannot cross the C ABI, so it is shown here
    PyErr_WriteUnraisable(logReceiver->ptr());
  }
}

void setLog(nb::object receiver) {
  logReceiver = new nb::object(std::move(receiver));
  kpkg_set_log(forwardLog, nullptr);
}

/// (name, bits of an element, whether NumPy has it without ml_dtypes) of each dtype, at the index of its number.
nb::list dtypes() {
  nb::list all;
  for (const kpkg::DTypeRecord &record : kpkg::dtypeRecords)
    all.append(nb::make_tuple(nb::str(record.name.data(), record.name.size()), record.bits, record.isInNumpy));
  return all;
}

/// (status name, message, op, instance, argument) of this thread's last failure.
nb::tuple lastError() {
  kpkg_error error = {};
  error.struct_size = sizeof error;
  kpkg_last_error(&error);
  return nb::make_tuple(int(error.status), error.message, error.op, error.instance, error.argument);
}

/// Takes over all names of a copy of this module that the process has already, and returns whether there is one. A
/// kernel repository has such a copy. Types and exceptions of both are then the same.
bool takesOver(nb::module_ &module) {
  nb::handle known = nb::type<OpHandle>();
  if (!known.is_valid())
    return false;
  nb::object other = nb::module_::import_(nb::str(known.attr("__module__")).c_str());
  for (auto [name, value] : nb::cast<nb::dict>(other.attr("__dict__")))
    if (!std::string_view(nb::str(name).c_str()).starts_with("__"))
      nb::setattr(module, name, value);
  return true;
}

} // namespace

NB_MODULE(_native, module) {
  nb::set_leak_warnings(false); // modules hold ops for the life of the process
  if (takesOver(module))
    return;
  defineErrors(module);

  nb::class_<OpHandle>(module, "Op")
      .def_prop_ro("name", [](const OpHandle &op) { return describe(op.op).name; })
      .def_prop_ro("schema", [](const OpHandle &op) { return describe(op.op).schema; })
      .def_prop_ro("doc", [](const OpHandle &op) { return describe(op.op).doc; })
      .def_prop_ro("reference", [](const OpHandle &op) { return describe(op.op).reference; })
      .def_prop_ro("backward", [](const OpHandle &op) { return describe(op.op).backward; })
      .def_prop_ro("torch", [](const OpHandle &op) { return describe(op.op).torch; })
      .def_prop_ro("arguments", argumentsOf)
      .def_prop_ro("result_types", resultTypesOf)
      .def_prop_ro("address", [](const OpHandle &op) { return reinterpret_cast<uintptr_t>(op.op); })
      .def("call", call, nb::arg("values"), nb::arg("outputs").none())
      .def("infer", infer, nb::arg("values"))
      .def("explain", explain, nb::arg("values"), nb::arg("json"))
      .def("resolve", resolve, nb::arg("values"), nb::arg("target"))
      .def(
          "plan_json",
          [](const OpHandle &op, bool shapeOnly, bool onGpu) {
            kpkg_string *json = nullptr;
            check(kpkg_op_plan_json(op.op, (shapeOnly ? KPKG_PLAN_SHAPES : 0) | (onGpu ? KPKG_PLAN_ON_GPU : 0), &json));
            return text(json);
          },
          nb::arg("shape_only"), nb::arg("on_gpu"))
      .def(
          "count_fallback",
          [](const OpHandle &op, const std::string &reason) { check(kpkg_op_count_fallback(op.op, reason.c_str())); },
          nb::arg("reason"))
      .def("stats", statsOf)
      .def("kernel_info", [](const OpHandle &op) {
        kpkg_string *json = nullptr;
        check(kpkg_op_kernel_info(op.op, &json));
        return text(json);
      });

  nb::class_<Library>(module, "Library")
      .def(nb::init<const std::string &, const std::optional<std::string> &, const std::optional<std::string> &>(),
           nb::arg("path"), nb::arg("policy") = nb::none(), nb::arg("lock") = nb::none())
      .def("ops", &Library::ops)
      .def_prop_ro("manifest", &Library::manifest)
      .def("section", &Library::section, nb::arg("name"))
      .def("verify", &Library::verify)
      .def("prewarm", &Library::prewarm, nb::arg("device_type"), nb::arg("device_index"))
      .def("set_policy", &Library::setPolicy, nb::arg("policy"))
      .def("set_op_policy", &Library::setOpPolicy, nb::arg("op"), nb::arg("policy"))
      .def("restrict", &Library::restrict, nb::arg("op"), nb::arg("json").none())
      .def_prop_ro("registry_address", &Library::registryAddress);

  module.def("version", kpkg_version);
  module.def("dtypes", dtypes);
  module.def("cpu_threads", kpkg_cpu_threads);
  module.def("set_cpu_threads", [](int32_t count) { check(kpkg_set_cpu_threads(count)); }, nb::arg("count"));
  module.def("cpu_targets", [] {
    std::vector<std::string> all;
    for (size_t i = 0; kpkg_cpu_target(i); ++i)
      all.push_back(kpkg_cpu_target(i));
    return all;
  });
  module.def(
      "profile_start",
      [](bool ranges, bool events) {
        check(kpkg_profile_start((ranges ? KPKG_PROFILE_RANGES : 0) | (events ? KPKG_PROFILE_EVENTS : 0)));
      },
      nb::arg("ranges"), nb::arg("events"));
  module.def("profile_stop", [] {
    kpkg_string *json = nullptr;
    check(kpkg_profile_stop(&json));
    return text(json);
  });
  definePrecision(module);
  defineUnrecorded(module);
  defineXlaHandlers(module);
  module.def("set_log", setLog, nb::arg("receiver"));
  module.def("last_error", lastError);
}
