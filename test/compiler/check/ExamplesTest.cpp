// Checks the examples of docs/diagnostics.md, docs/language.md and pages beside it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Program.h"
#include "compiler/diag/Render.h"
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <sstream>

using namespace kpkg::compiler;

namespace {
const std::filesystem::path root = KPKG_SOURCE_DIR;

struct Checked {
  std::set<std::string> codes;
  std::string text;
};

/// Checks one module as a whole program.
Checked check(const std::string &source) {
  std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "kpkg_example.k";
  std::ofstream(path, std::ios::binary) << source;
  SourceManager sources;
  DiagnosticEngine diags;
  auto program = Program::load({path.string()}, {}, sources, diags);
  if (!diags.hasErrors())
    program->check();
  Checked result;
  for (const Diagnostic &report : diags.diagnostics())
    result.codes.emplace(info(report.message.id).code);
  result.text = renderText(diags, sources);
  std::filesystem::remove(path);
  return result;
}

/// Returns the blocks of a Markdown text that are fenced as `fence`.
std::vector<std::string> blocks(const std::string &page, const std::string &fence) {
  std::vector<std::string> found;
  std::istringstream in(page);
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (inside && line == "```")
      inside = false;
    else if (inside)
      found.back() += line + "\n";
    else if (line == "```" + fence)
      inside = true, found.emplace_back();
  }
  return found;
}

std::string readFile(const std::filesystem::path &path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}
} // namespace

TEST(Defines, SetConstantsOfRootModules) {
  auto codes = [](std::vector<std::pair<std::string, std::string>> defines) {
    SourceManager sources;
    DiagnosticEngine diags;
    ProgramOptions options;
    options.defines = std::move(defines);
    const SourceFile &file = sources.add("m.k", "comptime N = 1\ncomptime T = float32\n"
                                                "comptime assert N + 1 == 8 and T == bfloat16, \"as given\"\n");
    auto program = Program::loadSources({&file}, options, sources, diags);
    program->check();
    std::string all;
    for (const Diagnostic &report : diags.diagnostics())
      all += std::string(info(report.message.id).code) + " ";
    return all;
  };
  EXPECT_EQ(codes({{"N", "7"}, {"T", "bfloat16"}}), "");
  EXPECT_EQ(codes({}), "K0404 ");
  EXPECT_EQ(codes({{"N", "7"}, {"T", "bfloat16"}, {"M", "7"}}), "K0210 ");
}

/// The code after an error is checked too, also if the error leaves a function without a return.
TEST(Errors, ReturnsBehindThem) {
  const std::string head = "comptime NAMES = [\"relu\"]\n\ndef number(name: String, n: Int) raises -> Int:\n";
  const std::string op =
      "    return 0\n\n@register.op(\"a::b\")\ndef b(x: Tensor, name: String) raises -> Tensor:\n    "
      "return empty(number(name, x.shape[0]), dtype=x.dtype)\n";
  for (std::string body : {"    for i in range(n):\n        if name == NAMES[i]:\n            return i\n",
                           "    for i in range(name):\n        return 1\n", "    for i in name:\n        return 1\n"})
    EXPECT_EQ(check(head + body + op).codes.size(), 1u) << body;
}

TEST(Ops, HaveLimits) {
  auto codesOf = [](int arguments, int results) {
    std::string head = "@register.op(\"a::b\")\ndef b(x: Tensor", tail, returned;
    for (int i = 1; i < arguments; ++i)
      head += ", i" + std::to_string(i) + ": Int";
    for (int i = 0; i < results; ++i) {
      tail += i ? ", Tensor" : "Tensor";
      returned += i ? ", x.contiguous()" : "x.contiguous()";
    }
    return check(head + ") -> Tuple[" + tail + "]:\n    return " + returned + "\n").codes;
  };
  EXPECT_TRUE(codesOf(256, 64).empty());
  EXPECT_EQ(codesOf(257, 64), std::set<std::string>{"K0621"});
  EXPECT_EQ(codesOf(256, 65), std::set<std::string>{"K0621"});
}

TEST(Ranges, OfSumsThatUseAValueTwice) {
  std::string text = "@register.op(\"a::b\")\ndef b(x: Tensor, n: Int) raises -> Tensor:\n    var m = n\n";
  for (int i = 0; i < 64; ++i) // each value asks twice for the previous one: 2^64 queries without memoisation
    text += "    m = m + m\n";
  EXPECT_TRUE(check(text + "    if m > 3:\n        raise Error(\"large\")\n    return x.contiguous()\n").codes.empty());
}

TEST(Ops, DoNotCallThemselvesThroughOthers) {
  const std::string head = "@register.op(\"a::b\")\ndef b(x: Tensor) -> Tensor:\n    return c(x)\n\n"
                           "@register.op(\"a::c\")\ndef c(x: Tensor) -> Tensor:\n    return ";
  EXPECT_TRUE(check(head + "x.contiguous()\n").codes.empty());
  EXPECT_EQ(check(head + "b(x)\n").codes, std::set<std::string>{"K0619"});
}

