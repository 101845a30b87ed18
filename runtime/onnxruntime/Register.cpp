// Registers the ops of packages with ONNX Runtime: the entry point of the library of custom ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packages are files and folders of *.kpkg, separated by ':', in the session's entry `kpkg.packages`, else in
// KPKG_PATH.
#include "runtime/onnxruntime/Errors.h"
#include "runtime/onnxruntime/Kernel.h"
#include "runtime/onnxruntime/ShapeInference.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>

namespace kpkg::ort {
namespace {

constexpr const char *packagesEntry = "kpkg.packages";

/// A custom op of ONNX Runtime that calls an op on one kind of device.
struct PackagedOp : CustomOp {
  PackagedOp(const Api &api, const Op &op, int32_t deviceType) : CustomOp(), api(api), op(op), deviceType(deviceType) {
    name = op.name().substr(op.name().find("::") + 2);
    for (const ArgumentInfo &argument : op.arguments())
      if (argument.kind == KPKG_TENSOR)
        inputs.push_back(argument.optional || argument.has_default ? Characteristic::Optional
                                                                   : Characteristic::Required);
    version = apiVersion;
    getName = [](const CustomOp *self) { return of(self).name.c_str(); };
    getProvider = [](const CustomOp *self) {
      return of(self).deviceType == KPKG_DEVICE_CUDA ? "CUDAExecutionProvider" : nullptr;
    };
    getInputTypeCount = [](const CustomOp *self) { return of(self).inputs.size(); };
    getOutputTypeCount = [](const CustomOp *self) { return size_t(of(self).op.info().result_count); };
    getInputType = getOutputType = [](const CustomOp *, size_t) { return ElementType::Undefined; }; // all types
    getInputCharacteristic = [](const CustomOp *self, size_t index) { return of(self).inputs[index]; };
    getOutputCharacteristic = [](const CustomOp *self, size_t) {
      return of(self).op.info().result_count == 1 ? Characteristic::Required : Characteristic::Optional;
    };
    getInputMemoryType = [](const CustomOp *, size_t) { return MemoryType::Default; };
    createKernel = [](const CustomOp *self, const Api *api, const KernelInfo *info, void **kernel) {
      return guarded(*api, [&] { *kernel = new Kernel(of(self).api, of(self).op, of(self).deviceType, info); });
    };
    destroyKernel = [](void *kernel) { delete static_cast<Kernel *>(kernel); };
    compute = [](void *kernel, KernelContext *context) { return static_cast<Kernel *>(kernel)->compute(context); };
    inferShapes = [](const CustomOp *self, ShapeContext *context) {
      return guarded(of(self).api, [&] { ort::inferShapes(of(self).api, of(self).op, context); });
    };
  }

  static const PackagedOp &of(const CustomOp *self) { return *static_cast<const PackagedOp *>(self); }

  const Api &api;
  const Op op;
  int32_t deviceType;
  std::string name;
  std::vector<Characteristic> inputs;
};

/// Returns whether a node can express all calls of the op. Nodes give no lists of tensors, never change their inputs,
/// and have tensors as results.
bool fitsNodes(const Op &op) {
  for (const ArgumentInfo &argument : op.arguments())
    if (argument.kind == KPKG_TENSOR_LIST || argument.mutates)
      return false;
  for (int32_t i = 0; i < op.info().result_count; ++i) {
    const char *type = nullptr;
    if (kpkg_op_result_type(op.get(), i, &type) != KPKG_OK || std::string_view(type).substr(0, 6) != "Tensor")
      return false;
  }
  return op.info().result_count > 0;
}

/// The ops of packages in domains of ONNX Runtime, which are named as the ops' namespaces.
struct Registration {
  Registry registry;
  std::deque<PackagedOp> ops;
  std::map<std::string, Domain *> domains;
};

std::vector<std::string> filesOf(const std::string &path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::is_directory(path, ignored))
    return {path};
  std::vector<std::string> files;
  for (const fs::directory_entry &entry : fs::directory_iterator(path))
    if (entry.path().extension() == ".kpkg")
      files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<Library> openPackages(const std::string &paths) {
  std::vector<Library> packages;
  std::stringstream stream(paths);
  for (std::string path; std::getline(stream, path, ':');)
    for (const std::string &file : path.empty() ? std::vector<std::string>() : filesOf(path)) {
      Result<Library> opened = Library::open(file);
      if (!opened)
        raise(opened.error());
      packages.push_back(*opened);
    }
  return packages;
}

std::string pathsOf(const Api &api, const SessionOptions *options) {
  int isThere = 0;
  check(api, api.hasConfigEntry(options, packagesEntry, &isThere));
  if (!isThere) {
    const char *path = std::getenv("KPKG_PATH");
    if (!path || !*path)
      throw Failure(ErrorCode::InvalidArgument, std::string("no packages: set the session's config entry '") +
                                                    packagesEntry + "', or KPKG_PATH, to files or folders");
    return path;
  }
  size_t size = 0; // with the terminator
  check(api, api.getConfigEntry(options, packagesEntry, nullptr, &size));
  std::string paths(size, '\0');
  check(api, api.getConfigEntry(options, packagesEntry, paths.data(), &size));
  paths.resize(size - 1);
  return paths;
}

Registration *makeRegistration(const Api &api, const std::vector<Library> &packages) {
  auto made = std::make_unique<Registration>();
  for (const Library &package : packages)
    if (kpkg::Status added = made->registry.add(package); !added)
      raise(added.error());
  for (const Op &op : made->registry.ops()) {
    if (!fitsNodes(op))
      continue;
    Domain *&domain = made->domains[op.name().substr(0, op.name().find("::"))];
    if (!domain)
      check(api, api.createCustomOpDomain(op.name().substr(0, op.name().find("::")).c_str(), &domain));
    for (int32_t deviceType : {KPKG_DEVICE_CPU, KPKG_DEVICE_CUDA})
      check(api, api.addToDomain(domain, &made->ops.emplace_back(api, op, deviceType)));
  }
  return made.release(); // for the life of the process: nobody tells when its last session ends
}

/// Returns the registration of these packages. Sessions with the same ones share it.
const Registration &registrationOf(const Api &api, const std::vector<Library> &packages) {
  static std::mutex lock;
  static auto &known = *new std::map<std::vector<std::string>, Registration *>; // by the packages' manifests
  std::vector<std::string> manifests;
  for (const Library &package : packages)
    manifests.push_back(package.manifest());
  std::lock_guard guard(lock);
  Registration *&found = known[manifests];
  if (!found)
    found = makeRegistration(api, packages);
  return *found;
}

} // namespace
} // namespace kpkg::ort

/// Adds the ops of the session's packages to the options of the session.
extern "C" KPKG_API kpkg::ort::OrtStatus *RegisterCustomOps(kpkg::ort::SessionOptions *options,
                                                            const kpkg::ort::ApiBase *base) {
  using namespace kpkg::ort;
  const Api *api = base->getApi(apiVersion);
  if (!api)
    return base->getApi(1)->createStatus(
        ErrorCode::NotImplemented,
        (std::string("kpkg needs ONNX Runtime 1.24 or later, this is ") + base->getVersion()).c_str());
  return guarded(*api, [&] {
    for (const auto &[name, domain] : registrationOf(*api, openPackages(pathsOf(*api, options))).domains)
      check(*api, api->addCustomOpDomain(options, domain));
  });
}
