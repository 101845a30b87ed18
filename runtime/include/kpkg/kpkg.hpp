// The C++ API of the runtime: Library, Op, Registry. It is header-only over the C ABI, so it works with any compiler
// and C++ library.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_KPKG_HPP
#define KPKG_KPKG_HPP

#include <kpkg/limits.hpp>
#include <kpkg/result.hpp>
#include <kpkg/tensor.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kpkg {

/// An argument by its schema name.
using Named = std::pair<std::string, Value>;

/// Counters of an op, since its library was opened.
using Stats = kpkg_op_stats;

/// One argument of an op's schema. Strings are valid as long as the op.
using ArgumentInfo = kpkg_argument_info;

enum class Policy {
  Default = KPKG_POLICY_DEFAULT,
  Strict = KPKG_POLICY_STRICT,
  Warn = KPKG_POLICY_WARN,
  Silent = KPKG_POLICY_SILENT
};

/// Returns a text of the runtime, and frees it.
inline std::string takeString(kpkg_string *string) {
  std::string text(kpkg_string_data(string), kpkg_string_size(string));
  kpkg_string_free(string);
  return text;
}

/// Returns the threads of a large call on the CPU.
inline int cpuThreads() { return kpkg_cpu_threads(); }
/// Sets the threads of later calls, 1 to 1024.
inline Status setCpuThreads(int count) { return Status::from(kpkg_set_cpu_threads(count)); }

/// An op of a library or a registry, which it keeps alive. Cheap to copy; any number of threads may call it.
class Op {
public:
  Op(const kpkg_op *handle, std::shared_ptr<const void> owner) : handle(handle), owner(std::move(owner)) {
    description.struct_size = sizeof description;
    kpkg_op_describe(handle, &description);
    for (int32_t i = 0; i < description.argument_count; ++i) {
      ArgumentInfo info = {};
      info.struct_size = sizeof info;
      kpkg_op_argument(handle, i, &info);
      argumentInfos.push_back(info);
    }
  }

  std::string name() const { return description.name; }
  std::string schema() const { return description.schema; }
  const kpkg_op_info &info() const { return description; }
  const std::vector<ArgumentInfo> &arguments() const { return argumentInfos; }
  const kpkg_op *get() const { return handle; }

  /// Runs the op. `tensors` are the tensor arguments in schema order, `named` the arguments of these names; all others
  /// have their defaults.
  ///
  /// Results are new memory on the arguments' device, in the order of `stream`. If the op returns an argument, the
  /// result is the caller's memory.
  Result<std::vector<Tensor>> call(Stream stream, const std::vector<Tensor> &tensors,
                                   const std::vector<Named> &named = {}) const {
    return run(kpkg_op_call, stream, tensors, nullptr, named);
  }
  /// Runs the op with results in the caller's memory: one entry per result, with the result's shape and dtype.
  Result<std::vector<Tensor>> callInto(Stream stream, const std::vector<Tensor> &tensors,
                                       const std::vector<Tensor> &outputs, const std::vector<Named> &named = {}) const {
    return run(kpkg_op_call, stream, tensors, &outputs, named);
  }
  /// Returns the shapes, dtypes and strides of the results, without data.
  Result<std::vector<Tensor>> infer(const std::vector<Tensor> &tensors, const std::vector<Named> &named = {}) const {
    return run(kpkg_op_infer, {}, tensors, nullptr, named);
  }
  /// Explains how the call is resolved: every instance with the reason why it was chosen or not.
  Result<std::string> explain(const std::vector<Tensor> &tensors, const std::vector<Named> &named = {},
                              kpkg_text_format format = KPKG_TEXT) const {
    Frame frame;
    if (Status status = bind(frame, tensors, named); !status)
      return status.error();
    kpkg_string *text = nullptr;
    if (kpkg_op_explain(handle, &frame.call, format, &text) != KPKG_OK)
      return Error::last();
    return takeString(text);
  }

  Stats stats() const {
    Stats stats = {};
    stats.struct_size = sizeof stats;
    kpkg_op_get_stats(handle, &stats);
    return stats;
  }
  /// JSON: counters, instances that ran, fallbacks by reason.
  std::string kernelInfo() const {
    kpkg_string *text = nullptr;
    return kpkg_op_kernel_info(handle, &text) == KPKG_OK ? takeString(text) : std::string();
  }

private:
  /// The C call and the data to which its pointers refer.
  struct Frame {
    std::vector<kpkg_tensor> descriptors;
    std::vector<kpkg_value> values;
    Stream stream;
    std::vector<std::shared_ptr<void>> allocations;
    std::vector<kpkg_result> results;
    kpkg_call call = {};
  };

