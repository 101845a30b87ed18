// Renders diagnostics as text with source lines, and as JSON lines.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/diag/Render.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <unistd.h>

using namespace kpkg::compiler;

namespace {
constexpr uint32_t tabWidth = 4;

/// Decodes the code point at `at` of `text`, and returns its length in bytes. Invalid UTF-8 gives U+FFFD, one byte at a
/// time.
char32_t decode(std::string_view text, size_t at, size_t &length) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  unsigned char first = byte(0);
  length = 1;
  if (first < 0x80)
    return first;
  size_t count = first >= 0xF0 && first < 0xF5 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  if (count == 0 || first >= 0xF5 || at + count > text.size())
    return 0xFFFD;
  char32_t value = first & (0xFF >> (count + 1));
  for (size_t i = 1; i < count; ++i) {
    if ((byte(i) & 0xC0) != 0x80)
      return 0xFFFD;
    value = value << 6 | (byte(i) & 0x3F);
  }
  constexpr char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < smallest[count] || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
    return 0xFFFD;
  length = count;
  return value;
}

/// Returns whether a character must not reach a terminal: control characters and bidirectional marks, which reorder
/// text.
bool isUnprintable(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) ||
         c == 0x200E || c == 0x200F || c == 0xFEFF || c == 0x2028 || c == 0x2029;
}

/// Returns the terminal columns of a code point: 0 for combining marks, 2 for East Asian wide characters.
uint32_t columns(char32_t c) {
  if ((c >= 0x300 && c <= 0x36F) || (c >= 0x1AB0 && c <= 0x1AFF) || (c >= 0x20D0 && c <= 0x20FF) || c == 0x200B ||
      c == 0x200D || (c >= 0xFE00 && c <= 0xFE0F) || (c >= 0xFE20 && c <= 0xFE2F))
    return 0;
  bool wide = (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0x303E) || (c >= 0x3041 && c <= 0xA4CF) ||
              (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFE30 && c <= 0xFE6F) ||
              (c >= 0xFF00 && c <= 0xFF60) || (c >= 0xFFE0 && c <= 0xFFE6) || (c >= 0x1F300 && c <= 0x1F64F) ||
              (c >= 0x1F900 && c <= 0x1F9FF) || (c >= 0x20000 && c <= 0x3FFFD);
  return wide ? 2 : 1;
}

void appendCodePoint(std::string &out, std::string_view text, size_t at, size_t length, char32_t c) {
  if (isUnprintable(c) || c == 0xFFFD)
    out += "\xEF\xBF\xBD";
  else
    out += text.substr(at, length);
}

} // namespace

std::string kpkg::compiler::printable(std::string_view text) {
  std::string out;
  for (size_t at = 0, length; at < text.size(); at += length) {
    char32_t c = decode(text, at, length);
    if (c == '\n' || c == '\t')
      out += ' ';
    else
      appendCodePoint(out, text, at, length, c);
  }
  return out;
}

namespace {

class TextRenderer {
public:
  TextRenderer(const SourceManager &sources, const TextOptions &options) : sources(sources), options(options) {}
  std::string out;

  void render(const Diagnostic &diagnostic) {
    message(diagnostic.message, info(diagnostic.message.id).code);
    for (auto frame = diagnostic.instances.rbegin(); frame != diagnostic.instances.rend(); ++frame) {
      place(frame->requestedAt);
      out += fmt::format("{} in {}\n", styled("note:", note), printable(frame->description));
    }
    if (diagnostic.furtherInstances != 0)
      out += fmt::format("{} the same in {} more instance{}\n", styled("note:", note), diagnostic.furtherInstances,
                         diagnostic.furtherInstances == 1 ? "" : "s");
    for (const DiagnosticMessage &extra : diagnostic.notes)
      message(extra, {});
  }

private:
  static constexpr const char *bold = "\x1b[1m", *red = "\x1b[1;31m", *magenta = "\x1b[1;35m", *note = "\x1b[1;36m",
                              *green = "\x1b[32m";
  const SourceManager &sources;
  const TextOptions &options;

