// Records CUDA graphs by NVIDIA's driver, which is loaded at run time: the program also runs where there is none.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "graph.h"

#include <cstdlib>
#include <dlfcn.h>
#include <stdexcept>
#include <string>

namespace decoder {

namespace {

/// The driver's functions for graphs. Handles are pointers, and results 0 for success.
struct Driver {
  int (*deviceGet)(int *, int) = nullptr;
  int (*retainContext)(void **, int) = nullptr;
  int (*setContext)(void *) = nullptr;
  int (*beginCapture)(void *, int) = nullptr;
  int (*endCapture)(void *, void **) = nullptr;
  int (*instantiate)(void **, void *, unsigned long long) = nullptr;
  int (*launch)(void *, void *) = nullptr;
  int (*destroy)(void *) = nullptr;
  int (*destroyExecutable)(void *) = nullptr;

  Driver() {
    const char *named = std::getenv("KPKG_CUDA_DRIVER");
    void *library = ::dlopen(named ? named : "libcuda.so.1", RTLD_NOW);
    auto load = [&](auto &function, const char *name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(library ? ::dlsym(library, name) : nullptr);
      if (!function)
        throw std::runtime_error(std::string("NVIDIA's driver has no function ") + name);
    };
    load(deviceGet, "cuDeviceGet");
    load(retainContext, "cuDevicePrimaryCtxRetain");
    load(setContext, "cuCtxSetCurrent");
    load(beginCapture, "cuStreamBeginCapture_v2");
    load(endCapture, "cuStreamEndCapture");
    load(instantiate, "cuGraphInstantiateWithFlags");
    load(launch, "cuGraphLaunch");
    load(destroy, "cuGraphDestroy");
    load(destroyExecutable, "cuGraphExecDestroy");
  }

  /// Makes the context of the stream's device, which libkpkg uses too, that of this thread.
  void enter(int32_t index) const {
    int device = 0;
    void *context = nullptr;
    check(deviceGet(&device, index), "cuDeviceGet");
    check(retainContext(&context, device), "cuDevicePrimaryCtxRetain");
    check(setContext(context), "cuCtxSetCurrent");
  }

  static void check(int code, const char *call) {
    if (code != 0)
      throw std::runtime_error(std::string(call) + " failed with code " + std::to_string(code));
  }
};

const Driver &driver() {
  static const Driver loaded;
  return loaded;
}

} // namespace

Graph::Graph(const kpkg::Stream &stream, const std::function<void()> &work) : stream(stream) {
  constexpr int captureOfThread = 1;
  const Driver &api = driver();
  api.enter(stream.device.index);
  Driver::check(api.beginCapture(stream.handle, captureOfThread), "cuStreamBeginCapture");
  void *graph = nullptr;
  try {
    work();
  } catch (...) {
    api.endCapture(stream.handle, &graph);
    if (graph)
      api.destroy(graph);
    throw;
  }
  Driver::check(api.endCapture(stream.handle, &graph), "cuStreamEndCapture");
  int code = api.instantiate(&executable, graph, 0);
  api.destroy(graph); // the executable does not need it
  Driver::check(code, "cuGraphInstantiate");
}

Graph::~Graph() { driver().destroyExecutable(executable); }

void Graph::replay() const { Driver::check(driver().launch(executable, stream.handle), "cuGraphLaunch"); }

} // namespace decoder
