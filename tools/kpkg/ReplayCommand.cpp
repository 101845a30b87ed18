// `kpkg replay`: runs recorded calls again, and compares their results.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/CheckedCall.h"
#include "tools/kpkg/Elements.h"
#include "tools/kpkg/Report.h"
#include "tools/kpkg/replay/RecordedFile.h"
#include "tools/kpkg/verify/CallCheck.h"
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kpkg::command {

namespace {

namespace fs = std::filesystem;
using replay::RecordedFile;

struct ReplayOptions {
  std::string folder, package, op, device;
  std::string instance = "chosen";
  bool compare = false;
};

Result<std::vector<std::string>> filesOf(const std::string &path) {
  std::error_code error;
  if (fs::is_regular_file(path, error))
    return std::vector<std::string>{path};
  std::vector<std::string> files;
  fs::directory_iterator entry(path, error), end;
  for (; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ".safetensors")
      files.push_back(entry->path().string());
  if (error)
    return Error{KPKG_ERROR_FILE, fmt::format("cannot read '{}': {}", path, error.message()), {}, {}, {}};
  if (files.empty())
    return Error{KPKG_ERROR_USE, fmt::format("'{}' has no recorded calls: KPKG_RECORD writes them", path), {}, {}, {}};
  std::sort(files.begin(), files.end());
  return files;
}

verify::Instances instancesOf(const std::string &text) {
  if (text == "all")
    return {verify::Instances::All, {}};
  return text == "chosen" ? verify::Instances{verify::Instances::Chosen, {}}
                          : verify::Instances{verify::Instances::One, text};
}

bool canCompare(const std::vector<Tensor> &tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [](const Tensor &tensor) { return tensor.dtype() == DType::None || isReadable(tensor.dtype()); });
}

class Replay {
public:
  Replay(const Library &library, const ReplayOptions &options)
      : library(library), options(options), withRecord(library, instancesOf(options.instance)),
        withReference(library, instancesOf(options.instance)) {}

  Status run(const RecordedFile &file);
  ExitCode print() const;

private:
  Status runOnly(const Op &op, const Place &place, const verify::TestedCall &call);
  Status compare(const Op &op, const Place &place, const verify::TestedCall &call, const RecordedFile &file);

  const Library &library;
  const ReplayOptions &options;
  verify::CallCheck withRecord, withReference;
  int calls = 0, skipped = 0, runs = 0;
  bool hasFailed = false;
};

Status Replay::run(const RecordedFile &file) {
  auto op = library.op(file.op);
  if (!op) {
    ++skipped;
    return {};
  }
  auto given = file.arguments();
  if (!given)
    return given.error();
  auto place = choosePlace(options.device, *op, *given);
  if (!place)
    return place.error();
  ++calls;
  verify::TestedCall call = {[&] { return file.arguments(); }, {"recorded in " + file.path}};
  return options.compare ? compare(*op, *place, call, file) : runOnly(*op, *place, call);
}

/// Runs the call with the wanted instances and nothing else, for debuggers and sanitizers.
Status Replay::runOnly(const Op &op, const Place &place, const verify::TestedCall &call) {
  return withRecord.runAll(op, place, call, [&](const std::vector<std::string> &labels, const Status &status) {
    ++runs;
    hasFailed |= !status;
    fmt::print("{}  {}: {}{}\n", status ? "ran      " : "FAILED   ", printableLines(op.name()),
               labels.empty() ? "no kernel" : printableLines(fmt::format("{}", fmt::join(labels, ", "))),
               status ? "" : ": " + printableLines(status.error().message));
  });
}

Status Replay::compare(const Op &op, const Place &place, const verify::TestedCall &call, const RecordedFile &file) {
  if (file.results && canCompare(*file.results))
    if (Status status = withRecord.compareAll(op, place, call, *file.results); !status)
      return status;
  if (!*op.info().reference)
    return {};
  auto reference = library.op(op.info().reference);
  auto host = hostPlace();
  auto given = file.arguments();
  if (!reference || !host || !given)
    return !reference ? reference.error() : !host ? host.error() : given.error();
  const Place &there = place.isCuda() && whyNotOn(place.device, *reference, *given).empty() ? place : *host;
  auto expected = outcome(*reference, *given, there);
  if (!expected || !canCompare(*expected))
    return expected ? Status{} : expected.error();
  withReference.noteReference(*reference, there, call);
  return withReference.compareAll(op, place, call, *expected);
}

ExitCode Replay::print() const {
  bool isGood = !hasFailed;
  if (options.compare) {
    fmt::print("beside the recorded results\n");
    isGood &= withRecord.print();
    fmt::print("beside the packaged references\n");
    isGood &= withReference.print();
  }
  fmt::print("calls      {} of the package{}\n", calls,
             skipped ? fmt::format("; {} of ops that it does not have", skipped) : "");
  if (runs || withRecord.compared() || withReference.compared())
    return isGood ? Success : InputRefused;
  fmt::print(stderr, "kpkg: error: no recorded call ran; `kpkg explain` says which instances can run one\n");
  return InputRefused;
}

ExitCode run(const ReplayOptions &options) {
  auto files = filesOf(options.folder);
  if (!files)
    return report(files.error());
  auto library = openPackage(options.package);
  if (!library)
    return report(library.error());
  Replay replay(*library, options);
  for (const std::string &path : *files) {
    auto file = RecordedFile::open(path);
    if (!file)
      return report(file.error());
    if (!options.op.empty() && options.op != file->op && !file->op.ends_with("::" + options.op))
      continue;
    if (Status status = replay.run(*file); !status)
      return report(status.error());
  }
  return replay.print();
}

} // namespace

void addReplay(CLI::App &app, int &exitCode) {
  auto *command = app.add_subcommand("replay", "Run recorded calls again, and compare their results");
  command->footer("Example: KPKG_RECORD=calls python serve.py && kpkg replay calls gemm.kpkg --instance all --compare\n"
                  "Without --compare nothing but the instances runs, for debuggers and sanitizers.");
  auto options = std::make_shared<ReplayOptions>();
  command->add_option("folder", options->folder, "The folder of KPKG_RECORD, or one of its files")->required();
  command->add_option("package", options->package, "The .kpkg file")->required();
  command
      ->add_option(
          "--instance", options->instance,
          "chosen: the one that the call takes; all: each that can run it; or a label of kpkg info --instances")
      ->capture_default_str();
  command->add_flag("--compare", options->compare, "Compare with the recorded results and the packaged references");
  command->add_option("--op", options->op, "Run calls of this op alone, such as kpkg::gemm or gemm");
  command->add_option("--device", options->device, "cpu, cuda or cuda:N; otherwise a GPU if one can run the call");
  command->callback([options, &exitCode] { exitCode = run(*options); });
}

} // namespace kpkg::command