  std::string styled(std::string_view text, const char *style) {
    return options.colour ? fmt::format("{}{}\x1b[0m", style, text) : std::string(text);
  }

  void place(SourceRange range) {
    if (range.isValid())
      out += styled(printable(sources.describe(range)) + ":", bold) + " ";
  }

  void message(const DiagnosticMessage &message, std::string_view code) {
    place(message.range);
    switch (message.severity) {
    case Severity::Error:
      out += styled("error:", red);
      break;
    case Severity::Warning:
      out += styled("warning:", magenta);
      break;
    case Severity::Note:
      out += styled("note:", note);
      break;
    }
    out += " " + styled(printable(message.text), bold);
    if (!code.empty())
      out += fmt::format(" [{}]", code);
    out += "\n";
    if (!message.range.isValid())
      return;
    snippet(message.range);
    for (const FixIt &fix : message.fixes)
      suggestion(fix);
  }

  void suggestion(const FixIt &fix) {
    std::string text = printable(fix.replacement);
    if (fix.range.begin == fix.range.end)
      out += fmt::format("      | {}\n", styled(fmt::format("fix: insert `{}`", text), green));
    else if (fix.replacement.empty())
      out += fmt::format("      | {}\n", styled("fix: remove this", green));
    else
      out += fmt::format("      | {}\n", styled(fmt::format("fix: write `{}`", text), green));
  }

  /// Prints the first source line of the range, with the range underlined.
  void snippet(SourceRange range) {
    const SourceFile &file = sources.file(range.file);
    uint32_t number = file.lineColumn(range.begin).line;
    std::string_view line = file.line(number);
    size_t from = std::min<size_t>(range.begin - std::min(range.begin, file.lineStart(number)), line.size());
    size_t to = std::clamp<size_t>(range.end > file.lineStart(number) ? range.end - file.lineStart(number) : 0, from,
                                   line.size());
    // Cuts a long line to a window around the start of the range.
    size_t windowBegin = 0, windowEnd = line.size();
    if (line.size() > options.lineWidth) {
      windowBegin = from > options.lineWidth / 2 ? from - options.lineWidth / 2 : 0;
      windowEnd = std::min<size_t>(line.size(), windowBegin + options.lineWidth);
      while (windowBegin > 0 && (line[windowBegin] & 0xC0) == 0x80)
        --windowBegin;
    }
    std::string text = windowBegin > 0 ? "..." : "", marks(windowBegin > 0 ? 3 : 0, ' ');
    uint32_t column = marks.size();
    bool marked = false;
    for (size_t at = windowBegin, length; at < windowEnd; at += length) {
      char32_t c = decode(line, at, length);
      uint32_t width = c == '\t' ? tabWidth - (column - (windowBegin > 0 ? 3 : 0)) % tabWidth : columns(c);
      if (c == '\t')
        text.append(width, ' ');
      else
        appendCodePoint(text, line, at, length, c);
      bool inside = at >= from && at < to;
      for (uint32_t i = 0; i < width; ++i) {
        marks += at + length <= from ? ' ' : !marked ? '^' : inside ? '~' : ' ';
        marked |= at + length > from;
      }
      column += width;
    }
    if (!marked)
      marks += '^'; // at the end of the line
    if (windowEnd < line.size())
      text += "...";
    marks.erase(marks.find_last_not_of(' ') + 1);
    out += fmt::format("{:5} | {}\n      | {}\n", number, text, styled(marks, green));
  }
};

std::string jsonString(std::string_view text) {
  std::string out = "\"";
  for (size_t at = 0, length; at < text.size(); at += length) {
    char32_t c = decode(text, at, length);
    if (c == '"' || c == '\\')
      out += '\\', out += static_cast<char>(c);
    else if (c == '\n')
      out += "\\n";
    else if (c < 0x20 || c == 0x7F)
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    else if (c == 0xFFFD)
      out += "\xEF\xBF\xBD";
    else
      out += text.substr(at, length);
  }
  return out + '"';
}

std::string jsonPlace(SourceRange range, const SourceManager &sources) {
  if (!range.isValid())
    return R"("file":null,"range":null)";
  const SourceFile &file = sources.file(range.file);
  auto position = [&](uint32_t offset) {
    LineColumn at = file.lineColumn(offset);
    return fmt::format(R"({{"line":{},"column":{},"offset":{}}})", at.line, at.column, offset);
  };
  return fmt::format(R"("file":{},"range":{{"start":{},"end":{}}})", jsonString(file.path()), position(range.begin),
                     position(range.end));
}

std::string jsonFixes(const DiagnosticMessage &message, const SourceManager &sources) {
  std::string out = "[";
  for (const FixIt &fix : message.fixes)
    out += fmt::format(R"({}{{{},"replacement":{}}})", out.size() > 1 ? "," : "", jsonPlace(fix.range, sources),
                       jsonString(fix.replacement));
  return out + "]";
}
} // namespace

