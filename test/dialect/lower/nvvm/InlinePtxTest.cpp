// Tests which instructions the NVVM dialect of LLVM 22 lacks. A test fails once a later release has the instruction.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of dialect/lower/nvvm/README.md names the test of each function of InlinePtx.h.
#include "compiler/codegen/nvptx/Ptx.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Parser/Parser.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <regex>

using namespace mlir;
using namespace kpkg;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

namespace {

class InlinePtx : public testing::Test {
protected:
  void SetUp() override { context.loadDialect<gpu::GPUDialect, LLVM::LLVMDialect, NVVM::NVVMDialect>(); }

  /// Returns the PTX of a kernel with this body. Values: %global, %shared, %remote (pointers), %mask (i1), %n (i32).
  std::string ptxOf(llvm::StringRef body) {
    std::string text = ("gpu.module @m { llvm.func @k(%global: !llvm.ptr<1>, %shared: !llvm.ptr<3>, %remote: "
                        "!llvm.ptr<7>, %mask: i1, %n: i32) attributes {nvvm.kernel} {\n" +
                        body + "\nllvm.return } }")
                           .str();
    auto module = parseSourceString<ModuleOp>(text, &context);
    if (!module) {
      ADD_FAILURE() << text;
      return {};
    }
    auto ptx = compiler::compileToPtx(*module->getOps<gpu::GPUModuleOp>().begin(), "sm_90a", 2);
    if (!ptx) {
      ADD_FAILURE() << llvm::toString(ptx.takeError());
      return {};
    }
    return *ptx;
  }

  /// Returns the names of a dialect's ops that contain `part`.
  std::vector<std::string> opsWith(llvm::StringRef dialect, llvm::StringRef part) {
    std::vector<std::string> names;
    for (RegisteredOperationName name : context.getRegisteredOperations())
      if (name.getStringRef().starts_with(dialect) && name.getStringRef().contains(part))
        names.push_back(name.getStringRef().str());
    return names;
  }

  template <typename Op> std::vector<std::string> attributes() {
    std::vector<std::string> names;
    for (llvm::StringRef name : Op::getAttributeNames())
      names.push_back(name.str());
    llvm::sort(names);
    return names;
  }

