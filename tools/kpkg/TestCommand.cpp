// `kpkg test`: builds sources for this CPU, and compares their ops with their references on drawn inputs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/diag/Render.h"
#include "compiler/driver/Compile.h"
#include "tools/kpkg/Agreement.h"
#include "tools/kpkg/CheckedCall.h"
#include "tools/kpkg/DrawnCase.h"
#include "tools/kpkg/InputText.h"
#include "tools/kpkg/ProgressLine.h"
#include "tools/kpkg/Report.h"
#include "llvm/Support/Error.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

namespace kpkg::command {

namespace {

struct TestOptions {
  compiler::CompileOptions compile;
  std::string op;
  std::vector<std::string> inputs;
  int cases = 8;
  uint64_t seed = 0;
};

/// Limit of draws for a dtype, after which the op is assumed not to support it.
constexpr int mostDraws = 400;

/// Returns a package in memory; nothing after a message, with `code` set.
std::optional<std::string> buildInMemory(const TestOptions &options, ExitCode &code) {
  compiler::SourceManager sources;
  compiler::DiagnosticEngine diags;
  ProgressLine line;
  auto package = compiler::compile(options.compile, sources, diags, line.callback());
  if (!package) {
    llvm::Error error = package.takeError();
    code = error.isA<compiler::KernelRefused>() ? InputRefused : WorldError;
    fmt::print(stderr, "kpkg: error: {}\n", llvm::toString(std::move(error)));
    return std::nullopt;
  }
  fmt::print(stderr, "{}", compiler::renderText(diags, sources, {.colour = compiler::wantsColour(STDERR_FILENO)}));
  code = *package ? Success : InputRefused;
  return std::move(*package);
}

struct OpReport {
  int failures = 0;
  int tested = 0;
  /// Why the last inputs were refused.
  std::string refusal;
};

class OpTest {
public:
  OpTest(const TestOptions &options, const Op &op, const Op &reference)
      : options(options), op(op), reference(reference) {
    for (const std::string &input : options.inputs)
      fixed.push_back(input.substr(0, input.find('=')));
  }

  OpReport run() {
    bool hasTensors = std::any_of(op.arguments().begin(), op.arguments().end(), [&](const ArgumentInfo &argument) {
      return argument.kind == KPKG_TENSOR && std::find(fixed.begin(), fixed.end(), argument.name) == fixed.end();
    });
    if (!hasTensors)
      testDType(DType::None);
    else
      for (DType dtype : drawnDTypes)
        testDType(dtype);
    return report;
  }

private:
  const TestOptions &options;
  const Op &op;
  const Op &reference;
  const Place place; ///< the host
  std::vector<std::string> fixed;
  OpReport report;

  void testDType(DType dtype) {
    std::mt19937_64 random(options.seed * 64 + uint64_t(dtype));
    std::vector<std::string> shapes;
    int cases = 0;
    for (int draw = 0; draw < mostDraws && cases < options.cases; ++draw) {
      std::vector<std::string> inputs = drawInputs(op, dtype, fixed, random, report.refusal);
      if (inputs.empty() && fixed.empty())
        return;
      inputs.insert(inputs.end(), options.inputs.begin(), options.inputs.end());
      auto named = parseInputs(inputs, 0);
      if (!named)
        return refuse(named.error());
      if (auto inferred = op.infer({}, *named); !inferred) {
        refuse(inferred.error());
        continue;
      }
      auto actual = outcome(op, inputs, place);
      if (!actual) { // no instance for it, which shape inference does not detect
        refuse(actual.error());
        continue;
      }
      ++cases;
      auto expected = outcome(reference, inputs, place);
      std::string wrong = expected ? firstDisagreement(*actual, *expected, estimatedFlops(op, *named))
                                   : "the reference refuses it: " + printableLines(expected.error().message);
      if (!wrong.empty())
        return fail(dtype, inputs, wrong);
      for (const Named &argument : *named)
        if (argument.second.asTensor().dtype() != DType::None) {
          std::string shape = fmt::format("[{}]", fmt::join(argument.second.asTensor().shape(), ", "));
          if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end())
            shapes.push_back(shape);
          break;
        }
    }
    report.tested += cases;
    if (cases)
      fmt::print("ok    {} {}: {} case{}{}{}\n", op.name(), nameOf(dtype), cases, cases == 1 ? "" : "s",
                 shapes.empty() ? "" : ", ", fmt::join(shapes, " "));
  }

