// Registers the kgpu dialect and verifies the attributes of kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "dialect/tile/ir/ThreadOps.h"

using namespace mlir;
using namespace kpkg;
using namespace kpkg::kgpu;

#include "dialect/kgpu/ir/KgpuDialect.cpp.inc"
#include "dialect/kgpu/ir/KgpuEnums.cpp.inc"
#include "dialect/kgpu/ir/KgpuInterfaces.cpp.inc"

void KgpuDialect::initialize() {
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "dialect/kgpu/ir/KgpuOps.cpp.inc"
      >();
}

LogicalResult kpkg::kgpu::verifyWindow(tile::KernelOp kernel, tile::ViewType view, WindowAttr window) {
  TypeRange arguments = kernel.getArgumentTypes();
  auto isArgument = [&](int64_t number) { return number >= 0 && number < int64_t(arguments.size()); };
  for (ArrayRef<int64_t> numbers : {window.getCounts(), window.getStrides(), window.getStarts(), window.getSteps()})
    for (int64_t number : numbers)
      if (!isArgument(number) || !arguments[number].isIndex())
        return kernel->emitOpError() << "has a window that counts by argument " << number << ", which is no index";
  for (size_t i = 0; i < window.getTaps().size(); i += 2) {
    auto taps = isArgument(window.getTaps()[i]) ? dyn_cast<tile::ViewType>(arguments[window.getTaps()[i]]) : nullptr;
    if (!taps || window.getTaps()[i + 1] < 0 || window.getTaps()[i + 1] >= taps.getRank())
      return kernel->emitOpError() << "has a window with taps of argument " << window.getTaps()[i]
                                   << ", which has no such dimension";
  }
  if (view.getRank() != int64_t(window.getCounts().size()) + 2 || view.getUnit() != view.getRank() - 1)
    return kernel->emitOpError() << "has a window over " << view << ", which is not of images with "
                                 << window.getCounts().size() << " extents and channels last";
  return success();
}

/// Checks that the map's argument is a view of which the TMA can copy boxes.
static LogicalResult verifyTensorMap(tile::KernelOp kernel, TensorMapAttr map) {
  auto type = map.getArg() < kernel.getNumArguments()
                  ? dyn_cast<tile::ViewType>(kernel.getArgumentTypes()[map.getArg()])
                  : nullptr;
  if (!type)
    return kernel->emitOpError() << "has a tensor map of argument " << map.getArg() << ", which is no view";
  if (type.getRank() != int64_t(map.getBox().size()))
    return kernel->emitOpError() << "has a tensor map with a box of " << map.getBox().size()
                                 << " dimensions for argument " << map.getArg() << " of type " << type;
  if (type.getElementType().isInteger(1))
    return kernel->emitOpError() << "has a tensor map of elements that the TMA does not copy: "
                                 << type.getElementType();
  tile::ViewFacts facts = type.getFacts();
  int64_t bytes = type.getElementBytes();
  if (facts.unit < 0 || facts.align % 16 != 0 || (type.getRank() > 1 && facts.divisible * bytes % 16 != 0))
    return kernel->emitOpError() << "has a tensor map of " << type
                                 << ", of which address and strides are not known to be multiples of 16 bytes";
  if (map.getWindow() && failed(verifyWindow(kernel, type, map.getWindow())))
    return failure();
  int64_t row = map.getBox()[facts.unit] * bytes;
  if (row % 16 != 0)
    return kernel->emitOpError() << "has a tensor map whose boxes have rows of " << row
                                 << " bytes, which is no multiple of 16";
  if (map.getSwizzle() != 0 && row > map.getSwizzle())
    return kernel->emitOpError() << "has a tensor map whose boxes have rows of " << row
                                 << " bytes, which is more than is swizzled: " << map.getSwizzle();
  return success();
}

