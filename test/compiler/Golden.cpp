// Runs golden tests.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/Golden.h"
#include "compiler/diag/Render.h"
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

using namespace kpkg::compiler;
using namespace kpkg::compiler::test;

namespace {
struct Part {
  std::string header; // the "# --- name" line, empty for the first part
  std::string source;
  std::string expected;
};

std::vector<Part> split(std::istream &in) {
  std::vector<Part> parts(1);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("# --- ")) {
      // The name line stays in the source, so that line numbers match the part's own text.
      parts.push_back({line, "", ""});
      continue;
    }
    if (line.starts_with("#|"))
      parts.back().expected += (line.size() > 3 ? line.substr(3) : "") + "\n";
    else
      parts.back().source += line + "\n";
  }
  for (Part &part : parts)
    while (part.source.ends_with("\n\n"))
      part.source.pop_back();
  return parts;
}

std::string commented(const std::string &text) {
  std::string out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    out += line.empty() ? "#|\n" : "#| " + line + "\n";
  return out;
}
} // namespace

std::vector<GoldenFile> kpkg::compiler::test::goldenFiles(const std::filesystem::path &folder) {
  std::vector<GoldenFile> files;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".k")
      files.push_back({entry.path()});
  std::sort(files.begin(), files.end(), [](const GoldenFile &a, const GoldenFile &b) { return a.path < b.path; });
  return files;
}

std::string kpkg::compiler::test::goldenName(const GoldenFile &file) {
  std::string name = file.path.stem().string();
  std::replace_if(name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

void kpkg::compiler::test::checkGolden(
    const GoldenFile &file,
    const std::function<std::string(const SourceFile &, SourceManager &, DiagnosticEngine &)> &stage) {
  std::ifstream in(file.path, std::ios::binary);
  ASSERT_TRUE(in) << file.path;
  std::vector<Part> parts = split(in);
  bool update = std::getenv("KPKG_UPDATE_GOLDEN") != nullptr;
  std::string rewritten;
  bool anyError = false;
  for (const Part &part : parts) {
    SourceManager sources;
    DiagnosticEngine diags;
    const SourceFile &source = sources.add(file.path.filename().string(), part.source);
    std::string actual = stage(source, sources, diags);
    actual += renderText(diags, sources);
    anyError |= diags.hasErrors();
    if (!update)
      EXPECT_EQ(actual, part.expected) << file.path.filename() << " " << part.header
                                       << "\nto accept the new output: tools/dev update";
    rewritten += (part.header.empty() ? "" : part.header + "\n") + part.source;
    if (!actual.empty())
      rewritten += "\n" + commented(actual);
    if (&part != &parts.back())
      rewritten += "\n";
  }
  EXPECT_EQ(anyError, file.path.filename().string().starts_with("fail_"))
      << "a file's name starts with fail_ if and only if it has errors";
  if (update)
    std::ofstream(file.path, std::ios::binary) << rewritten;
}
