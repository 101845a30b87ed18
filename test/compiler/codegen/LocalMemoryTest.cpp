// Tests which lines of the source use local memory: cubins written here, damaged ones, and those of ptxas.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/nvptx/LocalMemory.h"
#include "compiler/codegen/nvptx/Ptxas.h"
#include "llvm/BinaryFormat/ELF.h"
#include <cstdlib>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace kpkg::compiler;
using namespace llvm::ELF;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

using Content = LocalMemory::Content;

constexpr unsigned STL = 0x387, LDL = 0x983, FADD = 0x221;

/// An instruction of 16 bytes with the size field of 4, 8 or 16 bytes.
std::string instruction(unsigned opcode, unsigned bytes = 4) {
  uint64_t words[2] = {0xabc000ull << 12 | opcode, uint64_t(bytes == 4 ? 4 : bytes == 8 ? 5 : 6) << 9};
  return std::string(reinterpret_cast<const char *>(words), sizeof(words));
}

std::string number(uint64_t value, size_t bytes) { return std::string(reinterpret_cast<const char *>(&value), bytes); }

/// A line table of version 2 for the file /home/rows.k, with a row for each instruction.
std::string lineTable(const std::vector<unsigned> &lines, unsigned lineRange = 14) {
  std::string prologue = "\x01\x01\xfb"; // bytes of an instruction, default_is_stmt, line_base -5
  prologue += char(lineRange);
  prologue += "\x0a";
  prologue += std::string("\0\1\1\1\1\0\0\0\1", 9);
  prologue += std::string("/home\0\0rows.k\0\1\0\0\0", 18);
  std::string program = std::string("\0\x09\2", 3) + number(0, 8); // the address 0
  unsigned current = 1;
  for (unsigned line : lines) {
    program += '\3'; // advance_line, by a number of two bytes
    int step = int(line) - int(current);
    program += char((step & 0x7f) | 0x80);
    program += char((step >> 7) & 0x7f);
    program += std::string("\1\2\x10", 3); // copy, advance_pc by 16
    current = line;
  }
  program += std::string("\0\1\1", 3); // the end
  std::string rest = number(2, 2) + number(prologue.size(), 4) + prologue + program;
  return number(rest.size(), 4) + rest;
}

using Sections = std::vector<std::pair<std::string, std::string>>;

/// An ELF file for CUDA with these sections.
std::string cubin(const Sections &sections, unsigned machine = EM_CUDA) {
  std::string names("\0", 1), contents;
  std::vector<Elf64_Shdr> headers(1);
  std::memset(headers.data(), 0, sizeof(Elf64_Shdr));
  auto add = [&](const std::string &name, const std::string &bytes, unsigned type) {
    Elf64_Shdr header;
    std::memset(&header, 0, sizeof(header));
    header.sh_name = uint32_t(names.size());
    header.sh_type = type;
    header.sh_offset = sizeof(Elf64_Ehdr) + contents.size();
    header.sh_size = bytes.size();
    contents += bytes;
    headers.push_back(header);
  };
  for (const auto &[name, bytes] : sections) {
    add(name, bytes, SHT_PROGBITS);
    names += name + '\0';
  }
  std::string all = names + ".shstrtab" + '\0';
  add(".shstrtab", all, SHT_STRTAB);
  contents.resize((contents.size() + 7) / 8 * 8);
  Elf64_Ehdr header;
  std::memset(&header, 0, sizeof(header));
  std::memcpy(header.e_ident, ElfMagic, 4);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_machine = uint16_t(machine);
  header.e_shoff = sizeof(Elf64_Ehdr) + contents.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = uint16_t(headers.size());
  header.e_shstrndx = uint16_t(headers.size() - 1);
  return std::string(reinterpret_cast<const char *>(&header), sizeof(header)) + contents +
         std::string(reinterpret_cast<const char *>(headers.data()), headers.size() * sizeof(Elf64_Shdr));
}

KernelReport reportOf(unsigned stores, unsigned loads) {
  KernelReport report;
  report.symbol = "k";
  report.stackBytes = 32;
  report.spillStores = stores;
  report.spillLoads = loads;
  return report;
}

const std::string code = instruction(STL) + instruction(FADD) + instruction(STL, 16) + instruction(LDL, 8) +
                         instruction(LDL) + instruction(FADD);
const std::vector<unsigned> lines = {12, 12, 300, 300, 12, 7};
const std::string good = cubin({{".text.k", code}, {".debug_line", lineTable(lines)}});

std::string whyNot(const std::string &bytes, KernelReport report = reportOf(20, 12)) {
  auto memory = readLocalMemory(bytes, report);
  return memory ? "" : llvm::toString(memory.takeError());
}

TEST(LocalMemory, SumsInstructionsByLine) {
  auto memory = readLocalMemory(good, reportOf(20, 12));
  ASSERT_TRUE(bool(memory)) << llvm::toString(memory.takeError());
  EXPECT_EQ(memory->content, Content::Spills);
  EXPECT_THAT(memory->accesses, ElementsAre(LocalAccess{"rows.k:300", 16, 8}, LocalAccess{"rows.k:12", 4, 4}));
  EXPECT_EQ(memory->describe(), "rows.k:300 (16 bytes stored, 8 loaded), rows.k:12 (4 bytes stored, 4 loaded)");
}