static LogicalResult verifyTensorMaps(tile::KernelOp kernel, Attribute value) {
  auto maps = dyn_cast<ArrayAttr>(value);
  if (!maps || maps.empty() || !llvm::all_of(maps, llvm::IsaPred<TensorMapAttr>))
    return kernel->emitOpError() << "attribute '" << kTensorMapsAttribute << "' must be an array of #kgpu.tensor_map";
  auto target = kernel->getAttrOfType<TargetAttr>(tile::kTargetAttribute);
  if (target && !target.getModel().hasTma)
    return kernel->emitOpError() << "has tensor maps, of which " << target.getChip() << " knows nothing";
  for (auto map : maps.getAsRange<TensorMapAttr>())
    if (failed(verifyTensorMap(kernel, map)))
      return failure();
  return success();
}

LogicalResult KgpuDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  auto kernel = dyn_cast<tile::KernelOp>(op);
  if (!kernel)
    return op->emitOpError() << "cannot have the attribute '" << name << "' of kernels";
  if (name == tile::kTargetAttribute) {
    if (!isa<TargetAttr>(attribute.getValue()))
      return op->emitOpError() << "attribute '" << name << "' must be a #kgpu.target";
    return success();
  }
  if (name == kLaunchAttribute) {
    if (!isa<LaunchAttr>(attribute.getValue()))
      return op->emitOpError() << "attribute '" << name << "' must be a #kgpu.launch";
    const Launch launch = cast<LaunchAttr>(attribute.getValue()).getLaunch();
    if (launch.threads != 0 && launch.consumers == 0 && !llvm::isPowerOf2_32(launch.threads) &&
        !tile::isOfThreads(kernel))
      return op->emitOpError() << "has a launch that has " << launch.threads
                               << " threads, which is no power of two up to 1024";
    return success();
  }
  if (name == kTensorMapsAttribute)
    return verifyTensorMaps(kernel, attribute.getValue());
  return op->emitOpError() << "unknown attribute '" << name << "'";
}

Launch kpkg::kgpu::getLaunch(tile::KernelOp kernel) {
  auto attribute = kernel->getAttrOfType<LaunchAttr>(kLaunchAttribute);
  return attribute ? attribute.getLaunch() : Launch();
}

void kpkg::kgpu::setLaunch(tile::KernelOp kernel, const Launch &launch) {
  if (launch == Launch())
    kernel->removeAttr(kLaunchAttribute);
  else
    kernel->setAttr(kLaunchAttribute, LaunchAttr::get(kernel.getContext(), launch));
}

const TargetModel &kpkg::kgpu::targetOf(tile::KernelOp kernel) {
  return kernel->getAttrOfType<TargetAttr>(tile::kTargetAttribute).getModel();
}

const kpkg::chips::Heuristics &kpkg::kgpu::heuristicsOf(tile::KernelOp kernel) {
  auto target = kernel->getAttrOfType<TargetAttr>(tile::kTargetAttribute);
  return (target ? target.getModel() : chips::reference).heuristics;
}

SmallVector<TensorMapAttr> kpkg::kgpu::tensorMapsOf(tile::KernelOp kernel) {
  auto maps = kernel->getAttrOfType<ArrayAttr>(kTensorMapsAttribute);
  return maps ? llvm::to_vector(maps.getAsRange<TensorMapAttr>()) : SmallVector<TensorMapAttr>();
}

unsigned kpkg::kgpu::addTensorMap(tile::KernelOp kernel, TensorMapAttr map) {
  auto present = kernel->getAttrOfType<ArrayAttr>(kTensorMapsAttribute);
  SmallVector<Attribute> maps(present ? present.getValue() : ArrayRef<Attribute>());
  unsigned number = llvm::find(maps, map) - maps.begin();
  if (number == maps.size()) {
    maps.push_back(map);
    kernel->setAttr(kTensorMapsAttribute, ArrayAttr::get(kernel.getContext(), maps));
  }
  return number;
}

bool kpkg::kgpu::hasLayout(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa_and_nonnull<LayoutAttr>(tensor.getEncoding());
}

const layout::Layout &kpkg::kgpu::layoutOf(Type tile) {
  return cast<LayoutAttr>(cast<RankedTensorType>(tile).getEncoding()).getLayout();
}

RankedTensorType kpkg::kgpu::withLayout(Type tile, const layout::Layout &layout) {
  auto tensor = cast<RankedTensorType>(tile);
  return RankedTensorType::get(tensor.getShape(), tensor.getElementType(), LayoutAttr::get(tile.getContext(), layout));
}
