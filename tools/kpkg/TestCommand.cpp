// `kpkg test`: builds sources, and compares their ops with their references on registered and drawn inputs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/diag/Render.h"
#include "compiler/driver/Compile.h"
#include "compiler/driver/Tests.h"
#include "tools/kpkg/Agreement.h"
#include "tools/kpkg/CheckedCall.h"
#include "tools/kpkg/DrawnCase.h"
#include "tools/kpkg/InputText.h"
#include "tools/kpkg/ProgressLine.h"
#include "tools/kpkg/Report.h"
#include "tools/kpkg/TimeLimit.h"
#include "llvm/Support/Error.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace kpkg::command {

namespace {

struct TestOptions {
  compiler::CompileOptions compile;
  std::string op;
  std::vector<std::string> inputs;
  int cases = 8;
  uint64_t seed = 0;
  int limit = 120; ///< seconds of a call; 0 is no limit
};

/// Limit of draws for a dtype, after which the op is assumed not to support it.
constexpr int mostDraws = 400;

/// Returns the package in memory and the tests of its sources; nothing after a message, with `code` set.
std::optional<std::string> buildInMemory(const TestOptions &options, std::vector<compiler::TestRecord> &tests,
                                         ExitCode &code) {
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
  compiler::SourceManager sameSources;
  compiler::DiagnosticEngine sameDiags;
  if (*package)
    tests = llvm::cantFail(compiler::readTests(options.compile, sameSources, sameDiags)); // compiled without errors
  return std::move(*package);
}

struct OpReport {
  int failures = 0;
  int tested = 0;
  /// Why the last inputs were refused.
  std::string refusal;
};

/// Returns the instances that the call runs: "; ran scale_tiles[T=float32] any x86-64-v4".
std::string instancesOf(const Op &op, const std::vector<Named> &named) {
  auto text = op.explain({}, named, KPKG_JSON);
  if (!text)
    return "";
  std::string names;
  const nlohmann::json resolution = nlohmann::json::parse(*text);
  for (const auto &launch : resolution["launches"])
    if (launch["chosen"].is_string())
      names += (names.empty() ? "; ran " : ", ") + launch["chosen"].get<std::string>();
  return names;
}

class OpTest {
public:
  OpTest(const TestOptions &options, const std::vector<Place> &places, const Op &op, const Op &reference)
      : options(options), places(places), op(op), reference(reference) {
    for (const std::string &input : options.inputs)
      fixed.push_back(input.substr(0, input.find('=')));
  }

