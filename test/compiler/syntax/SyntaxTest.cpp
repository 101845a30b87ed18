// Tests the parser: golden files, the catalogue's examples, limits, and input that is not source text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/ast/Print.h"
#include "compiler/diag/Render.h"
#include "compiler/syntax/Limits.h"
#include "compiler/syntax/Parse.h"
#include "test/compiler/Golden.h"
#include <chrono>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

using namespace kpkg::compiler;

namespace {
const std::filesystem::path root = KPKG_SOURCE_DIR;

std::string readFile(const std::filesystem::path &path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// Returns the codes that parsing a text reports.
std::vector<std::string> codesOf(std::string text) {
  SourceManager sources;
  DiagnosticEngine diags;
  parse(sources.add("t.k", std::move(text)), diags);
  std::vector<std::string> codes;
  for (const Diagnostic &report : diags.diagnostics())
    codes.emplace_back(info(report.message.id).code);
  return codes;
}

std::string errorsOf(std::string text) {
  SourceManager sources;
  DiagnosticEngine diags;
  parse(sources.add("t.k", std::move(text)), diags);
  return renderText(diags, sources);
}

std::string repeat(std::string_view text, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i)
    out += text;
  return out;
}

using Codes = std::vector<std::string>;
} // namespace

class SyntaxGolden : public testing::TestWithParam<test::GoldenFile> {};

TEST_P(SyntaxGolden, Holds) {
  test::checkGolden(GetParam(), [](const SourceFile &file, SourceManager &, DiagnosticEngine &diags) {
    return ast::print(*parse(file, diags));
  });
}

INSTANTIATE_TEST_SUITE_P(Files, SyntaxGolden,
                         testing::ValuesIn(test::goldenFiles(root / "test/compiler/syntax/golden")),
                         [](const auto &param) { return test::goldenName(param.param); });

/// Each section of docs/diagnostics.md about syntax has a block "k wrong" with a mistake that yields only its code. A
/// block "k" shows the corrected source.
TEST(Catalogue, ExamplesOfSyntaxErrorsGiveTheirCode) {
  for (const KindInfo &kind : allKinds()) {
    if (kind.severity == Severity::Note || kind.code.substr(0, 3) != "K01")
      continue;
    std::string_view text = explanation(kind.id);
    auto block = [&](std::string_view fence) {
      size_t begin = text.find(std::string("\n```") + std::string(fence) + "\n");
      if (begin == std::string_view::npos)
        return std::string();
      begin += fence.size() + 5;
      return std::string(text.substr(begin, text.find("\n```", begin) + 1 - begin));
    };
    std::string wrong = block("k wrong"), right = block("k");
    if (!wrong.empty())
      EXPECT_EQ(codesOf(wrong), Codes{std::string(kind.code)}) << kind.code << "\n" << errorsOf(wrong);
    if (!right.empty())
      EXPECT_EQ(codesOf(right), Codes{}) << kind.code << "\n" << errorsOf(right);
    // The tests below provoke the errors that have no readable example.
    bool isLimit = kind.id == DiagnosticId::TooManyTokens || kind.id == DiagnosticId::NestingTooDeep;
    EXPECT_EQ(wrong.empty(), isLimit) << kind.code << " needs an example";
  }
}

TEST(Parser, ReadsTheProjectsKernels) {
  size_t count = 0;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(root / "kernels_src")) {
    if (entry.path().extension() != ".k")
      continue;
    ++count;
    EXPECT_EQ(errorsOf(readFile(entry.path())), "") << entry.path();
  }
  EXPECT_GT(count, 0u);
}

TEST(Parser, ReadsTheExamplesOfTheLanguagePage) {
  std::istringstream page(readFile(root / "docs/language.md"));
  std::string example;
  bool inExample = false;
  size_t count = 0;
  for (std::string line; std::getline(page, line);) {
    if (line == "```" && inExample) {
      EXPECT_EQ(errorsOf(example), "") << example;
      inExample = false;
      ++count;
    } else if (inExample) {
      example += line + "\n";
    } else if (line == "```k") {
      inExample = true;
      example.clear();
    }
  }
  EXPECT_GT(count, 5u);
}

TEST(Parser, SurvivesTheCorpus) {
  for (const auto &entry : std::filesystem::directory_iterator(root / "test/compiler/syntax/corpus")) {
    SourceManager sources;
    DiagnosticEngine diags;
    auto module = parse(sources.add(entry.path().filename().string(), readFile(entry.path())), diags);
    ASSERT_TRUE(module);
    ast::print(*module);
    renderText(diags, sources);
    for (const Diagnostic &report : diags.diagnostics())
      renderJson(report, sources);
  }
}