  Status bind(Frame &frame, const std::vector<Tensor> &tensors, const std::vector<Named> &named) const {
    bool isNamed = description.schema[0] != 0; // otherwise only a fallback's name is known
    if (!isNamed && !named.empty())
      return useError("no package has it, so '" + named.front().first +
                      "' is no argument that is known; give setFallback its schema, as in \"" + name() +
                      "(Tensor x, float " + named.front().first + "=1.0) -> Tensor\"");
    size_t count = isNamed ? argumentInfos.size() : tensors.size();
    frame.values.resize(count);
    frame.descriptors.resize(count);
    size_t next = 0;
    for (size_t i = 0; i < count && next < tensors.size(); ++i) {
      if (isNamed && argumentInfos[i].kind != KPKG_TENSOR)
        continue;
      frame.descriptors[i] = tensors[next++].descriptor();
      frame.values[i].kind = KPKG_TENSOR;
      frame.values[i].as.tensor = &frame.descriptors[i];
    }
    if (next < tensors.size())
      return useError(std::to_string(tensors.size()) + " tensors given, it takes " + std::to_string(next));
    for (const Named &argument : named) {
      size_t i = 0;
      while (i < count && argument.first != argumentInfos[i].name)
        ++i;
      if (i == count)
        return useError("it has no argument '" + argument.first + "'");
      if (frame.values[i].kind != KPKG_DEFAULT)
        return useError("argument '" + argument.first + "' is given twice");
      frame.values[i] = argument.second.lower(frame.descriptors[i]);
    }
    frame.results.resize(isNamed ? size_t(description.result_count) : maxResults);
    frame.call.struct_size = sizeof frame.call;
    frame.call.arguments = frame.values.data();
    frame.call.argument_count = int32_t(count);
    frame.call.results = frame.results.data();
    frame.call.result_capacity = int32_t(frame.results.size());
    return {};
  }

  static kpkg_status allocate(void *context, const kpkg_allocation *wanted, void **data) {
    Frame &frame = *static_cast<Frame *>(context);
    std::shared_ptr<void> memory;
    if (wanted->device.type == KPKG_DEVICE_CPU) {
      memory = Tensor::allocate(wanted->bytes);
    } else {
      auto made = Tensor::allocate(wanted->bytes, wanted->device, frame.stream);
      if (!made)
        return made.error().status; // this thread's last error
      memory = std::move(*made);
    }
    *data = memory.get();
    frame.allocations.resize(size_t(wanted->index) + 1);
    frame.allocations.back() = std::move(memory);
    return KPKG_OK;
  }

  Result<std::vector<Tensor>> run(kpkg_status (*entry)(const kpkg_op *, kpkg_call *), Stream stream,
                                  const std::vector<Tensor> &tensors, const std::vector<Tensor> *outputs,
                                  const std::vector<Named> &named) const {
    Frame frame;
    if (Status status = bind(frame, tensors, named); !status)
      return status.error();
    std::vector<kpkg_tensor> outputDescriptors;
    std::vector<const kpkg_tensor *> outputPointers;
    if (outputs) {
      if (outputs->size() != frame.results.size())
        return useError(std::to_string(outputs->size()) + " outputs given, it has " +
                        std::to_string(frame.results.size()) + " results")
            .error();
      outputDescriptors.reserve(outputs->size());
      for (const Tensor &output : *outputs) {
        outputDescriptors.push_back(output.descriptor());
        outputPointers.push_back(&outputDescriptors.back());
      }
      frame.call.outputs = outputPointers.data();
    }
    frame.call.stream = stream.handle;
    frame.stream = std::move(stream);
    frame.call.allocate = allocate;
    frame.call.allocate_context = &frame;
    if (entry(handle, &frame.call) != KPKG_OK)
      return Error::last();

    std::vector<Tensor> made;
    bool isNamed = description.schema[0] != 0;
    for (size_t i = 0; i < frame.results.size(); ++i) {
      const kpkg_result &result = frame.results[i];
      if (!isNamed && result.kind == KPKG_DEFAULT)
        break; // the number of results that the fallback has filled
      std::shared_ptr<void> keeper;
      if (result.source == KPKG_FROM_ALLOCATION && size_t(result.index) < frame.allocations.size())
        keeper = frame.allocations[size_t(result.index)];
      else if (result.source == KPKG_FROM_OUTPUT)
        keeper = (*outputs)[i].owner();
      else if (result.source == KPKG_FROM_ARGUMENT)
        keeper = ownerOfArgument(size_t(result.index), tensors, named);
      made.emplace_back(
          result.data, DType(result.dtype), std::vector<int64_t>(result.shape, result.shape + result.rank),
          std::vector<int64_t>(result.strides, result.strides + result.rank), result.device, std::move(keeper));
    }
    return made;
  }