std::string kpkg::compiler::renderText(const Diagnostic &diagnostic, const SourceManager &sources,
                                       const TextOptions &options) {
  TextRenderer renderer(sources, options);
  renderer.render(diagnostic);
  return std::move(renderer.out);
}

std::string kpkg::compiler::renderText(const DiagnosticEngine &engine, const SourceManager &sources,
                                       const TextOptions &options) {
  TextRenderer renderer(sources, options);
  for (const Diagnostic &diagnostic : engine.diagnostics())
    renderer.render(diagnostic);
  if (engine.hasErrors() || engine.warningCount() != 0) {
    auto counted = [](uint32_t count, std::string_view what) {
      return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
    };
    if (engine.hasErrors())
      renderer.out += counted(engine.errorCount(), "error");
    if (engine.hasErrors() && engine.warningCount() != 0)
      renderer.out += ", ";
    if (engine.warningCount() != 0)
      renderer.out += counted(engine.warningCount(), "warning");
    if (engine.limitReached())
      renderer.out += fmt::format("; {} of them not shown", engine.droppedCount());
    renderer.out += "\n";
  }
  return std::move(renderer.out);
}

std::string kpkg::compiler::renderJson(const Diagnostic &diagnostic, const SourceManager &sources) {
  constexpr std::string_view severities[] = {"error", "warning", "note"};
  const DiagnosticMessage &message = diagnostic.message;
  std::string out =
      fmt::format(R"({{"code":{},"severity":"{}","message":{},{},"fixes":{},"notes":[)",
                  jsonString(info(message.id).code), severities[static_cast<size_t>(message.severity)],
                  jsonString(message.text), jsonPlace(message.range, sources), jsonFixes(message, sources));
  for (const DiagnosticMessage &note : diagnostic.notes)
    out += fmt::format(R"({}{{"message":{},{},"fixes":{}}})", &note == &diagnostic.notes.front() ? "" : ",",
                       jsonString(note.text), jsonPlace(note.range, sources), jsonFixes(note, sources));
  out += R"(],"instances":[)";
  for (const InstanceFrame &frame : diagnostic.instances)
    out += fmt::format(R"({}{{"instance":{},{}}})", &frame == &diagnostic.instances.front() ? "" : ",",
                       jsonString(frame.description), jsonPlace(frame.requestedAt, sources));
  return out + fmt::format(R"(],"furtherInstances":{}}})", diagnostic.furtherInstances);
}

bool kpkg::compiler::wantsColour(int fileDescriptor) {
  const char *term = std::getenv("TERM");
  const char *noColour = std::getenv("NO_COLOR");
  return isatty(fileDescriptor) && term && std::strcmp(term, "dumb") != 0 && !(noColour && *noColour);
}
