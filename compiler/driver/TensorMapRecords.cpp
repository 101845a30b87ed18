// Describes the tensor maps of a GPU kernel for the manifest.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/TensorMapRecords.h"
#include "dialect/kgpu/ir/KgpuDialect.h"

using namespace llvm;

namespace kpkg::compiler {

static std::optional<manifest::Window> windowRecord(kgpu::WindowAttr window) {
  if (!window)
    return std::nullopt;
  auto numbers = [](ArrayRef<int64_t> list) { return std::vector<int32_t>(list.begin(), list.end()); };
  manifest::Window record{numbers(window.getCounts()), numbers(window.getStrides()), numbers(window.getStarts()),
                          numbers(window.getSteps())};
  for (size_t i = 0; i < window.getTaps().size(); i += 2)
    record.taps.push_back({int32_t(window.getTaps()[i]), int32_t(window.getTaps()[i + 1])});
  return record;
}

std::vector<manifest::TensorMap> tensorMapRecords(tile::KernelOp laidOut) {
  std::vector<manifest::TensorMap> records;
  for (kgpu::TensorMapAttr map : kgpu::tensorMapsOf(laidOut)) {
    auto view = mlir::cast<tile::ViewType>(laidOut.getArgumentTypes()[map.getArg()]);
    records.push_back({.arg = int32_t(map.getArg()),
                       .box = {map.getBox().begin(), map.getBox().end()},
                       .swizzle = map.getSwizzle(),
                       .unit = int32_t(view.getUnit()),
                       .window = windowRecord(map.getWindow())});
  }
  laidOut.walk([&](kgpu::TensorLoadOp load) {
    manifest::TensorMap &map = records[load.getMap()];
    ++map.copies;
    map.sharedBy = load.getMulticast() ? kgpu::getLaunch(laidOut).cluster : 1;
  });
  return records;
}

} // namespace kpkg::compiler
