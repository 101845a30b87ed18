// Tests the diagnostic engine and the list of kinds.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/diag/Diagnostics.h"
#include <gtest/gtest.h>

using namespace kpkg::compiler;

TEST(Diagnostics, KeepsMessageNotesAndFixes) {
  DiagnosticEngine diags;
  diags.report(diag::UnclosedBracket, {0, 4, 5}, "(").note(diag::OpenedHere, {0, 1, 2}, "(").fix({0, 9, 9}, ")");
  ASSERT_EQ(diags.diagnostics().size(), 1u);
  const Diagnostic &report = diags.diagnostics()[0];
  EXPECT_EQ(report.message.text, "`(` is never closed");
  EXPECT_EQ(info(report.message.id).code, "K0115");
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(report.notes[0].text, "`(` is opened here");
  ASSERT_EQ(report.message.fixes.size(), 1u);
  EXPECT_EQ(report.message.fixes[0].replacement, ")");
  EXPECT_TRUE(diags.hasErrors());
}

TEST(Diagnostics, SameReportInSeveralInstancesIsKeptOnce) {
  DiagnosticEngine diags;
  for (const char *type : {"float32", "float16", "bfloat16"}) {
    DiagnosticEngine::InstanceScope scope(diags, fmt::format("softmax_rows[T={}]", type), {0, 0, 1});
    diags.report(diag::InvalidTarget, {0, 4, 5}, "a call");
  }
  diags.report(diag::InvalidTarget, {0, 4, 5}, "a call");
  ASSERT_EQ(diags.diagnostics().size(), 1u);
  EXPECT_EQ(diags.errorCount(), 1u);
  EXPECT_EQ(diags.diagnostics()[0].furtherInstances, 2u);
  ASSERT_EQ(diags.diagnostics()[0].instances.size(), 1u);
  EXPECT_EQ(diags.diagnostics()[0].instances[0].description, "softmax_rows[T=float32]");
}

TEST(Diagnostics, OtherTextsOfOtherInstancesAreCounted) {
  DiagnosticEngine diags;
  for (const char *kernel : {"softmax_rows[T=float32]", "softmax_rows[T=float16]", "other_rows[T=float32]"}) {
    DiagnosticEngine::InstanceScope scope(diags, kernel, {0, 0, 1});
    DiagnosticEngine::InstanceScope inlined(diags, "in a function", {0, 0, 1});
    diags.report(diag::InvalidTarget, {0, 4, 5}, kernel);
  }
  {
    DiagnosticEngine::InstanceScope scope(diags, "other_rows[T=float32]", {0, 0, 1});
    diags.report(diag::InvalidTarget, {0, 4, 5}, "a call of the same instance");
  }
  ASSERT_EQ(diags.diagnostics().size(), 3u);
  EXPECT_EQ(diags.diagnostics()[0].furtherInstances, 1u);
  EXPECT_EQ(diags.diagnostics()[1].message.text, "cannot assign to other_rows[T=float32]");
  EXPECT_EQ(diags.diagnostics()[2].furtherInstances, 0u);
}

TEST(Diagnostics, CountsBeyondTheLimit) {
  DiagnosticEngine diags(3);
  for (uint32_t i = 0; i < 10; ++i)
    diags.report(diag::TabInIndentation, {0, i, i});
  EXPECT_EQ(diags.diagnostics().size(), 3u);
  EXPECT_EQ(diags.errorCount(), 10u);
  EXPECT_EQ(diags.droppedCount(), 7u);
}

TEST(Diagnostics, SortsByPlaceAndKeepsOrderOfEqualPlaces) {
  DiagnosticEngine diags;
  diags.report(diag::TabInIndentation, {0, 50, 51});
  diags.report(diag::InvalidTarget, {0, 20, 21}, "second");
  diags.report(diag::InvalidTarget, {0, 10, 11}, "first");
  diags.report(diag::InvalidTarget, {0, 20, 22}, "third");
  diags.sortByPlace(1);
  std::string order;
  for (const Diagnostic &report : diags.diagnostics())
    order += report.message.text + "; ";
  EXPECT_EQ(order, "line is indented with a tab; use spaces; cannot assign to first; cannot assign to second; "
                   "cannot assign to third; ");
}

TEST(Kinds, AreFoundByCode) {
  ASSERT_TRUE(findKind("K0115"));
  EXPECT_EQ(findKind("K0115")->name, "UnclosedBracket");
  EXPECT_EQ(findKind("k115"), findKind("K0115"));
  EXPECT_EQ(findKind("115"), findKind("K0115"));
  for (const char *unknown : {"", "K", "K9999", "0", "K0", "Kabc", "K01150000", "115x"})
    EXPECT_FALSE(findKind(unknown)) << unknown;
}

TEST(Kinds, TextFollowsTheStyle) {
  for (const KindInfo &kind : allKinds()) {
    char first = kind.text.front();
    EXPECT_FALSE(first >= 'A' && first <= 'Z') << kind.name << ": starts with a small letter";
    EXPECT_FALSE(kind.text.ends_with(".")) << kind.name << ": no period at the end";
    for (const char *word : {"allowed", "illegal", "legal", "please", "sorry"})
      EXPECT_EQ(kind.text.find(word), std::string_view::npos) << kind.name << " says '" << word << "'";
    EXPECT_EQ(kind.code.empty(), kind.severity == Severity::Note) << kind.name;
  }
}

TEST(Kinds, EachIsExplained) {
  for (const KindInfo &kind : allKinds()) {
    if (kind.severity != Severity::Note)
      EXPECT_FALSE(explanation(kind.id).empty())
          << kind.code << " (" << kind.name << ") needs a section in docs/diagnostics.md";
  }
}
