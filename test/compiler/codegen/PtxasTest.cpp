// Tests the PTX side: LLVM dialect to PTX, ptxas and its report, and the cache.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/nvptx/Ptxas.h"
#include "compiler/codegen/nvptx/Ptx.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace kpkg::compiler;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

constexpr const char *Kernel = R"(
gpu.module @kernels {
  llvm.func @copy(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 128>} {
    %thread = nvvm.read.ptx.sreg.tid.x : i32
    %from = llvm.getelementptr %in[%thread] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %value = llvm.load %from : !llvm.ptr<1> -> f32
    llvm.inline_asm has_side_effects asm_dialect = att "barrier.cta.sync.aligned 0;", "" : () -> ()
    %to = llvm.getelementptr %out[%thread] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %value, %to : f32, !llvm.ptr<1>
    llvm.return
  }
})";

class PtxTest : public testing::Test {
protected:
  PtxTest() {
    context.loadDialect<mlir::gpu::GPUDialect, mlir::LLVM::LLVMDialect, mlir::NVVM::NVVMDialect>();
    module = mlir::parseSourceString<mlir::ModuleOp>(Kernel, &context);
    setenv("KPKG_CACHE_DIR", "", 1);
  }
  mlir::Operation *kernels() { return &*module->getBody()->begin(); }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

TEST_F(PtxTest, WritesPtx90ForTheChip) {
  auto ptx = compileToPtx(kernels(), "sm_90a", 3);
  ASSERT_TRUE(bool(ptx)) << llvm::toString(ptx.takeError());
  EXPECT_THAT(*ptx, HasSubstr(".version 9.0"));
  EXPECT_THAT(*ptx, HasSubstr(".target sm_90a"));
  EXPECT_THAT(*ptx, HasSubstr(".visible .entry copy("));
}

TEST_F(PtxTest, SynchronisingAssemblyIsConvergent) {
  auto text = compileToNvptxLlvmText(kernels(), "sm_80", 3);
  ASSERT_TRUE(bool(text)) << llvm::toString(text.takeError());
  size_t call = text->find("barrier.cta.sync.aligned");
  ASSERT_NE(call, std::string::npos);
  // Only the attribute group of the call has the attribute.
  EXPECT_THAT(text->substr(call), HasSubstr("convergent"));
}

TEST_F(PtxTest, PtxasAssemblesAndReports) {
  auto ptxas = Ptxas::find();
  if (!ptxas)
    GTEST_SKIP() << llvm::toString(ptxas.takeError());
  for (const char *chip : {"sm_80", "sm_90a", "sm_120"}) {
    auto ptx = compileToPtx(kernels(), chip, 3);
    ASSERT_TRUE(bool(ptx)) << llvm::toString(ptx.takeError());
    auto cubin = ptxas->assemble(*ptx, chip);
    ASSERT_TRUE(bool(cubin)) << llvm::toString(cubin.takeError());
    const KernelReport *kernel = cubin->report.find("copy");
    ASSERT_TRUE(kernel);
    EXPECT_GT(kernel->registers, 0u);
    EXPECT_EQ(kernel->barriers, 1u);
    EXPECT_THAT(lint(cubin->report), IsEmpty());
    EXPECT_THAT(cubin->bytes, testing::StartsWith("\x7f"
                                                  "ELF"));
  }
}

TEST_F(PtxTest, AChipThatPtxasDoesNotServeIsNamed) {
  auto ptxas = Ptxas::find();
  if (!ptxas)
    GTEST_SKIP() << llvm::toString(ptxas.takeError());
  auto cubin = ptxas->assemble(".version 8.0\n.target sm_70\n.address_size 64\n", "sm_70");
  ASSERT_FALSE(bool(cubin));
  EXPECT_THAT(llvm::toString(cubin.takeError()), HasSubstr("does not know sm_70"));
}

TEST_F(PtxTest, WrongPtxIsAnErrorWithPtxasWords) {
  auto ptxas = Ptxas::find();
  if (!ptxas)
    GTEST_SKIP() << llvm::toString(ptxas.takeError());
  auto cubin = ptxas->assemble(".version 9.0\n.target sm_90a\n.address_size 64\nnonsense", "sm_90a");
  ASSERT_FALSE(bool(cubin));
  EXPECT_THAT(llvm::toString(cubin.takeError()), HasSubstr("Parsing error"));
}

TEST(Ptxas, AProgramThatIsNotPtxasIsRefused) {
  auto ptxas = Ptxas::at("/bin/true");
  ASSERT_FALSE(bool(ptxas));
  EXPECT_THAT(llvm::toString(ptxas.takeError()), HasSubstr("does not answer like ptxas"));
}

TEST(PtxasReport, ReadsEveryKernel) {
  PtxasReport report = parsePtxasReport(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'a' for 'sm_90a'\n"
      "ptxas info    : Function properties for a\n"
      "    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 2 barriers, 16 bytes cumulative stack size, 4096 bytes smem\n"
      "ptxas info    : Compile time = 34.461 ms\n"
      "ptxas info    : Compiling entry function 'b' for 'sm_90a'\n"
      "ptxas info    : Function properties for b\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 40 registers, used 1 barriers\n");
  ASSERT_EQ(report.kernels.size(), 2u);
  const KernelReport *a = report.find("a");
  ASSERT_TRUE(a);
  EXPECT_EQ(a->registers, 255u);
  EXPECT_EQ(a->barriers, 2u);
  EXPECT_EQ(a->stackBytes, 16u);
  EXPECT_EQ(a->spillStores, 12u);
  EXPECT_EQ(a->spillLoads, 8u);
  EXPECT_EQ(a->sharedBytes, 4096u);
  EXPECT_EQ(report.find("b")->registers, 40u);
  EXPECT_EQ(report.find("c"), nullptr);
  EXPECT_THAT(lint(report), ElementsAre(HasSubstr("a spills registers: 12 bytes stored, 8 loaded")));
}

TEST(PtxasReport, EveryWarningIsAFinding) {
  PtxasReport report =
      parsePtxasReport("ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
                       "serialized due to X in function 'a'\n"
                       "ptxas warning : setmaxnreg ignored to maintain minimum register requirements.\n"
                       "ptxas info    : Used 40 registers, used 1 barriers\n");
  EXPECT_THAT(lint(report), ElementsAre(HasSubstr("serialized"), HasSubstr("setmaxnreg ignored")));
}

} // namespace
