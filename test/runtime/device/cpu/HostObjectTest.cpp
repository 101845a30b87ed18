// Tests loading compiled kernels: valid objects run, and all others are refused with a cause and without a crash.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cpu/HostObject.h"

#include <elf.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

using namespace kpkg;
using cpu::HostObject;
using testing::HasSubstr;

static std::string readObject(const std::string &name) {
  std::ifstream file(std::string(KPKG_TEST_OBJECTS) + "/" + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(HostObject, RunsCodeOfAGoodObject) {
  auto object = HostObject::load(readObject("good.so"), "good");
  ASSERT_TRUE(object) << object.error().message;
  auto kernel = reinterpret_cast<int (*)()>(const_cast<void *>(object->find("kernel")));
  ASSERT_TRUE(kernel);
  EXPECT_EQ(kernel(), 7);
  EXPECT_EQ(object->find("missing"), nullptr);
}

TEST(HostObject, AcceptsWhatLinkersMakeOfIt) {
  for (const char *name : {"good-sysv.so", "good-gnu.so", "good-linked.so"}) {
    auto object = HostObject::load(readObject(name), name);
    ASSERT_TRUE(object) << object.error().message;
    EXPECT_TRUE(object->find("kernel")) << name;
  }
}

TEST(HostObject, RefusesWhatKernelsMayNotHave) {
  const std::pair<const char *, const char *> cases[] = {
      {"undefined.so", "symbol 'missing' is undefined"}, {"variable.so", "it has writable data"},
      {"initialised.so", "it has writable data"},        {"pointer.so", "it has dynamic relocations"},
      {"initialiser.so", "it has code that runs"},       {"thread_local.so", "it has thread-local data"},
      {"needed.so", "it needs another library"},         {"long_name.so", "name is longer than 4096 bytes"},
  };
  for (auto [name, message] : cases) {
    auto object = HostObject::load(readObject(name), name);
    ASSERT_FALSE(object) << name;
    EXPECT_EQ(object.error().status, KPKG_ERROR_FORMAT);
    EXPECT_THAT(object.error().message, HasSubstr("host object '"));
    EXPECT_THAT(object.error().message, HasSubstr(message));
  }
}

TEST(HostObject, RefusesOtherFiles) {
  EXPECT_THAT(HostObject::load("", "x").error().message, HasSubstr("too short"));
  EXPECT_THAT(HostObject::load(std::string(100, 'x'), "x").error().message, HasSubstr("not a 64-bit"));
  std::string image = readObject("good.so");
  std::string other = image;
  other[offsetof(Elf64_Ehdr, e_machine)] = EM_386;
  EXPECT_THAT(HostObject::load(other, "x").error().message, HasSubstr("it is for ELF machine"));
  other = image;
  other[offsetof(Elf64_Ehdr, e_type)] = ET_REL;
  EXPECT_THAT(HostObject::load(other, "x").error().message, HasSubstr("not a shared object"));
}

TEST(HostObject, SurvivesDamage) {
  std::string image = readObject("scale.so");
  for (size_t size = 0; size < image.size(); size += 7)
    (void)HostObject::load(std::string_view(image).substr(0, size), "cut");
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = image;
    for (int flips = 1 + int(random() % 4); flips-- > 0;)
      damaged[random() % 1200] = char(random());
    (void)HostObject::load(damaged, "damaged");
  }
}
