// Tests the machine code of dots for every CPU target: the innermost loop, and results on an emulated aarch64.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/cpu/CpuTarget.h"
#include "test/dialect/lower/cpu/DotModule.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"
#include <fstream>
#include <gtest/gtest.h>

using namespace mlir;
using namespace kpkg;
using lower::cpu::CpuTarget;

namespace {

/// Returns the lines of the basic block with the most occurrences of `opcode`, up to its last branch.
std::vector<StringRef> hottestBlock(StringRef assembly, StringRef opcode) {
  std::vector<StringRef> best, current;
  size_t bestCount = 0, count = 0;
  auto close = [&] {
    if (count > bestCount)
      best = current, bestCount = count;
    current.clear();
    count = 0;
  };
  SmallVector<StringRef> lines;
  assembly.split(lines, '\n');
  for (StringRef line : lines) {
    StringRef text = line.trim();
    if (text.empty() || text.starts_with("#") || text.starts_with("//") ||
        (text.starts_with(".") && !text.contains(':')))
      continue;
    if (text.contains(':') && !line.starts_with("\t")) {
      close();
      continue;
    }
    current.push_back(text);
    if (text.contains(opcode))
      ++count;
    // A branch ends the block.
    if (text.starts_with("j") || text.starts_with("b.") || text.starts_with("cb"))
      close();
  }
  close();
  return best;
}

size_t countOf(const std::vector<StringRef> &lines, StringRef part) {
  return llvm::count_if(lines, [&](StringRef line) { return line.contains(part); });
}

struct Expectation {
  const char *isa, *opcode, *vectorRegister, *stack;
  int64_t fmas;        ///< In the innermost loop.
  int64_t otherAtMost; ///< Loads, broadcasts and loop control.
};

class DotMachineCode : public ::testing::TestWithParam<Expectation> {};

TEST_P(DotMachineCode, InnermostLoopIsFusedMultiplyAddsWithoutSpills) {
  const Expectation &expected = GetParam();
  CpuTarget target = llvm::cantFail(CpuTarget::find(expected.isa));
  auto context = test::makeContext();
  Type f32 = Float32Type::get(context.get());
  lower::cpu::DotPlan plan = lower::cpu::planDot({240, 256, 256, f32}, target.unit);
  OwningOpRef<ModuleOp> module = test::makeDotModule(context.get(), plan, f32);
  std::string assembly = test::assemblyFor(*module, target.triple, target.cpu, target.features);
  std::vector<StringRef> loop = hottestBlock(assembly, expected.opcode);
  EXPECT_EQ(countOf(loop, expected.opcode), size_t(expected.fmas));
  EXPECT_EQ(countOf(loop, expected.stack), 0u) << "spills in the innermost loop";
  EXPECT_LE(int64_t(loop.size()) - expected.fmas, expected.otherAtMost);
  for (StringRef line : loop)
    if (line.contains(expected.opcode))
      EXPECT_TRUE(line.contains(expected.vectorRegister)) << line.str();
}

INSTANTIATE_TEST_SUITE_P(Targets, DotMachineCode,
                         ::testing::Values(
                             // 6 x 16, 12 x 32 and 8 x 8 register tiles; 8, 8 and 4 steps; per step 8, 14 and 4 loads.
                             Expectation{"x86-64-v3", "vfmadd", "%ymm", "%rsp", 6 * 2 * 8, 8 * 8 + 6},
                             Expectation{"x86-64-v4", "vfmadd", "%zmm", "%rsp", 12 * 2 * 8, 14 * 8 + 6},
                             Expectation{"aarch64", "fmla", ".4s", "[sp", 8 * 2 * 4, 4 * 4 + 6}),
                         [](auto &info) { return llvm::join(llvm::split(StringRef(info.param.isa), '-'), "_"); });

TEST(DotMachineCode, PairsAreMultipliedWithoutSpills) {
  CpuTarget target = llvm::cantFail(CpuTarget::find("x86-64-v4-bf16"));
  auto context = test::makeContext();
  lower::cpu::DotPlan plan =
      lower::cpu::planDot({240, 256, 256, Float32Type::get(context.get()), /*pairs=*/true}, target.unit);
  OwningOpRef<ModuleOp> module = test::makeDotModule(context.get(), plan, BFloat16Type::get(context.get()));
  std::string assembly = test::assemblyFor(*module, target.triple, target.cpu, target.features);
  std::vector<StringRef> loop = hottestBlock(assembly, "vdpbf16ps");
  EXPECT_EQ(countOf(loop, "vdpbf16ps"), 12u * 2 * 8);
  EXPECT_EQ(countOf(loop, "%rsp"), 0u) << "spills in the innermost loop";
  EXPECT_LE(loop.size(), 12u * 2 * 8 + 14 * 8 + 6);
}

TEST(DotMachineCode, TilesAreConfiguredOutsideOfLoopsAndNeverSpilled) {
  CpuTarget target = llvm::cantFail(CpuTarget::find("x86-64-v4-amx"));
  auto context = test::makeContext();
  lower::cpu::DotPlan plan =
      lower::cpu::planDot({256, 256, 256, Float32Type::get(context.get()), /*pairs=*/true}, target.unit);
  OwningOpRef<ModuleOp> module = test::makeDotModule(context.get(), plan, BFloat16Type::get(context.get()));
  std::string assembly = test::assemblyFor(*module, target.triple, target.cpu, target.features);
  std::vector<StringRef> loop = hottestBlock(assembly, "tdpbf16ps");
  EXPECT_EQ(countOf(loop, "tdpbf16ps"), 4u);
  EXPECT_EQ(countOf(loop, "tileloadd"), 4u);
  EXPECT_EQ(countOf(loop, "tilestored") + countOf(loop, "ldtilecfg"), 0u);
  EXPECT_LE(loop.size(), 4u + 4 + 12);
  SmallVector<StringRef> lines;
  StringRef(assembly).split(lines, '\n');
  auto linesWith = [&](StringRef opcode, StringRef part) {
    return llvm::count_if(lines, [&](StringRef line) { return line.contains(opcode) && line.contains(part); });
  };
  // Few rows in place and packed operands have a configuration each, before their loops.
  EXPECT_LE(linesWith("ldtilecfg", ""), 3);
  EXPECT_GE(linesWith("tilerelease", ""), 1);
  EXPECT_EQ(linesWith("tile", "(%rsp"), 0) << "tiles saved on the stack";
}

TEST(DotMachineCode, NothingIsCalled) {
  for (const CpuTarget &target : CpuTarget::all()) {
    auto context = test::makeContext();
    for (Type element : {Type(Float16Type::get(context.get())), Type(BFloat16Type::get(context.get())),
                         Type(Float64Type::get(context.get()))}) {
      Type acc = element.isF64() ? element : Type(Float32Type::get(context.get()));
      lower::cpu::DotPlan plan = lower::cpu::planDot({96, 72, 64, acc}, target.unit);
      OwningOpRef<ModuleOp> module = test::makeDotModule(context.get(), plan, element);
      std::string assembly = test::assemblyFor(*module, target.triple, target.cpu, target.features);
      EXPECT_FALSE(StringRef(assembly).contains("\tcall") || StringRef(assembly).contains("\tbl\t"))
          << target.isa.str();
    }
  }
}

/// Runs `dot_on_target.c` with a dot of this shape, compiled for aarch64, in an emulator.
void runOnAarch64(StringRef element, int64_t m, int64_t n, int64_t k) {
  llvm::ErrorOr<std::string> compiler = llvm::sys::findProgramByName("aarch64-linux-gnu-gcc");
  llvm::ErrorOr<std::string> emulator = llvm::sys::findProgramByName("qemu-aarch64-static");
  if (!compiler || !emulator)
    GTEST_SKIP() << "needs aarch64-linux-gnu-gcc and qemu-aarch64-static";
  CpuTarget target = llvm::cantFail(CpuTarget::find("aarch64"));
  auto context = test::makeContext();
  Type f32 = Float32Type::get(context.get()), f64 = Float64Type::get(context.get());
  Type type = element == "double" ? f64 : element == "float" ? f32 : Type(BFloat16Type::get(context.get()));
  lower::cpu::DotPlan plan = lower::cpu::planDot({m, n, k, type == f64 ? f64 : f32}, target.unit);
  OwningOpRef<ModuleOp> module = test::makeDotModule(context.get(), plan, type);
  SmallString<128> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("kpkg-dot", folder));
  std::string object = (folder + "/dot.o").str(), program = (folder + "/dot").str();
  std::ofstream(object, std::ios::binary) << test::objectFor(*module, target.triple, target.cpu, target.features);
  std::string dm = ("-DM=" + Twine(m)).str(), dn = ("-DN=" + Twine(n)).str(), dk = ("-DK=" + Twine(k)).str();
  std::string ds = ("-DSCRATCH=" + Twine(plan.scratchBytes())).str(), de = ("-DELEMENT_" + element).str();
  std::string source = std::string(KPKG_TEST_FOLDER) + "/dot_on_target.c";
  ASSERT_EQ(llvm::sys::ExecuteAndWait(*compiler,
                                      {*compiler, "-O1", "-static", dm, dn, dk, ds, de, source, object, "-o", program}),
            0);
  EXPECT_EQ(llvm::sys::ExecuteAndWait(*emulator, {*emulator, program}), 0);
  llvm::sys::fs::remove_directories(folder);
}

TEST(DotOnAarch64, F32) { runOnAarch64("float", 21, 19, 37); }
TEST(DotOnAarch64, F64) { runOnAarch64("double", 16, 12, 9); }
TEST(DotOnAarch64, BF16) { runOnAarch64("bf16", 24, 32, 40); }

} // namespace
