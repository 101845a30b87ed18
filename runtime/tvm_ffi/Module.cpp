// Loads packages as modules of tvm-ffi: registers the loader of files that end in .kpkg when this library is loaded.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/tvm_ffi/Call.h"

#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/reflection/registry.h>

#include <string_view>
#include <utility>

namespace ffi = tvm::ffi;

namespace kpkg::tvm_abi {
namespace {

/// A package. Its functions keep it alive.
class Package : public ffi::ModuleObj {
public:
  explicit Package(const std::string &path) {
    auto opened = Library::open(path);
    if (!opened)
      raise(opened.error());
    manifest = kpkg_library_manifest(opened->get());
    if (Status added = ops.add(*opened); !added)
      raise(added.error());
  }

  const char *kind() const final { return "kpkg"; }
  int GetPropertyMask() const final { return ffi::Module::kRunnable; }

  /// Returns the op of this name, in full ("kpkg::softmax") or without its namespace if that is unambiguous. With
  /// ".out" behind it the function takes tensors for its results before the arguments, and returns None.
  ffi::Optional<ffi::Function> GetFunction(const ffi::String &name) final {
    auto [opName, form] = formOf(name);
    auto op = ops.op(opName);
    if (!op)
      return std::nullopt;
    return ffi::Function::FromPacked(
        [op = *op, form = form](ffi::PackedArgs given, ffi::Any *result) { *result = Call(op, given, form).run(); });
  }

  ffi::Optional<ffi::String> GetFunctionDoc(const ffi::String &name) final {
    auto op = ops.op(formOf(name).first);
    if (!op)
      return std::nullopt;
    return ffi::String(op->schema() + (*op->info().doc ? "\n\n" : "") + op->info().doc);
  }

  /// Returns the manifest as JSON.
  ffi::String InspectSource(const ffi::String &) const final { return manifest; }

private:
  static std::pair<std::string, Call::Form> formOf(const ffi::String &name) {
    std::string text = name;
    constexpr std::string_view suffix = ".out";
    if (!text.ends_with(suffix))
      return {text, Call::Returning};
    return {text.substr(0, text.size() - suffix.size()), Call::Writing};
  }

  std::string manifest;
  Registry ops;
};

ffi::Module loadPackage(const ffi::String &path, const ffi::String &) {
  return ffi::Module(ffi::make_object<Package>(path));
}

/// Registers the loader. A second copy of this library in the process leaves that of the first.
void registerLoader() {
  constexpr const char *name = "ffi.Module.load_from_file.kpkg";
  if (!ffi::Function::GetGlobal(name))
    ffi::reflection::GlobalDef().def(name, loadPackage);
}

TVM_FFI_STATIC_INIT_BLOCK() { registerLoader(); }

} // namespace
} // namespace kpkg::tvm_abi
