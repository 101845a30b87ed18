// Captures streams into graphs, and replays these.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cuda/Graph.h"
#include "runtime/device/cuda/Api.h"

namespace kpkg::cuda {

static constexpr int captureOfThread = 1;

namespace {
class CapturedGraph : public device::Graph {
public:
  explicit CapturedGraph(void *executable) : executable(executable) {}
  ~CapturedGraph() override { loadedApi().graphExecDestroy(executable); }
  Status replay(device::Stream stream) override {
    return check(loadedApi().graphLaunch(executable, stream), "cuGraphLaunch");
  }

private:
  void *executable;
};
} // namespace

Status beginCapture(Stream stream) {
  return check(loadedApi().captureBegin(stream, captureOfThread), "cuStreamBeginCapture");
}

Result<std::unique_ptr<device::Graph>> endCapture(Stream stream) {
  const Api &api = loadedApi();
  void *graph = nullptr, *executable = nullptr;
  if (Status status = check(api.captureEnd(stream, &graph), "cuStreamEndCapture"); !status)
    return status.error();
  Status status = check(api.graphInstantiate(&executable, graph, 0), "cuGraphInstantiate");
  api.graphDestroy(graph); // the executable graph does not need it
  if (!status)
    return status.error();
  return std::unique_ptr<device::Graph>(std::make_unique<CapturedGraph>(executable));
}

} // namespace kpkg::cuda
