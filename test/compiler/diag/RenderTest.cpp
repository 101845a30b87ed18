// Tests the text and JSON forms of diagnostics.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/diag/Render.h"
#include <gtest/gtest.h>

using namespace kpkg::compiler;

namespace {
struct Rendered {
  SourceManager sources;
  DiagnosticEngine diags;
  const SourceFile &file;
  explicit Rendered(std::string text) : file(sources.add("t.k", std::move(text))) {}
  SourceRange find(std::string_view what) const {
    uint32_t at = file.text().find(what);
    return {file.id(), at, at + static_cast<uint32_t>(what.size())};
  }
  std::string text(TextOptions options = {}) const {
    std::string out;
    for (const Diagnostic &report : diags.diagnostics())
      out += renderText(report, sources, options);
    return out;
  }
};
} // namespace

TEST(Render, MarksTheRange) {
  Rendered r("var a = 1\nf(x) = 2\n");
  r.diags.report(diag::InvalidTarget, r.find("f(x)"), "a call");
  EXPECT_EQ(r.text(), "t.k:2:1: error: cannot assign to a call [K0126]\n"
                      "    2 | f(x) = 2\n"
                      "      | ^~~~\n");
}

TEST(Render, TabsAndWideCharactersKeepTheCaretInPlace) {
  Rendered r("\tx\t= 日本 + é\u0301 + bad\n");
  r.diags.report(diag::InvalidTarget, r.find("bad"), "it");
  EXPECT_EQ(r.text(), "t.k:1:16: error: cannot assign to it [K0126]\n"
                      "    1 |     x   = 日本 + é\u0301 + bad\n"
                      "      |                      ^~~\n");
}

TEST(Render, EndOfLineAndEndOfFileHaveACaret) {
  Rendered r("ab\ncd");
  r.diags.report(diag::InvalidTarget, {0, 2, 2}, "x");
  r.diags.report(diag::InvalidTarget, {0, 5, 5}, "y");
  EXPECT_EQ(r.text(), "t.k:1:3: error: cannot assign to x [K0126]\n"
                      "    1 | ab\n"
                      "      |   ^\n"
                      "t.k:2:3: error: cannot assign to y [K0126]\n"
                      "    2 | cd\n"
                      "      |   ^\n");
}

TEST(Render, RangeOverLinesMarksTheFirst) {
  Rendered r("f(a,\n  b)\n");
  r.diags.report(diag::InvalidTarget, {0, 0, 9}, "x");
  EXPECT_EQ(r.text(), "t.k:1:1: error: cannot assign to x [K0126]\n"
                      "    1 | f(a,\n"
                      "      | ^~~~\n");
}

TEST(Render, LongLinesAreCutAroundTheMark) {
  Rendered r(std::string(300, 'a') + "(bad)" + std::string(300, 'b'));
  r.diags.report(diag::InvalidTarget, r.find("bad"), "x");
  std::string text = r.text({.lineWidth = 20});
  EXPECT_EQ(text, "t.k:1:302: error: cannot assign to x [K0126]\n"
                  "    1 | ...aaaaaaaaa(bad)bbbbbb...\n"
                  "      |              ^~~\n");
}

TEST(Render, NothingOfTheSourceReachesTheTerminalUnfiltered) {
  Rendered r("x\x1b[31m\xff\xe2\x80\xae y\n");
  r.diags.report(diag::UnclosedBracket, r.find("y"), "\x1b]0;title\x07");
  EXPECT_EQ(r.text().find('\x1b'), std::string::npos);
  EXPECT_EQ(r.text().find('\xff'), std::string::npos);
  EXPECT_EQ(r.text().find("\xe2\x80\xae"), std::string::npos);
}

TEST(Render, NotesFixesAndInstances) {
  Rendered r("f(\nx\n");
  {
    DiagnosticEngine::InstanceScope scope(r.diags, "softmax_rows[T=float16, COLS=128]", r.find("x"));
    r.diags.report(diag::UnclosedBracket, r.find("("), "(")
        .note(diag::OpenedHere, r.find("f"), "f")
        .fix(r.find("x").atEnd(), ")");
  }
  EXPECT_EQ(r.text(), "t.k:1:2: error: `(` is never closed [K0115]\n"
                      "    1 | f(\n"
                      "      |  ^\n"
                      "      | fix: insert `)`\n"
                      "t.k:2:1: note: in softmax_rows[T=float16, COLS=128]\n"
                      "t.k:1:1: note: `f` is opened here\n"
                      "    1 | f(\n"
                      "      | ^\n");
}

TEST(Render, ColourOnlyWhenAsked) {
  Rendered r("x\n");
  r.diags.report(diag::TabInIndentation, r.find("x"));
  EXPECT_EQ(r.text().find('\x1b'), std::string::npos);
  EXPECT_NE(r.text({.colour = true}).find("\x1b[1;31merror:"), std::string::npos);
}

TEST(Render, SummaryCounts) {
  Rendered r("x\n");
  EXPECT_EQ(renderText(r.diags, r.sources), "");
  r.diags.report(diag::TabInIndentation, r.find("x"));
  EXPECT_TRUE(renderText(r.diags, r.sources).ends_with("\n1 error\n"));
}

TEST(Render, WithoutAPlaceThereIsNoSnippet) {
  SourceManager sources;
  DiagnosticEngine diags;
  diags.report(diag::CannotReadFile, {}, "a.k", "no such file");
  EXPECT_EQ(renderText(diags.diagnostics()[0], sources), "error: cannot read `a.k`: no such file [K0001]\n");
}

TEST(Render, JsonIsOneLine) {
  Rendered r("f(\"a\n");
  r.diags.report(diag::UnclosedBracket, r.find("("), "\"\n")
      .note(diag::OpenedHere, r.find("f"), "f")
      .fix({0, 4, 4}, ")");
  EXPECT_EQ(
      renderJson(r.diags.diagnostics()[0], r.sources),
      R"({"code":"K0115","severity":"error","message":"`\"\n` is never closed","file":"t.k",)"
      R"("range":{"start":{"line":1,"column":2,"offset":1},"end":{"line":1,"column":3,"offset":2}},)"
      R"("fixes":[{"file":"t.k","range":{"start":{"line":1,"column":5,"offset":4},)"
      R"_("end":{"line":1,"column":5,"offset":4}},"replacement":")"}],)_"
      R"("notes":[{"message":"`f` is opened here","file":"t.k","range":{"start":{"line":1,"column":1,"offset":0},)"
      R"("end":{"line":1,"column":2,"offset":1}},"fixes":[]}],"instances":[],"furtherInstances":0})");
}