TEST(Arguments, GivenByPositionAreNotGivenByNameAgain) {
  const std::string head =
      "@kernel\n@specialize(T=[float32])\ndef twice[T: DType](x: Tensor[T, 1], mut y: Tensor[T, 1]):\n"
      "    y.tile[64](block_idx.x).store(x.tile[64](block_idx.x).load() * 2.0)\n\ndef sum[N: Int](n: Int) -> Int:\n    "
      "return N + n\n\n"
      "@register.op(\"t::b\")\ndef b(x: Tensor) raises -> Tensor:\n    var y = empty_like(x)\n";
  const std::string end = "    return y\n";
  auto launch = [](std::string text) { return "    launch twice[" + text + ", grid=sum[1](2))\n"; };
  EXPECT_TRUE(check(head + launch("x.dtype](x, y=y") + end).codes.empty());
  for (const std::string &body :
       {launch("x.dtype](x, y, x=y"), launch("x.dtype, T=x.dtype](x, y"), std::string("    var n = sum[1, N=2](3)\n"),
        std::string("    var n = sum[1](3, n=4)\n")})
    EXPECT_EQ(check(head + body + end).codes, std::set<std::string>{"K0128"}) << body;
}

TEST(Catalogue, WrongExamplesGiveTheirCode) {
  for (const KindInfo &kind : allKinds()) {
    // The parser's tests cover its codes.
    if (kind.severity == Severity::Note || kind.code.substr(0, 3) == "K01")
      continue;
    for (const std::string &example : blocks(std::string(explanation(kind.id)), "k wrong")) {
      Checked result = check(example);
      EXPECT_EQ(result.codes, std::set<std::string>{std::string(kind.code)}) << kind.code << "\n" << result.text;
    }
  }
}

TEST(Catalogue, RightExamplesAreRight) {
  for (const KindInfo &kind : allKinds()) {
    if (kind.severity == Severity::Note || kind.code.substr(0, 3) == "K01")
      continue;
    for (const std::string &example : blocks(std::string(explanation(kind.id)), "k")) {
      Checked result = check(example);
      EXPECT_TRUE(result.codes.empty()) << kind.code << "\n" << result.text;
    }
  }
}

/// Every error has an example that provokes it; errors without a readable example have a test elsewhere.
TEST(Catalogue, EachKindIsProvoked) {
  const std::map<DiagnosticId, std::string> exceptions = {
      {DiagnosticId::CannotReadFile, "about the file system: SourceTest"},
      {DiagnosticId::FileTooLarge, "4 MiB: SyntaxTest, Limits.SizeAndTokens"},
      {DiagnosticId::InvalidUtf8, "no text: SyntaxTest, Text.BytesThatAreNotUtf8"},
      {DiagnosticId::TooManyTokens, "250000 tokens: SyntaxTest, Limits.SizeAndTokens"},
      {DiagnosticId::ForeignFile, "about the command line: test/tools/kpkg/mojo-habits.test"},
      {DiagnosticId::UnknownDefine, "about the command line: Defines.SetConstantsOfRootModules"},
      {DiagnosticId::OpTooWide, "257 arguments: Ops.HaveLimits"},
      {DiagnosticId::NestingTooDeep, "100 brackets: SyntaxTest, Limits.DeepNestingIsReportedOnce"},
  };
  for (const KindInfo &kind : allKinds()) {
    if (kind.severity == Severity::Note)
      continue;
    bool hasExample = !blocks(std::string(explanation(kind.id)), "k wrong").empty();
    EXPECT_NE(hasExample, exceptions.contains(kind.id))
        << kind.code << " (" << kind.name
        << ") needs a block \"k wrong\" in docs/diagnostics.md, or a line above, not both";
  }
}

TEST(Pages, ExamplesAreRight) {
  for (const char *page :
       {"docs/language.md", "docs/compiler.md", "docs/mojo.md", "docs/tuning.md", "docs/coming-from.md"}) {
    std::vector<std::string> examples = blocks(readFile(root / page), "k");
    EXPECT_FALSE(examples.empty()) << page;
    for (const std::string &example : examples) {
      Checked result = check(example);
      EXPECT_TRUE(result.codes.empty()) << example << "\n" << result.text;
    }
  }
}

TEST(LanguagePage, ListsTheHints) {
  std::string table = "| hint | meaning |\n|---|---|\n";
  for (const kpkg::tile::HintRecord &record : kpkg::tile::kHints)
    table += "| `" + std::string(record.name) + "=` | " + std::string(record.meaning) + " |\n";
  EXPECT_NE(readFile(root / "docs/language.md").find(table + "\n"), std::string::npos)
      << "docs/language.md needs the table of dialect/tile/schedule/Hints.def:\n"
      << table;
}
