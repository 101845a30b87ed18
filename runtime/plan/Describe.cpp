// Prints resolutions as text, with one line per step.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plan/Program.h"
#include "runtime/plan/Views.h"
#include <fmt/format.h>
#include <iterator>

namespace kpkg::plan {

namespace {

class Printer {
public:
  Printer(const Program &program, const Resolution &resolution) : program(program), resolution(resolution) {}

  std::string run() {
    for (const Step &step : resolution.steps)
      std::visit([&](const auto &s) { print(s); }, step);
    for (size_t k = 0; k < resolution.outputs.size(); ++k)
      line("output {}: {}", k, text(resolution.outputs[k]));
    return std::move(out);
  }

private:
  template <typename... Args> void line(fmt::format_string<Args...> format, Args &&...args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
    out += '\n';
  }

  std::string text(const View &view) {
    if (view.buffer < 0)
      return "None";
    const Buffer &buffer = resolution.buffers[static_cast<size_t>(view.buffer)];
    std::string name;
    if (buffer.kind == Buffer::Kind::Argument && buffer.list >= 0)
      name = fmt::format("{}[{}]", program.arguments()[static_cast<size_t>(buffer.list)].name, buffer.element);
    else if (buffer.kind == Buffer::Kind::Argument)
      name = program.arguments()[static_cast<size_t>(buffer.argument)].name;
    else
      name = fmt::format("{}{}", buffer.kind == Buffer::Kind::Result ? "result" : "temporary", view.buffer);
    std::string strides = isContiguous(view) ? "" : fmt::format(" strides {}", describeShape(view.stridesSpan()));
    std::string offset = view.offset ? fmt::format(" offset {}", view.offset) : "";
    return fmt::format("{}: {}{}{}", name, describeView(view), strides, offset);
  }

  void print(const CopyStep &step) { line("copy ({}) to ({})", text(step.source), text(step.destination)); }

  void print(const LaunchStep &step) {
    std::string params, args, grid;
    for (const LaunchParam &param : step.params)
      fmt::format_to(std::back_inserter(params), "{}{} {} {}", params.empty() ? "[" : ", ", param.name,
                     param.atLeast ? ">=" : "=", text(param));
    for (const LaunchArg &arg : step.args)
      fmt::format_to(std::back_inserter(args), "{}{}", args.empty() ? "" : ", ", text(arg));
    if (step.persistent)
      grid = "persistent";
    else
      grid = fmt::format("grid {}x{}x{}", step.grid[0], step.grid[1], step.grid[2]);
    line("launch {}{}({}) {}", step.kernel, params.empty() ? "" : params + "]", args, grid);
  }

  static std::string text(const LaunchParam &param) {
    switch (param.kind) {
    case LaunchParam::Kind::Bool:
      return param.integer ? "True" : "False";
    case LaunchParam::Kind::Float:
      return fmt::format("{}", param.real);
    case LaunchParam::Kind::DType:
      return std::string(dtypeName(static_cast<DType>(param.integer)));
    case LaunchParam::Kind::String:
      return fmt::format("\"{}\"", param.string);
    default:
      return fmt::format("{}", param.integer);
    }
  }

  std::string text(const LaunchArg &arg) {
    switch (arg.kind) {
    case LaunchArg::Kind::View:
      return (arg.isMut ? "mut " : "") + text(arg.view);
    case LaunchArg::Kind::Float:
      return fmt::format("{}", arg.real);
    case LaunchArg::Kind::Bool:
      return arg.integer ? "True" : "False";
    case LaunchArg::Kind::PassThrough:
      return fmt::format("{}: as passed", program.arguments()[static_cast<size_t>(arg.integer)].name);
    default:
      return fmt::format("{}", arg.integer);
    }
  }

  const Program &program;
  const Resolution &resolution;
  std::string out;
};

} // namespace

std::string describe(const Program &program, const Resolution &resolution) {
  return Printer(program, resolution).run();
}

} // namespace kpkg::plan