TEST(Limits, DeepNestingIsReportedOnce) {
  EXPECT_EQ(codesOf("comptime A = " + repeat("(", 100'000)), Codes{"K0118"});
  EXPECT_EQ(codesOf("comptime A = " + repeat("[", limits::brackets + 1) + repeat("]", limits::brackets + 1)),
            Codes{"K0118"});
  EXPECT_EQ(codesOf("comptime A = " + repeat("f(", limits::brackets) + "1" + repeat(")", limits::brackets)), Codes{});
  EXPECT_EQ(codesOf("comptime A = " + repeat("-", 100'000) + "1"), Codes{"K0118"});
  EXPECT_EQ(codesOf("comptime A = " + repeat("not ", 100'000) + "x"), Codes{"K0118"});
  EXPECT_EQ(codesOf("comptime A = " + repeat("2**", 100'000) + "1"), Codes{"K0118"});
  EXPECT_EQ(codesOf("comptime A = " + repeat("1+", 100'000) + "1"), Codes{"K0118"});
  EXPECT_EQ(codesOf("comptime A = " + repeat("a if b else ", 100'000) + "1"), Codes{"K0118"});
  EXPECT_EQ(codesOf("comptime A = a" + repeat(".a", 100'000)), Codes{"K0118"});
  EXPECT_EQ(codesOf("comptime A = a" + repeat("()", 100'000)), Codes{"K0118"});
  std::string blocks;
  for (size_t i = 0; i < 1000; ++i)
    blocks += repeat(" ", i) + "if x:\n";
  EXPECT_EQ(codesOf(blocks), Codes{"K0118"});
}

TEST(Limits, LongFlatSourcesAreFine) {
  EXPECT_EQ(codesOf("comptime A = [" + repeat("-1, ", 50'000) + "]"), Codes{});
  EXPECT_EQ(codesOf("comptime A = [" + repeat("a.b + 1, ", 20'000) + "]"), Codes{});
  EXPECT_EQ(codesOf("def f():\n" + repeat("    x = y + 1\n", 20'000)), Codes{});
  EXPECT_EQ(codesOf("def f():\n    if x: pass\n" + repeat("    elif x: pass\n", 10'000)), Codes{});
}

TEST(Limits, SizeAndTokens) {
  EXPECT_EQ(codesOf(repeat("#", limits::fileBytes + 1)), Codes{"K0002"});
  EXPECT_EQ(codesOf(repeat("1,", limits::tokens)), Codes{"K0107"});
}

TEST(Text, BytesThatAreNotUtf8) {
  for (const char *bad : {"\xff", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80"})
    EXPECT_EQ(codesOf(std::string("# ") + bad + "\n"), Codes{"K0003"});
  EXPECT_EQ(codesOf("# \xf0\x9f\x98\x80 é 日本\n"), Codes{});
}

TEST(Text, PlacesAreBytesAfterOtherCharacters) {
  SourceManager sources;
  DiagnosticEngine diags;
  const SourceFile &file = sources.add("t.k", "\xEF\xBB\xBF\"\"\"日本\"\"\"\ncomptime A = )\n");
  parse(file, diags);
  ASSERT_EQ(diags.diagnostics().size(), 1u);
  EXPECT_EQ(file.slice(diags.diagnostics()[0].message.range), ")");
}

TEST(Text, LineEndsOfAllSystems) {
  for (const char *end : {"\n", "\r\n", "\r"}) {
    std::string text;
    for (const char *line : {"def f():", "    var a = 1", "", "    # comment", "    return a", "comptime B = 2"})
      text += std::string(line) + end;
    EXPECT_EQ(codesOf(text), Codes{}) << errorsOf(text);
  }
  EXPECT_EQ(codesOf("def f(): return 1"), Codes{});
  EXPECT_EQ(codesOf(std::string("def f():\n    \0pass\n", 18)), Codes{"K0101"});
}

/// Guards against prediction creeping into the grammar; this is not a benchmark.
TEST(Timing, ParseThreeHundredLines) {
  std::string text = readFile(root / "kernels_src/softmax/softmax.k");
  while (std::count(text.begin(), text.end(), '\n') < 300)
    text += "\n\n" + readFile(root / "kernels_src/softmax/softmax.k");
  auto best = std::chrono::nanoseconds::max();
  for (int i = 0; i < 5; ++i) {
    auto begin = std::chrono::steady_clock::now();
    codesOf(text);
    best =
        std::min(best, std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin));
  }
  RecordProperty("microseconds", std::to_string(best.count() / 1000));
  EXPECT_LT(best, std::chrono::milliseconds(50)) << "sanitizers and busy machines included";
}
