// Draws the roofline of a benchmark as SVG: logarithmic axes, the limits as lines, each line of the table as a numbered
// point.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/bench/BenchReport.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace kpkg::command::bench {

namespace {

constexpr double Width = 860, Height = 460, Left = 100, Right = 20, Top = 20, Bottom = 52;

/// A logarithmic axis over whole decades.
struct Axis {
  int low = 0, high = 0;     ///< powers of ten
  double start = 0, end = 0; ///< positions in the drawing

  void cover(double value) {
    low = std::min(low, int(std::floor(std::log10(value))));
    high = std::max(high, int(std::ceil(std::log10(value))));
  }
  double at(double value) const { return start + (std::log10(value) - low) / (high - low) * (end - start); }
};

struct Point {
  size_t number; ///< in the table
  size_t colour;
  double intensity, flopsPerSecond;
  std::string title;
};

std::vector<Point> pointsOf(const BenchReport &report) {
  std::vector<Point> points;
  for (size_t i = 0; i < report.lines.size(); ++i) {
    const BenchLine &line = report.lines[i];
    Placement placement = place(line, report.limits);
    if (!placement.intensity)
      continue;
    LineText text = describe(line, report.limits);
    points.push_back(
        {i + 1, colourOf(report, line), *placement.intensity, *placement.flopsPerSecond,
         fmt::format("{}. {} {}: {}, {} of the limit", i + 1, text.op, text.inputs, text.flopRate, text.share)});
  }
  return points;
}

/// Dtypes with the same limit share a roof.
std::vector<std::pair<std::string, double>> roofsOf(const DeviceLimits &limits) {
  std::vector<std::pair<std::string, double>> roofs;
  for (const ArithmeticLimit &limit : limits.arithmetic) {
    std::string name = kpkg_dtype_name(int32_t(limit.dtype));
    auto same = std::find_if(roofs.begin(), roofs.end(),
                             [&](const auto &roof) { return roof.second == limit.flops.perSecond; });
    if (same == roofs.end())
      roofs.emplace_back(name, limit.flops.perSecond);
    else
      same->first += ", " + name;
  }
  return roofs;
}

class Plot {
public:
  Plot(const DeviceLimits &limits, const std::vector<Point> &points)
      : copy(limits.copy.perSecond), roofs(roofsOf(limits)), points(points) {
    x.low = x.high = int(std::floor(std::log10(points.front().intensity)));
    y.low = y.high = int(std::floor(std::log10(points.front().flopsPerSecond)));
    for (const Point &point : points) {
      x.cover(point.intensity / 1.5);
      x.cover(point.intensity * 1.5);
      y.cover(point.flopsPerSecond / 1.5);
      y.cover(point.flopsPerSecond * 1.5);
    }
    for (const auto &[name, rate] : roofs) {
      x.cover(rate / copy / 3);
      x.cover(rate / copy * 3);
      y.cover(rate * 1.5);
    }
    y.cover(copy * std::pow(10, x.low));
    x.start = Left, x.end = Width - Right;
    y.start = Height - Bottom, y.end = Top;
  }

  std::string draw() {
    svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Roofline: operations per second over "
                      "operations per byte\">\n",
                      Width, Height);
    drawGrid();
    drawRoofs();
    for (const Point &point : points)
      drawPoint(point);
    for (const Label &label : labels)
      text(label.x + 9, label.y + 4, "start", label.numbers, " class=\"number\"");
    return svg + "</svg>\n";
  }

private:
  void text(double atX, double atY, const char *anchor, const std::string &content, const char *more = "") {
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", atX, atY, anchor, more,
                       escapeHtml(content));
  }
  void line(const char *kind, double x1, double y1, double x2, double y2) {
    svg += fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kind, x1, y1,
                       x2, y2);
  }

  void drawGrid() {
    for (int power = x.low; power <= x.high; ++power) {
      double at = x.at(std::pow(10, power));
      line("grid", at, y.start, at, y.end);
      text(at, y.start + 18, "middle", fmt::format("{:g}", std::pow(10, power)));
    }
    for (int power = y.low; power <= y.high; ++power) {
      double at = y.at(std::pow(10, power));
      line("grid", x.start, at, x.end, at);
      text(x.start - 8, at + 4, "end", wholeRate(power));
    }
    text((x.start + x.end) / 2, Height - 8, "middle", "FLOP per byte");
  }

  /// Formats 10^power, "100 GFLOP/s".
  static std::string wholeRate(int power) {
    static constexpr const char *prefixes[] = {"", "k", "M", "G", "T", "P"};
    int step = std::clamp(power >= 0 ? power / 3 : 0, 0, 5);
    return fmt::format("{:g} {}FLOP/s", std::pow(10, power - 3 * step), prefixes[step]);
  }

  void drawRoofs() {
    double least = std::pow(10, x.low), most = std::pow(10, x.high), ridge = most;
    for (const auto &[name, rate] : roofs) {
      ridge = std::min(std::max(ridge == most ? 0 : ridge, rate / copy), most);
      line("roof", x.at(rate / copy), y.at(rate), x.end, y.at(rate));
      text(x.end - 4, y.at(rate) - 6, "end", name + " " + formatRate(rate, "FLOP"));
    }
    double top = std::min(ridge, std::pow(10, y.high) / copy);
    line("roof", x.at(least), y.at(copy * least), x.at(top), y.at(copy * top));
    double middle = std::sqrt(least * top);
    double slope = std::atan2(y.at(copy * top) - y.at(copy * least), x.at(top) - x.at(least)) * 180 / 3.14159265358979;
    text(x.at(middle), y.at(copy * middle) - 8, "middle", "copy " + formatRate(copy, "B"),
         fmt::format(" transform=\"rotate({:.1f} {:.1f} {:.1f})\"", slope, x.at(middle), y.at(copy * middle)).c_str());
  }

  void drawPoint(const Point &point) {
    double atX = x.at(point.intensity), atY = y.at(point.flopsPerSecond);
    svg += fmt::format("<circle class=\"point c{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"6\"><title>{}</title></circle>\n",
                       point.colour, atX, atY, escapeHtml(point.title));
    // Points that nearly coincide share a label.
    auto near = std::find_if(labels.begin(), labels.end(), [&](const Label &label) {
      return std::abs(label.x - atX) < 12 && std::abs(label.y - atY) < 14;
    });
    if (near == labels.end())
      labels.push_back({atX, atY, std::to_string(point.number)});
    else
      near->numbers += ", " + std::to_string(point.number);
  }

  struct Label {
    double x, y;
    std::string numbers;
  };

  double copy;
  std::vector<std::pair<std::string, double>> roofs;
  const std::vector<Point> &points;
  Axis x, y;
  std::vector<Label> labels;
  std::string svg;
};

} // namespace

size_t colourOf(const BenchReport &report, const BenchLine &line) {
  std::vector<std::string> ops;
  for (const BenchLine &other : report.lines) {
    if (other.op == line.op)
      break;
    if (std::find(ops.begin(), ops.end(), other.op) == ops.end())
      ops.push_back(other.op);
  }
  return ops.size() % 6;
}

std::string toSvg(const BenchReport &report) {
  std::vector<Point> points = pointsOf(report);
  return points.empty() ? std::string() : Plot(report.limits, points).draw();
}

} // namespace kpkg::command::bench
