// Tests objects for every instruction set: they link without missing symbols, and the Arm object runs in an emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/cpu/CpuTarget.h"
#include "test/dialect/lower/cpu/CompiledKernels.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace kpkg;
namespace fs = std::filesystem;

static std::string readFile(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

TEST(Isa, EveryKernelLinksForEveryTarget) {
  for (const lower::cpu::CpuTarget &target : lower::cpu::CpuTarget::all())
    for (const auto &entry : fs::directory_iterator(fs::path(KPKG_TEST_FOLDER) / "kernels")) {
      SCOPED_TRACE(target.isa.str() + " " + entry.path().filename().string());
      if (target.isa != "x86-64-v3") // DifferentialTest runs this one.
        EXPECT_FALSE(test::compileShared(readFile(entry.path()), target.isa.data()).empty());
    }
}

TEST(Isa, UnknownTargetIsAnError) {
  auto target = lower::cpu::CpuTarget::find("z80");
  ASSERT_FALSE(bool(target));
  EXPECT_NE(llvm::toString(target.takeError()).find("x86-64-v3"), std::string::npos);
}

TEST(Isa, ArmCodeRuns) {
  auto present = [](const char *command) {
    return std::system((std::string("command -v ") + command + " >/dev/null").c_str()) == 0;
  };
  if (!present("aarch64-linux-gnu-gcc") || !present("qemu-aarch64-static"))
    GTEST_SKIP() << "no cross compiler or emulator";
  fs::path source = KPKG_TEST_FOLDER;
  std::string bytes = test::compileShared(readFile(source / "isa.mlir"), "aarch64");
  ASSERT_FALSE(bytes.empty());
  fs::path folder = fs::temp_directory_path() / ("kpkg-isa-" + std::to_string(getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "libkernels.so", std::ios::binary) << bytes;
  std::string build = "aarch64-linux-gnu-gcc -O1 -I" KPKG_SOURCE_FOLDER " " + (source / "aarch64_driver.c").string() +
                      " -o " + (folder / "driver").string() + " -L" + folder.string() + " -lkernels -lm -Wl,-rpath," +
                      folder.string();
  EXPECT_EQ(std::system(build.c_str()), 0);
  EXPECT_EQ(std::system(("qemu-aarch64-static -L /usr/aarch64-linux-gnu " + (folder / "driver").string()).c_str()), 0);
  fs::remove_all(folder);
}