  MLIRContext context;
};

std::vector<std::string> intrinsicsWith(llvm::StringRef part) {
  std::vector<std::string> names;
  for (unsigned id = 1; id < llvm::Intrinsic::num_intrinsics; ++id)
    if (llvm::StringRef name = llvm::Intrinsic::getBaseName(id); name.contains(part))
      names.push_back(name.str());
  return names;
}

/// A load under a mask must be one predicated instruction. LLVM emits branches, one word at a time.
TEST_F(InlinePtx, MaskedLoadsAreBranches) {
  std::string ptx = ptxOf(R"(
    %masks0 = llvm.mlir.poison : vector<4xi1>
    %zero = llvm.mlir.constant(0 : i32) : i32
    %masks1 = llvm.insertelement %mask, %masks0[%zero : i32] : vector<4xi1>
    %masks = llvm.shufflevector %masks1, %masks0 [0, 0, 0, 0] : vector<4xi1>
    %other = llvm.mlir.constant(dense<0> : vector<4xi32>) : vector<4xi32>
    %x = llvm.intr.masked.load %global, %masks, %other {alignment = 16 : i32} : (!llvm.ptr<1>, vector<4xi1>, vector<4xi32>) -> vector<4xi32>
    llvm.store %x, %shared : vector<4xi32>, !llvm.ptr<3>
    llvm.intr.masked.store %other, %global, %masks {alignment = 16 : i32} : vector<4xi32>, vector<4xi1> into !llvm.ptr<1>)");
  EXPECT_THAT(ptx, ContainsRegex("ld\\.global"));
  EXPECT_THAT(ptx, ContainsRegex("st\\.global"));
  EXPECT_THAT(ptx, Not(ContainsRegex("@%p[0-9]+[ \t]+ld\\.global")));
  EXPECT_THAT(ptx, Not(ContainsRegex("@%p[0-9]+[ \t]+st\\.global")));
}

/// A value that is opaque to LLVM, computed in place.
TEST_F(InlinePtx, NoFencesForValues) { EXPECT_THAT(opsWith("llvm.", "fence"), ElementsAre("llvm.fence")); }

/// Words that LLVM must not split: a volatile load is another instruction.
TEST_F(InlinePtx, VolatileLoadsAreOtherInstructions) {
  EXPECT_THAT(ptxOf(R"(
    %x = llvm.load volatile %shared : !llvm.ptr<3> -> i32
    llvm.store %x, %global : i32, !llvm.ptr<1>)"),
              HasSubstr("ld.volatile.shared"));
}

TEST_F(InlinePtx, AsyncCopiesHaveNoPrefetch) {
  EXPECT_THAT(attributes<NVVM::CpAsyncOp>(), ElementsAre("modifier", "size"));
  for (const std::string &name : intrinsicsWith("llvm.nvvm.cp.async.cg.shared.global"))
    EXPECT_THAT(name, Not(HasSubstr("128")));
}

/// The op takes a number of bytes instead of a mask, and LLVM emits a select for each part of the condition.
TEST_F(InlinePtx, AsyncCopiesHaveNoPredicate) {
  EXPECT_TRUE(NVVM::CpAsyncOp::hasTrait<OpTrait::AtLeastNOperands<2>::Impl>());
  EXPECT_FALSE(NVVM::CpAsyncOp::hasTrait<OpTrait::AtLeastNOperands<3>::Impl>());
  EXPECT_THAT(intrinsicsWith("llvm.nvvm.cp.async.ca.shared.global"),
              testing::SizeIs(6)); // Of 4, 8, 16 bytes, or fewer.
}

/// The op takes a predicate, but only for tensor maps.
TEST_F(InlinePtx, PrefetchesHaveNoPredicate) {
  ScopedDiagnosticHandler handler(&context, [](Diagnostic &diagnostic) {
    EXPECT_THAT(diagnostic.str(), HasSubstr("predicate supported only on prefetch tensormap"));
    return success();
  });
  EXPECT_FALSE(parseSourceString<ModuleOp>(
      "llvm.func @f(%p: !llvm.ptr<1>, %mask: i1) { nvvm.prefetch level = L2, %p, predicate = %mask : !llvm.ptr<1>, i1 "
      "llvm.return }",
      &context));
}

/// An arrival under a predicate: LLVM emits a branch.
TEST_F(InlinePtx, ArrivalsHaveNoPredicate) {
  EXPECT_FALSE((NVVM::MBarrierArriveOp::hasTrait<NVVM::BasicPtxBuilderInterface::Trait>()));
  std::string ptx = ptxOf(R"(
    llvm.cond_br %mask, ^arrive, ^rest
  ^arrive:
    nvvm.mbarrier.arrive %shared : !llvm.ptr<3>
    llvm.br ^rest
  ^rest:)");
  EXPECT_THAT(ptx, Not(ContainsRegex("@%p[0-9]+[ \t]+mbarrier")));
}

/// The op that waits for a phase has a time limit in its instruction.
TEST_F(InlinePtx, WaitsHaveTicks) {
  EXPECT_THAT(
      ptxOf("%ticks = llvm.mlir.constant(1000 : i32) : i32\nnvvm.mbarrier.try_wait.parity %shared, %n, %ticks : "
            "!llvm.ptr<3>, i32, i32"),
      ContainsRegex("mbarrier.try_wait.parity.shared.b64 P1, .*, 1000;"));
  EXPECT_TRUE(NVVM::MBarrierTryWaitParityOp::hasTrait<OpTrait::NOperands<3>::Impl>());
}

TEST_F(InlinePtx, NoRemoteStoresThatSignal) {
  EXPECT_THAT(opsWith("nvvm.", "st.async"), IsEmpty());
  EXPECT_THAT(intrinsicsWith("nvvm.st.async"), IsEmpty());
}

/// The conversion of four floats to one register of 8-bit floats exists only with random bits.
TEST_F(InlinePtx, ConversionsMakePairs) {
  EXPECT_THAT(opsWith("nvvm.", "to.f8x4"), ElementsAre("nvvm.convert.f32x4.to.f8x4"));
  EXPECT_TRUE(NVVM::ConvertF32x4ToF8x4Op::hasTrait<OpTrait::NOperands<2>::Impl>());
}

/// Whether a product adds is known only at run time: the first step of a tile does not add.
TEST_F(InlinePtx, ProductsAddOrNotByAttribute) {
  EXPECT_THAT(attributes<NVVM::WgmmaMmaAsyncOp>(), testing::Contains("scaleD"));
}

/// Left operands in registers, and sparse ones.
TEST_F(InlinePtx, ProductsTakeDescriptorsOnly) {
  EXPECT_TRUE(NVVM::WgmmaMmaAsyncOp::hasTrait<OpTrait::NOperands<3>::Impl>());
  EXPECT_THAT(opsWith("nvvm.", "wgmma.mma"), ElementsAre("nvvm.wgmma.mma_async"));
  EXPECT_THAT(intrinsicsWith("nvvm.wgmma.mma"), IsEmpty());
}

/// Uses of accumulators do not stay behind a wait through which the values do not pass.
TEST_F(InlinePtx, WaitsForProductsHaveNoValues) {
  EXPECT_TRUE(NVVM::WgmmaWaitGroupSyncOp::hasTrait<OpTrait::ZeroOperands>());
  EXPECT_TRUE(NVVM::WgmmaWaitGroupSyncOp::hasTrait<OpTrait::ZeroResults>());
}

std::string contentsOf(const llvm::Twine &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  EXPECT_TRUE(bool(buffer)) << path.str();
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

/// Returns every match of an expression's first group.
std::set<std::string> found(const std::string &text, const char *expression) {
  std::set<std::string> all;
  std::regex regex(expression);
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match)
    all.insert((*match)[1]);
  return all;
}

/// The table lists the functions of InlinePtx.h and the tests of this file. No other file has inline assembly.
TEST(InlinePtxTable, IsComplete) {
  std::string folder = KPKG_LOWERING_FOLDER, table = contentsOf(folder + "/README.md");
  table = table.substr(table.find("## What the NVVM dialect"));
  EXPECT_EQ(found(table, "\n\\| `(\\w+)` \\|"),
            found(contentsOf(folder + "/InlinePtx.h"), "\\n[\\w:<> ]+?(\\w+)\\(mlir::Implicit"));
  EXPECT_EQ(found(table, "`InlinePtx\\.([A-Z]\\w+)`"),
            found(contentsOf(KPKG_TEST_FOLDER "/InlinePtxTest.cpp"), "TEST_F\\(InlinePtx, (\\w+)\\)"));
  std::error_code error;
  for (llvm::sys::fs::directory_iterator file(folder, error), end; file != end && !error; file.increment(error))
    if (llvm::StringRef path = file->path(); path.ends_with(".cpp") && !path.ends_with("/InlinePtx.cpp"))
      EXPECT_THAT(contentsOf(path), Not(HasSubstr("InlineAsm"))) << path.str();
}

} // namespace
