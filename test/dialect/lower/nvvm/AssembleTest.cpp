// Tests that ptxas assembles every kernel of this folder's tests, and the kernels of the CPU tests, without spills.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/nvptx/Ptx.h"
#include "compiler/codegen/nvptx/Ptxas.h"
#include "dialect/kgpu/launch/Candidates.h"
#include "dialect/lower/nvvm/LowerNvvm.h"
#include "dialect/pipeline/GpuPipeline.h"
#include "dialect/pipeline/Registration.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace kpkg;

namespace {

/// Returns the modules of a file, separated by `// -----`, without modules that have expected errors.
std::vector<std::string> modulesOf(llvm::StringRef text) {
  std::vector<std::string> result;
  llvm::SmallVector<llvm::StringRef> pieces;
  text.split(pieces, "// -----\n");
  for (llvm::StringRef piece : pieces)
    if (piece.contains("tile.kernel") && !piece.contains("expected-error"))
      result.push_back(piece.str());
  return result;
}

/// Calls `visit` with every module in the files of a folder.
template <typename Visit> void forEachModule(const char *folder, Visit visit) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  lower::nvvm::registerLoweringDialects(registry);
  std::error_code error;
  for (llvm::sys::fs::directory_iterator file(folder, error), end; file != end && !error; file.increment(error)) {
    if (!llvm::StringRef(file->path()).ends_with(".mlir"))
      continue;
    auto buffer = llvm::MemoryBuffer::getFile(file->path());
    ASSERT_TRUE(bool(buffer));
    for (const std::string &text : modulesOf((*buffer)->getBuffer())) {
      SCOPED_TRACE(file->path());
      mlir::MLIRContext context(registry);
      context.loadAllAvailableDialects();
      auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
      ASSERT_TRUE(bool(module));
      visit(*module);
    }
  }
}

/// Lowers laid-out kernels, assembles them, and returns the report of ptxas.
std::optional<compiler::PtxasReport> assemble(mlir::ModuleOp module, const compiler::Ptxas &ptxas,
                                              llvm::StringRef chip = "sm_90a") {
  if (failed(lower::nvvm::lowerToNvvm(module))) {
    ADD_FAILURE() << "not lowered";
    return std::nullopt;
  }
  auto gpuModule = *module.getOps<mlir::gpu::GPUModuleOp>().begin();
  auto ptx = compiler::compileToPtx(gpuModule, chip, 3);
  if (!ptx) {
    ADD_FAILURE() << llvm::toString(ptx.takeError());
    return std::nullopt;
  }
  auto cubin = ptxas.assemble(*ptx, chip);
  if (!cubin) {
    ADD_FAILURE() << llvm::toString(cubin.takeError());
    return std::nullopt;
  }
  return cubin->report;
}

class Assemble : public testing::Test {
protected:
  void SetUp() override {
    setenv("KPKG_CACHE_DIR", "", 1);
    llvm::Expected<compiler::Ptxas> found = compiler::Ptxas::find();
    if (!found)
      GTEST_SKIP() << llvm::toString(found.takeError());
    ptxas = *found;
  }
  std::optional<compiler::Ptxas> ptxas;
};

TEST_F(Assemble, LaidOutKernels) {
  unsigned kernels = 0;
  forEachModule(KPKG_TEST_FOLDER, [&](mlir::ModuleOp module) {
    if (std::optional<compiler::PtxasReport> report = assemble(module, *ptxas)) {
      EXPECT_THAT(compiler::lint(*report), testing::IsEmpty());
      kernels += report->kernels.size();
    }
  });
  EXPECT_GE(kernels, 8u);
}

TEST_F(Assemble, TensorMapsArePartsOfTheParameters) {
  bool found = false;
  forEachModule(KPKG_TEST_FOLDER, [&](mlir::ModuleOp module) {
    if (!module.lookupSymbol("maps") || found)
      return;
    ASSERT_TRUE(succeeded(lower::nvvm::lowerToNvvm(module)));
    auto ptx = compiler::compileToPtx(*module.getOps<mlir::gpu::GPUModuleOp>().begin(), "sm_90a", 3);
    ASSERT_TRUE(bool(ptx)) << llvm::toString(ptx.takeError());
    EXPECT_THAT(*ptx, testing::HasSubstr(".param .align 64 .b8 maps_param_13[128],\n"));
    EXPECT_THAT(*ptx, testing::HasSubstr(".param .align 64 .b8 maps_param_14[128]\n"));
    found = true;
  });
  EXPECT_TRUE(found);
}

TEST_F(Assemble, KernelsOfTheCpuTests) {
  unsigned kernels = 0;
  forEachModule(KPKG_KERNEL_FOLDER, [&](mlir::ModuleOp module) {
    mlir::PassManager passes(module.getContext());
    buildGpuPipeline(passes, "sm_90a", 0);
    ASSERT_TRUE(succeeded(passes.run(module)));
    if (std::optional<compiler::PtxasReport> report = assemble(module, *ptxas)) {
      // Some tiles exceed the registers, so the first candidate need not be the chosen one.
      kernels += report->kernels.size();
      for (const std::string &line : compiler::lint(*report))
        EXPECT_THAT(line, testing::HasSubstr("spills registers"));
    }
  });
  EXPECT_GE(kernels, 20u);
}

/// Tests that every chip with the instructions gets warp-level products, whose first launch keeps accumulators in
/// registers.
TEST_F(Assemble, ProductsOnEveryChip) {
  for (const kgpu::TargetModel &target : kgpu::allTargets()) {
    SCOPED_TRACE(std::string(target.name));
    unsigned kernels = 0;
    forEachModule(KPKG_PRODUCT_FOLDER, [&](mlir::ModuleOp module) {
      // On chips with a better instruction, the last candidates are still those of mma.sync.
      auto kernel = *module.getOps<tile::KernelOp>().begin();
      auto launches = kgpu::candidates(kernel, target);
      auto ofWarps = llvm::find_if(launches, [](const kgpu::Launch &launch) { return launch.consumers == 0; });
      ASSERT_NE(ofWarps, launches.end());
      mlir::PassManager passes(module.getContext());
      buildGpuPipeline(passes, target.name, ofWarps - launches.begin());
      ASSERT_TRUE(succeeded(passes.run(module)));
      if (std::optional<compiler::PtxasReport> report = assemble(module, *ptxas, target.name)) {
        EXPECT_THAT(compiler::lint(*report), testing::IsEmpty());
        kernels += report->kernels.size();
      }
    });
    EXPECT_GE(kernels, 1u);
  }
}

} // namespace
