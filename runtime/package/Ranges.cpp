// Opens named ranges for NVTX tools through any available NVTX library.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Ranges.h"

#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <vector>

namespace kpkg::package {

namespace {
struct Functions {
  int (*push)(const char *) = nullptr;
  int (*pop)() = nullptr;
  std::string tried;
};
} // namespace

static Functions find() {
  std::vector<std::string> names = {"libnvToolsExt.so.1", "libnvtx3interop.so.1", "libnvtx3interop.so"};
  if (const char *own = std::getenv("KPKG_NVTX"); own && *own)
    names = {own};
  Functions found;
  for (const std::string &name : names) {
    found.tried += (found.tried.empty() ? "" : ", ") + name;
    void *library = ::dlopen(name.c_str(), RTLD_NOW);
    if (!library)
      continue;
    auto push = reinterpret_cast<int (*)(const char *)>(::dlsym(library, "nvtxRangePushA"));
    auto pop = reinterpret_cast<int (*)()>(::dlsym(library, "nvtxRangePop"));
    if (push && pop) {
      found.push = push, found.pop = pop;
      return found;
    }
    ::dlclose(library);
  }
  return found;
}

static const Functions &functions() {
  static const Functions found = find();
  return found;
}

Status openRanges() {
  if (functions().push)
    return {};
  return Error{
      KPKG_ERROR_NOT_FOUND, "no NVTX library is found (" + functions().tried + "); KPKG_NVTX names one", {}, {}, {}};
}

void pushRange(const char *name) { functions().push(name); }
void popRange() { functions().pop(); }

} // namespace kpkg::package