  std::shared_ptr<void> ownerOfArgument(size_t index, const std::vector<Tensor> &tensors,
                                        const std::vector<Named> &named) const {
    for (const Named &argument : named)
      if (argument.first == argumentInfos[index].name)
        return argument.second.asTensor().owner();
    size_t position = 0;
    for (size_t i = 0; i < index; ++i)
      position += argumentInfos[i].kind == KPKG_TENSOR;
    return position < tensors.size() ? tensors[position].owner() : nullptr;
  }

  Status useError(const std::string &what) const {
    return Error{KPKG_ERROR_USE, "cannot call " + name() + ": " + what, name(), {}, {}};
  }

  const kpkg_op *handle;
  std::shared_ptr<const void> owner;
  kpkg_op_info description = {};
  std::vector<ArgumentInfo> argumentInfos;
};

/// The trust policy for a package; see kpkg_trust.
struct OpenOptions {
  kpkg_trust trust = KPKG_TRUST_DEFAULT;
  std::vector<std::string> keys;
  /// Replaces both, in the format of KPKG_TRUST: "any", "digest" or "signed-by:<key>,<key>".
  std::string policy;
  /// A lock file in addition to that of KPKG_LOCK.
  std::string lock;
};

/// An open package. Copies share it.
class Library {
public:
  static Result<Library> open(const std::string &path, const OpenOptions &options = {}) {
    return make(options, [&](const kpkg_open_options *lowered, kpkg_library **library) {
      return kpkg_library_open(path.c_str(), lowered, library);
    });
  }
  /// Opens a package in memory that outlives the library.
  static Result<Library> openMemory(std::string_view bytes, const std::string &name, const OpenOptions &options = {}) {
    return make(options, [&](const kpkg_open_options *lowered, kpkg_library **library) {
      return kpkg_library_open_memory(bytes.data(), bytes.size(), name.c_str(), lowered, library);
    });
  }

  Result<Op> op(const std::string &name) const {
    const kpkg_op *found = nullptr;
    if (kpkg_library_op(handle.get(), name.c_str(), &found) != KPKG_OK)
      return Error::last();
    return Op(found, handle);
  }
  std::vector<Op> ops() const {
    std::vector<Op> all;
    for (size_t i = 0; i < kpkg_library_op_count(handle.get()); ++i)
      all.emplace_back(kpkg_library_op_at(handle.get(), i), handle);
    return all;
  }
  std::string manifest() const { return kpkg_library_manifest(handle.get()); }
  Result<std::string_view> section(const std::string &name) const {
    const void *data = nullptr;
    size_t size = 0;
    if (kpkg_library_section(handle.get(), name.c_str(), &data, &size) != KPKG_OK)
      return Error::last();
    return std::string_view(static_cast<const char *>(data), size);
  }
  Status verify() const { return Status::from(kpkg_library_verify(handle.get())); }
  /// Loads everything that calls on this device can need, so that later calls load nothing.
  Status prewarm(kpkg_device device = Cpu) const { return Status::from(kpkg_library_prewarm(handle.get(), device)); }
  const kpkg_library *get() const { return handle.get(); }

private:
  explicit Library(kpkg_library *library) : handle(library, kpkg_library_close) {}
  template <typename Open> static Result<Library> make(const OpenOptions &options, Open open) {
    std::vector<const char *> keys;
    for (const std::string &key : options.keys)
      keys.push_back(key.c_str());
    auto orNull = [](const std::string &text) { return text.empty() ? nullptr : text.c_str(); };
    kpkg_open_options lowered = {sizeof lowered, options.trust,          keys.data(),
                                 keys.size(),    orNull(options.policy), orNull(options.lock)};
    kpkg_library *library = nullptr;
    if (open(&lowered, &library) != KPKG_OK)
      return Error::last();
    return Library(library);
  }

  std::shared_ptr<kpkg_library> handle;
};

/// Restricts which instances an op may use. Only alternatives remain whose parameters have one of the listed values,
/// written as in instance names ("128", "True", "bfloat16"). A single value pins the parameter.
struct KernelConfig {
  using Values = std::vector<std::pair<std::string, std::vector<std::string>>>;
  /// For every kernel that has the parameters.
  Values params;
  /// For the kernels of these names.
  std::vector<std::pair<std::string, Values>> kernels;

