// `kpkg explain`: prints the long form of a diagnostic, or how a call of an op is resolved.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/diag/Kinds.h"
#include "tools/kpkg/Report.h"
#include "tools/kpkg/RequestedCall.h"
#include <fmt/format.h>

namespace kpkg::command {

namespace {

struct ExplainOptions {
  std::string subject;
  std::string op;
  std::vector<std::string> inputs;
  std::string device;
  bool json = false;
};

ExitCode explainCode(const std::string &code) {
  const compiler::KindInfo *kind = compiler::findKind(code);
  if (!kind) {
    fmt::print(stderr, "kpkg: error: '{}' is neither a diagnostic code such as K0101 nor, with an op, a package\n",
               code);
    return InputRefused;
  }
  fmt::print("{}\n", compiler::explanation(kind->id)); // its first line is the heading
  return Success;
}

ExitCode explainCall(const ExplainOptions &options) {
  auto call = RequestedCall::prepare({options.subject, options.op, options.inputs, options.device});
  if (!call)
    return report(call.error());
  if (!options.json)
    fmt::print("on {}\n", call->placeText());
  auto text = call->op.explain({}, call->placed, options.json ? KPKG_JSON : KPKG_TEXT);
  if (!text)
    return report(text.error());
  fmt::print("{}", options.json ? *text : printableLines(*text));
  return Success;
}

} // namespace

void addExplain(CLI::App &app, int &exitCode) {
  auto *command =
      app.add_subcommand("explain", "Explain a diagnostic code, or which instances a call would run and why");
  command->footer(
      "Example: kpkg explain K0101\n         kpkg explain gemm.kpkg gemm --input \"a=randn(5,7,f32)\" --input "
      "\"b=randn(7,3,f32)\"");
  auto options = std::make_shared<ExplainOptions>();
  command->add_option("subject", options->subject, "A code such as K0101, or a .kpkg file")->required();
  command->add_option("op,--op", options->op, "With a package: the op");
  command->add_option("-i,--input", options->inputs, "An argument, name=value, as for kpkg run")
      ->allow_extra_args(false);
  command->add_option("--device", options->device, "cpu, cuda or cuda:N, as for kpkg run");
  command->add_flag("--json", options->json, "JSON");
  command->callback(
      [options, &exitCode] { exitCode = options->op.empty() ? explainCode(options->subject) : explainCall(*options); });
}

} // namespace kpkg::command
