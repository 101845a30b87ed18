// Writes a benchmark as one page: roofline above, table below.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/bench/BenchReport.h"
#include <algorithm>
#include <fmt/format.h>

namespace kpkg::command::bench {

namespace {

/// The content security policy keeps a browser from loading or running anything, for any text of a package.
constexpr const char *Head = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>kpkg bench</title>
<style>
:root { color-scheme: light dark; --page: #ffffff; --text: #1b1f24; --quiet: #59636e; --line: #d5dae0; --bar: #c9ddf5; --bad: #b42318;
  --c0: #1f6fb5; --c1: #b8550b; --c2: #1d7d4f; --c3: #8a4fb0; --c4: #a3334f; --c5: #5d6b1e; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171a; --text: #e6e9ec; --quiet: #9aa4ae; --line: #343a41; --bar: #234466; --bad: #ff8d80;
    --c0: #6cb2f2; --c1: #f0a05a; --c2: #5cc794; --c3: #c79aec; --c4: #f28ba3; --c5: #bcca6a; } }
body { background: var(--page); color: var(--text); font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0 0 .5rem; overflow-wrap: anywhere; }
p { color: var(--quiet); max-width: 60rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
svg { display: block; width: 100%; max-width: 60rem; height: auto; margin: 1.5rem 0; }
svg text { fill: var(--quiet); font: 12px system-ui, sans-serif; }
.grid { stroke: var(--line); stroke-width: 1; }
.roof { stroke: var(--text); stroke-width: 2; fill: none; }
.point { stroke: var(--page); stroke-width: 1.5; }
svg .number { fill: var(--text); }
.c0 { fill: var(--c0); color: var(--c0); } .c1 { fill: var(--c1); color: var(--c1); } .c2 { fill: var(--c2); color: var(--c2); }
.c3 { fill: var(--c3); color: var(--c3); } .c4 { fill: var(--c4); color: var(--c4); } .c5 { fill: var(--c5); color: var(--c5); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .6rem; text-align: left; vertical-align: top; }
th { color: var(--quiet); font-weight: 600; white-space: nowrap; }
.n { text-align: right; white-space: nowrap; }
.share { background: linear-gradient(var(--bar), var(--bar)) left / var(--part) 100% no-repeat; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
.failed { color: var(--bad); }
</style>
</head>
<body>
)";

void addLimit(std::string &page, const std::string &name, const Limit &limit, const char *unit) {
  page += fmt::format("<dt>{}</dt><dd>{} <small>({})</small></dd>\n", escapeHtml(name),
                      formatRate(limit.perSecond, unit), escapeHtml(limit.how));
}

void addRow(std::string &page, size_t number, size_t colour, const BenchLine &line, const DeviceLimits &limits) {
  LineText text = describe(line, limits);
  double part = std::clamp(place(line, limits).share.value_or(0) * 100, 0.0, 100.0);
  page += fmt::format("<tr><td class=\"n\">{}</td><td class=\"c{}\">{}</td><td><code>{}</code></td>", number, colour,
                      escapeHtml(text.op), escapeHtml(text.inputs));
  for (const std::string &column : {text.time, text.spread, text.bytesRate, text.flopRate, text.intensity})
    page += fmt::format("<td class=\"n\">{}</td>", escapeHtml(column));
  page +=
      fmt::format("<td class=\"n share\" style=\"--part: {:.1f}%\">{}</td><td>{}</td><td{}><code>{}</code></td></tr>\n",
                  part, escapeHtml(text.share), escapeHtml(text.bound), line.error.empty() ? "" : " class=\"failed\"",
                  escapeHtml(text.instances));
}

} // namespace

std::string escapeHtml(std::string_view text) {
  std::string escaped;
  for (char c : text)
    switch (c) {
    case '&':
      escaped += "&amp;";
      break;
    case '<':
      escaped += "&lt;";
      break;
    case '>':
      escaped += "&gt;";
      break;
    case '"':
      escaped += "&quot;";
      break;
    case '\'':
      escaped += "&#39;";
      break;
    default:
      escaped += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  return escaped;
}

std::string toHtml(const BenchReport &report) {
  std::string page = Head;
  page += fmt::format("<h1>{}</h1>\n<dl>\n<dt>measured</dt><dd>{}, kpkg {}</dd>\n<dt>device</dt><dd>{}</dd>\n",
                      escapeHtml(report.package), escapeHtml(report.date), kpkg_version(),
                      escapeHtml(report.limits.device));
  addLimit(page, "copy", report.limits.copy, "B");
  for (const ArithmeticLimit &limit : report.limits.arithmetic)
    addLimit(page, kpkg_dtype_name(int32_t(limit.dtype)), limit.flops, "FLOP");
  page += "</dl>\n" + toSvg(report);
  page += "<div class=\"wide\"><table>\n<thead><tr><th class=\"n\">#</th><th>op</th><th>inputs</th><th "
          "class=\"n\">time (median)</th>"
          "<th class=\"n\">10% .. 90%</th><th class=\"n\">traffic</th><th class=\"n\">compute</th><th "
          "class=\"n\">FLOP/B</th>"
          "<th class=\"n\">of limit</th><th>bound</th><th>instances</th></tr></thead>\n<tbody>\n";
  for (size_t i = 0; i < report.lines.size(); ++i)
    addRow(page, i + 1, colourOf(report, report.lines[i]), report.lines[i], report.limits);
  page += "</tbody>\n</table></div>\n";
  for (const std::string &note : notes(report))
    page += fmt::format("<p>{}</p>\n", escapeHtml(note));
  return page + "</body>\n</html>\n";
}

} // namespace kpkg::command::bench
