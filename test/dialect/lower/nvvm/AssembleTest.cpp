// Every kernel in this folder's tests is lowered and goes through ptxas without a spill.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/nvptx/Ptx.h"
#include "compiler/codegen/nvptx/Ptxas.h"
#include "dialect/lower/nvvm/LowerNvvm.h"
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

/// The modules of a file, which `// -----` separates; those with expected errors are left out.
std::vector<std::string> modulesOf(llvm::StringRef text) {
  std::vector<std::string> result;
  llvm::SmallVector<llvm::StringRef> pieces;
  text.split(pieces, "// -----\n");
  for (llvm::StringRef piece : pieces)
    if (piece.contains("tile.kernel") && !piece.contains("expected-error"))
      result.push_back(piece.str());
  return result;
}

TEST(Assemble, KernelsOfTheTests) {
  setenv("KPKG_CACHE_DIR", "", 1);
  llvm::Expected<compiler::Ptxas> ptxas = compiler::Ptxas::find();
  if (!ptxas)
    GTEST_SKIP() << llvm::toString(ptxas.takeError());
  mlir::DialectRegistry registry;
  registerDialects(registry);
  lower::nvvm::registerLoweringDialects(registry);
  unsigned kernels = 0;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator file(KPKG_TEST_FOLDER, error), end; file != end && !error;
       file.increment(error)) {
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
      ASSERT_TRUE(succeeded(lower::nvvm::lowerToNvvm(*module)));
      auto gpuModule = *module->getOps<mlir::gpu::GPUModuleOp>().begin();
      auto ptx = compiler::compileToPtx(gpuModule, "sm_90a", 3);
      ASSERT_TRUE(bool(ptx)) << llvm::toString(ptx.takeError());
      auto cubin = ptxas->assemble(*ptx, "sm_90a");
      ASSERT_TRUE(bool(cubin)) << llvm::toString(cubin.takeError());
      EXPECT_THAT(compiler::lint(cubin->report), testing::IsEmpty());
      kernels += cubin->report.kernels.size();
    }
  }
  EXPECT_GE(kernels, 8u);
}

} // namespace