  OpReport run(const std::vector<compiler::TestRecord> &tests) {
    for (const compiler::TestRecord &test : tests)
      if (test.op == op.name() && options.inputs.empty())
        runRegistered(test);
    if (report.failures || options.cases == 0)
      return report;
    bool hasTensors = std::any_of(op.arguments().begin(), op.arguments().end(), [&](const ArgumentInfo &argument) {
      return (argument.kind == KPKG_TENSOR || argument.kind == KPKG_TENSOR_LIST) &&
             std::find(fixed.begin(), fixed.end(), argument.name) == fixed.end();
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
  const std::vector<Place> &places; ///< the host, and a GPU if there is one
  const Op &op;
  const Op &reference;
  std::vector<std::string> fixed;
  OpReport report;
  std::string title; ///< of the case

  /// Calls an op. If that takes too long, the process ends with a message.
  Result<std::vector<Tensor>> called(const Op &which, const std::vector<std::string> &inputs, const Place &place) {
    TimeLimit limit(options.limit, [&] {
      bool isReference = which.name() == reference.name();
      fail(inputs, fmt::format("{} has not ended after {} s; --limit says how long a call may take",
                               isReference ? "the reference" : "the op", options.limit));
      std::fflush(stdout);
      std::_Exit(InputRefused);
    });
    return outcome(which, inputs, place);
  }

  /// Compares a call with the reference's, which runs on the host, on all places with code for it. Returns what is
  /// wrong, or an empty text.
  std::string compared(const std::vector<Tensor> &actual, const std::vector<std::string> &inputs,
                       const std::vector<Named> &named, std::optional<double> tolerance) {
    auto expected = called(reference, inputs, places.front());
    if (!expected)
      return "the reference refuses it: " + printableLines(expected.error().message);
    double flops = estimatedFlops(op, named);
    std::string wrong = firstDisagreement(actual, *expected, flops, tolerance);
    if (!wrong.empty())
      return wrong + instancesOf(op, named);
    for (size_t i = 1; i < places.size() && wrong.empty(); ++i) {
      if (!whyNotOn(places[i].device, op, named).empty())
        continue;
      auto onDevice = called(op, inputs, places[i]);
      wrong = onDevice ? firstDisagreement(*onDevice, *expected, flops, tolerance)
                       : printableLines(onDevice.error().message);
      if (!wrong.empty())
        wrong = fmt::format("on {}: {}", places[i].name, wrong);
    }
    return wrong;
  }

  /// Runs the cases of `@register.test`.
  void runRegistered(const compiler::TestRecord &test) {
    for (const compiler::TestCase &one : test.cases) {
      std::vector<std::string> inputs = one.inputs;
      uint64_t seed = options.seed * 64;
      for (std::string &input : inputs)
        if (input.ends_with(")")) // a tensor
          input.insert(input.size() - 1, fmt::format(",seed={}", seed++));
      title = one.title;
      auto named = parseInputs(inputs, 0);
      auto actual = named ? called(op, inputs, places.front()) : Result<std::vector<Tensor>>(named.error());
      std::string wrong = actual ? compared(*actual, inputs, *named, test.tolerance)
                                 : "the op refuses it: " + printableLines(actual.error().message);
      if (!wrong.empty())
        return fail(inputs, wrong);
      ++report.tested;
    }
    title = test.cases.front().title;
    fmt::print("ok    {} {}: {} case{}\n", op.name(), title.substr(0, title.find('[')), test.cases.size(),
               test.cases.size() == 1 ? "" : "s");
  }

  void testDType(DType dtype) {
    std::mt19937_64 random(options.seed * 64 + uint64_t(dtype));
    std::vector<std::string> shapes;
    int cases = 0;
    title = nameOf(dtype);
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
      auto actual = called(op, inputs, places.front());
      if (!actual) { // no instance for it, which shape inference does not detect
        refuse(actual.error());
        continue;
      }
      ++cases;
      std::string wrong = compared(*actual, inputs, *named, std::nullopt);
      if (!wrong.empty())
        return fail(inputs, wrong);
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
      fmt::print("ok    {} {}: {} case{}{}{}\n", op.name(), title, cases, cases == 1 ? "" : "s",
                 shapes.empty() ? "" : ", ", fmt::join(shapes, " "));
  }

  static std::string nameOf(DType dtype) { return dtype == DType::None ? "as given" : kpkg_dtype_name(int32_t(dtype)); }
  void refuse(const Error &error) { report.refusal = printableLines(error.message); }

  void fail(const std::vector<std::string> &inputs, const std::string &wrong) {
    ++report.failures;
    ++report.tested;
    fmt::print("FAIL  {} {}, seed {}: {}\n", op.name(), title, options.seed, wrong);
    for (const std::string &input : inputs)
      fmt::print("      --input \"{}\"\n", input);
  }
};

ExitCode runTests(const TestOptions &options, const std::vector<compiler::TestRecord> &tests, const Library &library) {
  std::vector<Op> ops = library.ops();
  auto host = hostPlace();
  if (!host)
    return report(host.error());
  std::vector<Place> places = {std::move(*host)};
  if (auto gpu = cudaPlace(0))
    places.push_back(std::move(*gpu));
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
    OpReport result = OpTest(options, places, op, *reference).run(tests);
    if (result.tested == 0 && options.cases == 0) {
      fmt::print("none  {}: it has no @register.test\n", op.name());
    } else if (result.tested == 0) {
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
    fmt::print(stderr, "{}\n",
               options.cases ? "kpkg: error: no op of the sources has a reference: "
                               "@register.reference(\"namespace::name\") says what an op should compute"
                             : "kpkg: error: no op of the sources has a @register.test, and --cases 0 draws none");
    return InputRefused;
  }
  return failures ? InputRefused : Success;
}

ExitCode test(const TestOptions &options) {
  for (const std::string &input : options.inputs)
    if (auto parsed = parseInput(input, 0); !parsed)
      return report(parsed.error());
  ExitCode code = Success;
  std::vector<compiler::TestRecord> tests;
  auto package = buildInMemory(options, tests, code);
  if (!package)
    return code;
  auto library = Library::openMemory(*package, "tested.kpkg");
  if (!library)
    return report(library.error());
  return runTests(options, tests, *library);
}

} // namespace

void addTest(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("test", "Build sources for this CPU and compare ops with their references");
  command->footer("Example: kpkg test gemm.k\n"
                  "         kpkg test gemm.k --op gemm --input \"a=randn(33,7,f32)\" --input \"b=randn(7,64,f32)\"\n"
                  "Cases of @register.test run first. Inputs are drawn for each dtype until the op takes as many as "
                  "--cases says. --input gives arguments as kpkg run takes them; the others are drawn.");
  auto options = std::make_shared<TestOptions>();
  command->add_option("inputs", options->compile.inputs, "Source files, or folders whose .k files are all taken")
      ->required();
  command->add_option("-I", options->compile.importPaths, "A folder in which imports look")->allow_extra_args(false);
  command->add_option("--op", options->op, "Only this op, such as kpkg::gemm or gemm");
  command->add_option("-i,--input", options->inputs, "An argument, name=value; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--cases", options->cases, "Drawn cases of each op and dtype. 0: only those of @register.test")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--seed", options->seed, "Seed of the drawn inputs")->capture_default_str();
  command->add_option("--limit", options->limit, "Seconds that a call may take; 0: no limit")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->callback([options, &exitCode] { exitCode = test(*options); });
}

} // namespace kpkg::command
