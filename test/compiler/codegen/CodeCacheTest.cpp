// Checks the cache of machine code, and that objects of CPUs come from it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/cache/CodeCache.h"
#include "compiler/codegen/host/HostCode.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

using namespace kpkg::compiler;

namespace {

TEST(CodeCache, KeepsByContentAndIgnoresDamage) {
  llvm::SmallString<128> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("kpkg-cache", folder));
  CodeCache cache{std::string(folder)};
  std::string key = CodeCache::keyOf({"a", "bc"});
  EXPECT_NE(key, CodeCache::keyOf({"ab", "c"}));
  EXPECT_EQ(cache.read(key), std::nullopt);
  cache.write(key, "code");
  EXPECT_EQ(cache.read(key), "code");
  {
    std::error_code error;
    llvm::raw_fd_ostream damage((folder + "/llvmcache-" + key).str(), error, llvm::sys::fs::OF_Append);
    damage << "x";
  }
  EXPECT_EQ(cache.read(key), std::nullopt);
  CodeCache nowhere("");
  nowhere.write(key, "code");
  EXPECT_EQ(nowhere.read(key), std::nullopt);
  llvm::sys::fs::remove_directories(folder);
}

/// Compiles a function that returns `result`. Fails the test on an error.
std::string objectOf(int result, unsigned optLevel) {
  mlir::MLIRContext context;
  context.loadDialect<mlir::LLVM::LLVMDialect>();
  std::string number = std::to_string(result);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      "llvm.func @f() -> i32 { %0 = llvm.mlir.constant(" + number + " : i32) : i32\n llvm.return %0 : i32 }", &context);
  auto target = kpkg::lower::cpu::CpuTarget::find("x86-64-v3");
  auto object = compileToObject(*module, llvm::cantFail(std::move(target)), optLevel);
  if (!object)
    ADD_FAILURE() << llvm::toString(object.takeError());
  return object ? object->bytes : "";
}

std::vector<std::string> entriesOf(llvm::StringRef folder) {
  std::vector<std::string> keys;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (llvm::StringRef name = llvm::sys::path::filename(at->path());
        name.consume_front("llvmcache-") && name.size() == 64)
      keys.push_back(name.str());
  return keys;
}

TEST(CodeCache, KeepsObjectsByModuleAndLevel) {
  llvm::SmallString<128> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("kpkg-cache", folder));
  setenv("KPKG_CACHE_DIR", folder.c_str(), 1);
  std::string first = objectOf(1, 2);
  EXPECT_FALSE(first.empty());
  ASSERT_EQ(entriesOf(folder).size(), 1u);
  EXPECT_EQ(objectOf(1, 2), first);
  EXPECT_EQ(entriesOf(folder).size(), 1u);
  CodeCache(std::string(folder)).write(entriesOf(folder).front(), "from the cache");
  EXPECT_EQ(objectOf(1, 2), "from the cache");
  EXPECT_NE(objectOf(2, 2), "from the cache");
  EXPECT_NE(objectOf(1, 0), "from the cache");
  EXPECT_EQ(entriesOf(folder).size(), 3u);
  setenv("KPKG_CACHE_DIR", "", 1);
  EXPECT_EQ(objectOf(1, 2), first);
  llvm::sys::fs::remove_directories(folder);
}

} // namespace