TEST(LocalMemory, ArraysAreNotCalledSpills) {
  auto arrays = readLocalMemory(good, reportOf(0, 0));
  ASSERT_TRUE(bool(arrays)) << llvm::toString(arrays.takeError());
  EXPECT_EQ(arrays->content, Content::Arrays);
  EXPECT_THAT(arrays->describe(), testing::StartsWith("arrays in local memory, rows.k:300"));
  auto both = readLocalMemory(good, reportOf(4, 4));
  ASSERT_TRUE(bool(both)) << llvm::toString(both.takeError());
  EXPECT_EQ(both->content, Content::Both);
  EXPECT_THAT(both->describe(), HasSubstr("does not tell apart"));
}

TEST(LocalMemory, CodeWithoutALineIsCounted) {
  auto memory = readLocalMemory(cubin({{".text.k", code}, {".debug_line", lineTable({0, 0})}}), reportOf(20, 12));
  ASSERT_TRUE(bool(memory)) << llvm::toString(memory.takeError());
  EXPECT_EQ(memory->describe(), "code without a line (20 bytes stored, 12 loaded)");
}

TEST(LocalMemory, ManyLinesAreCut) {
  std::string stores;
  std::vector<unsigned> each;
  for (unsigned line = 1; line <= 11; ++line) {
    stores += instruction(STL);
    each.push_back(line);
  }
  auto memory = readLocalMemory(cubin({{".text.k", stores}, {".debug_line", lineTable(each)}}), reportOf(44, 0));
  ASSERT_TRUE(bool(memory)) << llvm::toString(memory.takeError());
  EXPECT_THAT(memory->describe(), testing::EndsWith("(4 bytes stored, 0 loaded), and 3 other lines"));
}

TEST(LocalMemory, SaysWhyLinesCannotBeTold) {
  std::string table = lineTable(lines);
  EXPECT_THAT(whyNot("nonsense"), HasSubstr("invalid buffer"));
  EXPECT_THAT(whyNot(cubin({{".text.k", code}}, EM_X86_64)), HasSubstr("no machine code for CUDA"));
  EXPECT_THAT(whyNot(cubin({{".text.k", code}})), HasSubstr("no line table"));
  EXPECT_THAT(whyNot(cubin({{".text.other", code}, {".debug_line", table}})), HasSubstr("no code of k"));
  EXPECT_THAT(whyNot(cubin({{".text.k", code}, {".text.l", code}, {".debug_line", table}})), HasSubstr("several"));
  EXPECT_THAT(whyNot(cubin({{".text.k", code + "x"}, {".debug_line", table}})), HasSubstr("whole instructions"));
  EXPECT_THAT(whyNot(cubin({{".text.k", code}, {".debug_line", table.substr(0, 20)}})), HasSubstr("damaged"));
  EXPECT_THAT(whyNot(good, reportOf(24, 12)),
              HasSubstr("store 20 bytes and load 12 were found, and ptxas counts 24 and 12"));
}

TEST(LocalMemory, DamagedCubinsAreReadWithinTheirBounds) {
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_NE(whyNot(good.substr(0, size)), "") << "cut to " << size;
  for (size_t at = 0; at < good.size(); ++at)
    for (char change : {'\x01', '\x7f', '\xff'}) {
      std::string damaged = good;
      damaged[at] ^= change;
      whyNot(damaged);
    }
  whyNot(cubin({{".text.k", code}, {".debug_line", lineTable(lines, /*lineRange=*/0)}}));
}

/// A kernel with an array that is indexed at run time.
constexpr const char *ArrayPtx = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
	.local .align 4 .b8 array[64];
	.reg .b32 %r<6>;
	.reg .b64 %rd<6>;
	.loc	1 5 0
	ld.param.u64 %rd1, [out];
	mov.u32 %r1, %tid.x;
	and.b32 %r2, %r1, 15;
	mul.wide.u32 %rd2, %r2, 4;
	mov.u64 %rd3, array;
	add.s64 %rd4, %rd3, %rd2;
	.loc	1 8 0
	st.local.u32 [array], %r1;
	st.local.u32 [array+12], %r1;
	.loc	1 9 0
	ld.local.u32 %r3, [%rd4];
	st.global.u32 [%rd1], %r3;
	ret;
}
	.file	1 "array.k", 1, 1
)";

TEST(LocalMemory, ReadsWhatPtxasWrites) {
  auto ptxas = Ptxas::find();
  if (!ptxas)
    GTEST_SKIP() << llvm::toString(ptxas.takeError());
  setenv("KPKG_CACHE_DIR", "", 1);
  for (const char *chip : {"sm_80", "sm_90a", "sm_100a", "sm_120"}) {
    auto made = ptxas->assemble(ArrayPtx, chip);
    ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
    ASSERT_TRUE(made->report.find("k"));
    auto memory = readLocalMemory(made->bytes, *made->report.find("k"));
    ASSERT_TRUE(bool(memory)) << llvm::toString(memory.takeError());
    EXPECT_EQ(memory->content, Content::Arrays);
    EXPECT_THAT(memory->accesses, ElementsAre(LocalAccess{"array.k:8", 8, 0}, LocalAccess{"array.k:9", 0, 4})) << chip;
  }
}

} // namespace
