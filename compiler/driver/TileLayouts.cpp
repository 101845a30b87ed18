// Lays out one instance, and reads the layouts when the pass that assigns them is done.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/TileLayouts.h"
#include "compiler/driver/Guard.h"
#include "compiler/driver/IrMessages.h"
#include "compiler/driver/Simplify.h"
#include "dialect/kgpu/ir/Remarks.h"
#include "dialect/kgpu/launch/Candidates.h"
#include "dialect/pipeline/GpuPipeline.h"
#include "dialect/pipeline/Registration.h"
#include "dialect/tile/transforms/Variants.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include <set>

namespace kpkg::compiler {

namespace {

/// Reads the layouts of all tiles of a kernel. Later passes move values to shared memory, or erase them.
class LayoutReader final : public mlir::PassInstrumentation {
public:
  explicit LayoutReader(KernelLayouts &found) : found(found) {}

  void runAfterPass(mlir::Pass *pass, mlir::Operation *kernel) override {
    if (pass->getArgument() != "kgpu-assign-layouts")
      return;
    kernel->walk<mlir::WalkOrder::PreOrder>([&](mlir::Operation *op) {
      for (mlir::Value result : op->getResults())
        add(result);
    });
  }

private:
  KernelLayouts &found;
  std::set<std::tuple<std::string, unsigned, unsigned, std::string>> known;

  static std::string textOf(mlir::RankedTensorType type) {
    std::string text = "Tile[" + kgpu::dtypeName(type.getElementType());
    for (int64_t extent : type.getShape())
      text += ", " + std::to_string(extent);
    return text + "]";
  }

  void add(mlir::Value value) {
    auto type = dyn_cast<mlir::RankedTensorType>(value.getType());
    if (!type || !type.getEncoding())
      return;
    value.getLoc()->walk([&](mlir::Location location) {
      if (auto variable = dyn_cast<mlir::FusedLoc>(location))
        if (auto of = dyn_cast_or_null<mlir::TypeAttr>(variable.getMetadata()); of && !hasShapeOf(type, of.getValue()))
          return mlir::WalkResult::skip(); // a pass made it from the variable's value
      if (auto place = dyn_cast<mlir::FileLineColLoc>(location))
        add(type, place);
      return mlir::WalkResult::advance();
    });
  }

  static bool hasShapeOf(mlir::RankedTensorType type, mlir::Type variable) {
    auto tile = dyn_cast<mlir::RankedTensorType>(variable);
    return tile && tile.getShape() == type.getShape();
  }

  void add(mlir::RankedTensorType type, mlir::FileLineColLoc place) {
    const layout::Layout &layout = kgpu::layoutOf(type);
    unsigned bits = layout.registers() * type.getElementTypeBitWidth();
    std::string path = place.getFilename().str(), text = layout.str();
    if (known.insert({path, place.getLine(), place.getColumn(), text}).second)
      found.tiles.push_back({std::move(path), place.getLine(), place.getColumn(), textOf(type), std::move(text),
                             layout.registers(), (bits + 31) / 32});
  }
};

/// Returns the variants of an instance, the fastest first.
mlir::OwningOpRef<mlir::ModuleOp> variantsOf(const Program &program, const SourceManager &sources, InstanceRef instance,
                                             mlir::MLIRContext &context) {
  auto module = simplified(generateKernels(program, sources, {instance}, context));
  if (module)
    tile::makeVariants(*module, tile::VariantKind::Gpu);
  return module;
}

} // namespace

std::optional<KernelLayouts> layOut(const Program &program, const SourceManager &sources, InstanceRef instance,
                                    llvm::StringRef chip) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  IrMessages messages(context); // what cannot be laid out is an error of builds
  auto module = variantsOf(program, sources, instance, context);
  if (!module)
    return std::nullopt;
  const kgpu::TargetModel &target = *kgpu::findTarget(chip);
  tile::KernelOp kernel = *module->getOps<tile::KernelOp>().begin();
  mlir::OwningOpRef<mlir::ModuleOp> laidOut = mlir::ModuleOp::create(kernel.getLoc());
  tile::KernelOp copy = kernel.clone();
  kgpu::setLaunch(copy, kgpu::candidates(kernel, target).front());
  laidOut->push_back(copy);
  KernelLayouts found;
  mlir::PassManager passes(&context);
  tracePasses(passes);
  passes.addInstrumentation(std::make_unique<LayoutReader>(found));
  buildGpuPipeline(passes, chip);
  if (failed(passes.run(*laidOut)))
    return std::nullopt;
  tile::KernelOp code = *laidOut->getOps<tile::KernelOp>().begin();
  kgpu::Launch launch = kgpu::getLaunch(code);
  found.threads = launch.threads;
  unsigned resident = std::max(1u, target.residentCtas(launch.threads, 0, launch.shared));
  llvm::append_range(found.dropped, kgpu::droppedHints(kernel, target, {launch, kgpu::hasRings(code), resident}));
  return found;
}

} // namespace kpkg::compiler