  /// Replaces an empty argument `precision`: "highest", "high" or "medium". "" leaves it to the caller.
  std::string precision = {};

  /// What calls must be: "deterministic", "batch_invariant", "exact".
  std::vector<std::string> require = {};

  /// Returns the format of kpkg_registry_restrict.
  std::string json() const {
    std::string text = "{\"params\":" + object(params) + ",\"kernels\":{";
    for (size_t i = 0; i < kernels.size(); ++i)
      text += (i ? "," : "") + quoted(kernels[i].first) + ":" + object(kernels[i].second);
    text += "}" + (precision.empty() ? "" : ",\"precision\":" + quoted(precision));
    return text + (require.empty() ? "" : ",\"require\":" + list(require)) + "}";
  }

private:
  static std::string quoted(const std::string &text) {
    std::string result = "\"";
    for (char c : text)
      result += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
    return result + "\"";
  }
  static std::string list(const std::vector<std::string> &texts) {
    std::string text = "[";
    for (size_t i = 0; i < texts.size(); ++i)
      text += (i ? "," : "") + quoted(texts[i]);
    return text + "]";
  }
  static std::string object(const Values &values) {
    std::string text = "{";
    for (size_t i = 0; i < values.size(); ++i)
      text += (i ? "," : "") + quoted(values[i].first) + ":" + list(values[i].second);
    return text + "}";
  }
};

/// Libraries and fallbacks by op name. Copies share it.
class Registry {
public:
  /// Fills call.results like the op; returns KPKG_OK or the result of kpkg_set_error.
  using Fallback = std::function<kpkg_status(const kpkg_op *op, kpkg_call &call)>;

  Registry() {
    kpkg_registry *created = nullptr;
    Status::from(kpkg_registry_create(&created)).value();
    handle = std::shared_ptr<kpkg_registry>(created, kpkg_registry_destroy);
  }
  /// Adds a library. Libraries added earlier are tried first.
  Status add(const Library &library) { return Status::from(kpkg_registry_add(handle.get(), library.get())); }
  /// Adds files and folders, ':'-separated.
  Status addPath(const std::string &path) { return Status::from(kpkg_registry_add_path(handle.get(), path.c_str())); }
  /// Sets the function that runs if no instance of the op can, subject to the policy. Without it the packaged reference
  /// runs.
  ///
  /// `op` is a name or a schema: "kpkg::gemm(Tensor a, Tensor b, float alpha=1.0) -> Tensor". Use a schema if a package
  /// may be added later or never.
  Status setFallback(const std::string &op, Fallback fallback) {
    auto *copy = new Fallback(std::move(fallback));
    auto run = [](void *context, const kpkg_op *op, kpkg_call *call) {
      return (*static_cast<Fallback *>(context))(op, *call);
    };
    auto destroy = [](void *context) { delete static_cast<Fallback *>(context); };
    Status status = Status::from(kpkg_registry_set_fallback(handle.get(), op.c_str(), run, copy, destroy));
    if (!status)
      delete copy;
    return status;
  }
  /// Sets the policy of one op, which overrides the registry's.
  Status setPolicy(const std::string &op, Policy policy) {
    return Status::from(kpkg_registry_set_op_policy(handle.get(), op.c_str(), kpkg_policy(policy)));
  }
  /// Restricts which instances calls of the op may use, in the format of kpkg_registry_restrict; "" allows all again.
  Status restrict(const std::string &op, const std::string &json) {
    return Status::from(kpkg_registry_restrict(handle.get(), op.c_str(), json.empty() ? nullptr : json.c_str()));
  }
  /// Restricts instances by a struct.
  Status restrict(const std::string &op, const KernelConfig &config) { return restrict(op, config.json()); }
  Status setPolicy(Policy policy) { return Status::from(kpkg_registry_set_policy(handle.get(), kpkg_policy(policy))); }
  Result<Op> op(const std::string &name) const {
    const kpkg_op *found = nullptr;
    if (kpkg_registry_op(handle.get(), name.c_str(), &found) != KPKG_OK)
      return Error::last();
    return Op(found, handle);
  }
  std::vector<Op> ops() const {
    std::vector<Op> all;
    for (size_t i = 0; i < kpkg_registry_op_count(handle.get()); ++i)
      all.emplace_back(kpkg_registry_op_at(handle.get(), i), handle);
    return all;
  }

private:
  std::shared_ptr<kpkg_registry> handle;
};

} // namespace kpkg
#endif