  static std::string nameOf(DType dtype) { return dtype == DType::None ? "as given" : kpkg_dtype_name(int32_t(dtype)); }
  void refuse(const Error &error) { report.refusal = printableLines(error.message); }

  void fail(DType dtype, const std::vector<std::string> &inputs, const std::string &wrong) {
    ++report.failures;
    ++report.tested;
    fmt::print("FAIL  {} {}, seed {}: {}\n", op.name(), nameOf(dtype), options.seed, wrong);
    for (const std::string &input : inputs)
      fmt::print("      --input \"{}\"\n", input);
  }
};

ExitCode runTests(const TestOptions &options, const Library &library) {
  std::vector<Op> ops = library.ops();
  bool isKnown = options.op.empty();
  int tested = 0, failures = 0;
  for (const Op &op : ops) {
    bool isAnothers = std::any_of(ops.begin(), ops.end(), [&](const Op &other) {
      return op.name() == other.info().reference || op.name() == other.info().backward;
    });
    bool isAsked = options.op.empty() || options.op == op.name() || op.name().ends_with("::" + options.op);
    if (isAnothers || !isAsked)
      continue;
    isKnown = true;
    if (!*op.info().reference) {
      fmt::print("none  {}: it has no reference\n", op.name());
      continue;
    }
    auto reference = library.op(op.info().reference);
    if (!reference)
      return report(reference.error());
    OpReport result = OpTest(options, op, *reference).run();
    if (result.tested == 0) {
      fmt::print("FAIL  {}: it took none of the drawn inputs; give some with --input; the last refusal: {}\n",
                 op.name(), result.refusal);
      ++result.failures;
    }
    tested += result.tested;
    failures += result.failures;
  }
  if (!isKnown) {
    fmt::print(stderr, "kpkg: error: the sources have no op '{}'\n", options.op);
    return InputRefused;
  }
  if (tested == 0 && failures == 0) {
    fmt::print(stderr, "kpkg: error: no op of the sources has a reference: @register.reference(\"namespace::name\") "
                       "says what an op should compute\n");
    return InputRefused;
  }
  return failures ? InputRefused : Success;
}

ExitCode test(const TestOptions &options) {
  for (const std::string &input : options.inputs)
    if (auto parsed = parseInput(input, 0); !parsed)
      return report(parsed.error());
  ExitCode code = Success;
  auto package = buildInMemory(options, code);
  if (!package)
    return code;
  auto library = Library::openMemory(*package, "tested.kpkg");
  if (!library)
    return report(library.error());
  return runTests(options, *library);
}

} // namespace

void addTest(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("test", "Build sources for this CPU and compare ops with their references");
  command->footer("Example: kpkg test gemm.k\n"
                  "         kpkg test gemm.k --op gemm --input \"a=randn(33,7,f32)\" --input \"b=randn(7,64,f32)\"\n"
                  "Inputs are drawn for each dtype until the op takes as many as --cases says. --input gives arguments "
                  "as kpkg run takes them; the others are drawn.");
  auto options = std::make_shared<TestOptions>();
  command->add_option("inputs", options->compile.inputs, "Source files, or folders whose .k files are all taken")
      ->required();
  command->add_option("-I", options->compile.importPaths, "A folder in which imports look")->allow_extra_args(false);
  command->add_option("--op", options->op, "Only this op, such as kpkg::gemm or gemm");
  command->add_option("-i,--input", options->inputs, "An argument, name=value; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--cases", options->cases, "Cases of each op and dtype")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--seed", options->seed, "Seed of the drawn inputs")->capture_default_str();
  command->callback([options, &exitCode] { exitCode = test(*options); });
}

} // namespace kpkg::command
