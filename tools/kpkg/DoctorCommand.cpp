// `kpkg doctor`: reports what is installed and what works, with advice for the rest.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/cache/CodeCache.h"
#include "compiler/codegen/nvptx/Disassemble.h"
#include "compiler/codegen/nvptx/Ptxas.h"
#include "compiler/diag/Diagnostics.h"
#include "compiler/diag/Render.h"
#include "compiler/driver/Compile.h"
#include "compiler/source/Source.h"
#include "runtime/device/cuda/Activity.h"
#include "tools/kpkg/Place.h"
#include "tools/kpkg/Report.h"
#include "llvm/Config/llvm-config.h"
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

namespace kpkg::command {

namespace {

/// Absent: kpkg works without it.
enum class State { Good, Absent, Bad };

struct Finding {
  State state;
  std::string subject;
  std::string text;
  std::string advice; ///< empty if good
};

using Findings = std::vector<Finding>;

/// The CUDA version of the PTX that kpkg writes.
constexpr int PtxCudaVersion = 13000;

std::string environmentText(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

std::string cudaVersion(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

void lookAtProcessor(Findings &findings) {
  std::vector<std::string> targets;
  for (size_t i = 0; const char *target = kpkg_cpu_target(i); ++i)
    targets.push_back(target);
  if (targets.empty())
    findings.push_back({State::Bad, "cpu", "this processor runs none of kpkg's CPU targets",
                        "x86-64-v3 (AVX2, FMA, F16C) or aarch64 is needed"});
  else
    findings.push_back(
        {State::Good, "cpu", fmt::format("{}; {} threads", fmt::join(targets, ", "), kpkg_cpu_threads()), ""});
}

/// Returns the driver's release, such as " 580.82.07", or an empty string if the system does not report it.
std::string driverRelease() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::smatch match;
  return std::regex_search(text, match, std::regex(R"(  (\d+\.\d+(\.\d+)?)  )")) ? " " + match[1].str() : "";
}

/// Returns the number of GPUs.
int lookAtGpus(Findings &findings) {
  auto count = cudaDeviceCount();
  if (!count || *count == 0) {
    findings.push_back(
        {State::Absent, "gpu", count ? "the NVIDIA driver sees no GPU" : count.error().message,
         "calls run on the CPU; a GPU needs NVIDIA's driver (580 or newer) and, in a container, access to the device"});
    return 0;
  }
  for (int32_t i = 0; i < *count; ++i) {
    std::string subject = fmt::format("cuda:{}", i);
    auto info = describeDevice(cudaDevice(i));
    if (!info) {
      findings.push_back({State::Bad, subject, info.error().message, "see what nvidia-smi says"});
      continue;
    }
    std::string text = fmt::format("{}, {}, {} multiprocessors, {:.1f} GiB, driver{} for CUDA {}", info->name,
                                   info->target, info->processors, double(info->memory_bytes) / (1 << 30),
                                   driverRelease(), cudaVersion(info->driver_version));
    if (info->driver_version < PtxCudaVersion)
      findings.push_back({State::Bad, subject, text,
                          fmt::format("kpkg's PTX is of CUDA {}, and ptxas of that version makes code that this driver "
                                      "may refuse: update the driver",
                                      cudaVersion(PtxCudaVersion))});
    else
      findings.push_back({State::Good, subject, text, ""});
  }
  return *count;
}

void lookAtToolkit(Findings &findings) {
  auto ptxas = compiler::Ptxas::find();
  if (ptxas)
    findings.push_back({State::Good, "ptxas", ptxas->path() + ", " + ptxas->version(), ""});
  else
    findings.push_back({State::Absent, "ptxas", llvm::toString(ptxas.takeError()),
                        "without it packages hold PTX, which the driver compiles at first use"});
  auto disassembler = compiler::findDisassembler();
  if (disassembler)
    findings.push_back({State::Good, "nvdisasm", *disassembler, ""});
  else
    findings.push_back(
        {State::Absent, "nvdisasm", llvm::toString(disassembler.takeError()), "only kpkg build --emit=sass needs it"});
}

void lookAtTracing(Findings &findings) {
  if (auto library = cuda::activityLibrary())
    findings.push_back({State::Good, "cupti", *library + ": profiles have the times of the kernels themselves", ""});
  else
    findings.push_back(
        {State::Absent, "cupti", library.error().message,
         "profiles then take times between events, some microseconds more; the CUDA toolkit and PyTorch bring it"});
}

void lookAtCache(Findings &findings) {
  compiler::CodeCache cache = compiler::CodeCache::fromEnvironment();
  if (cache.path().empty()) {
    findings.push_back({State::Absent, "cache", "no folder for compiled code",
                        "KPKG_CACHE_DIR names one; without it every build starts afresh"});
    return;
  }
  std::string key = compiler::CodeCache::keyOf({"kpkg doctor"});
  cache.write(key, "kept");
  if (cache.read(key) == "kept")
    findings.push_back({State::Good, "cache", cache.path(), ""});
  else
    findings.push_back({State::Bad, "cache", cache.path() + " cannot be written",
                        "set KPKG_CACHE_DIR to a folder of yours, or to nothing"});
}

void lookAtPackages(Findings &findings) {
  std::string trust = environmentText("KPKG_TRUST");
  findings.push_back(
      {State::Good, "trust",
       trust.empty() ? "digest: sections are used only when their digests fit (KPKG_TRUST changes it)" : trust, ""});
  std::string path = environmentText("KPKG_PATH");
  if (path.empty()) {
    findings.push_back({State::Absent, "KPKG_PATH", "not set", "packages are then opened by their own paths"});
    return;
  }
  Registry registry;
  if (Status status = registry.addPath(path); !status)
    findings.push_back(
        {State::Bad, "KPKG_PATH", status.error().message, "remove what is no package, or build it again"});
  else
    findings.push_back({State::Good, "KPKG_PATH", fmt::format("{}: {} ops", path, registry.ops().size()), ""});
}

constexpr const char *Source = R"k(
@kernel
def doubled_blocks(x: Tensor[float32, 1], mut y: Tensor[float32, 1]):
    y.tile[256](block_idx.x).store(x.tile[256](block_idx.x).load() * 2.0)

@register.op("doctor::doubled")
def doubled(x: Tensor) -> Tensor:
    var y = empty_like(x)
    launch doubled_blocks(x, y, grid=ceildiv(x.numel(), 256))
    return y
)k";

/// Returns an error text, or an empty string if the op doubles its input there.
std::string tryOn(const Result<Place> &place, const Op &op) {
  if (!place)
    return place.error().message;
  constexpr int64_t count = 1000;
  Tensor x = Tensor::empty(DType::Float32, {count});
  for (int64_t i = 0; i < count; ++i)
    x.as<float>()[i] = float(i);
  auto there = moveTo(*place, {{"x", x}});
  if (!there)
    return there.error().message;
  auto made = op.call(place->stream, {}, *there);
  if (made)
    made = toHost(*place, *made);
  if (!made)
    return made.error().message;
  for (int64_t i = 0; i < count; ++i)
    if ((*made)[0].as<float>()[i] != float(2 * i))
      return fmt::format("element {} of the result is {}, not {}", i, (*made)[0].as<float>()[i], 2 * i);
  return "";
}

/// Compiles a kernel for this machine and runs it on every device.
void tryKernel(Findings &findings, int gpus) {
  compiler::CompileOptions options;
  options.texts = {{"doctor.k", Source}};
  options.jobs = 1;
  compiler::SourceManager sources;
  compiler::DiagnosticEngine diags;
  auto package = compiler::compile(options, sources, diags);
  std::string failure = !package    ? llvm::toString(package.takeError())
                        : !*package ? compiler::renderText(diags, sources)
                                    : "";
  if (!failure.empty()) {
    findings.push_back({State::Bad, "compiler", failure, "a kernel of three lines should compile: please report it"});
    return;
  }
  auto library = Library::openMemory(**package, "doctor.kpkg");
  auto op = library ? library->op("doubled") : library.error();
  if (!op) {
    findings.push_back({State::Bad, "compiler", op.error().message, "a package made here should open here"});
    return;
  }
  for (int i = -1; i < gpus; ++i) {
    std::string subject = i < 0 ? "run cpu" : fmt::format("run cuda:{}", i);
    std::string wrong = tryOn(i < 0 ? hostPlace() : cudaPlace(i), *op);
    if (wrong.empty())
      findings.push_back({State::Good, subject, "a kernel compiled here gives the right result", ""});
    else
      findings.push_back({State::Bad, subject, wrong, "a kernel compiled here should run here"});
  }
}

ExitCode doctor(bool asJson) {
  Findings findings;
  // Collects variables that the runtime does not understand, which are log warnings at their first use.
  std::vector<std::string> warnings;
  auto keep = [](void *context, kpkg_log_level level, const char *message) {
    if (level <= KPKG_LOG_WARN)
      static_cast<std::vector<std::string> *>(context)->push_back(message);
  };
  kpkg_set_log(keep, &warnings);
  findings.push_back({State::Good, "kpkg", fmt::format("{}, LLVM {}", kpkg_version(), LLVM_VERSION_STRING), ""});
  lookAtProcessor(findings);
  int gpus = lookAtGpus(findings);
  lookAtToolkit(findings);
  if (gpus)
    lookAtTracing(findings);
  lookAtCache(findings);
  lookAtPackages(findings);
  tryKernel(findings, gpus);
  kpkg_set_log(nullptr, nullptr);
  for (const std::string &warning : warnings)
    findings.push_back({State::Bad, "setting", warning, "correct or unset the variable"});

  bool isGood = true;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding &finding : findings) {
    isGood &= finding.state != State::Bad;
    const char *state = finding.state == State::Good ? "ok" : finding.state == State::Absent ? "absent" : "not ok";
    list.push_back(
        {{"state", state}, {"subject", finding.subject}, {"text", finding.text}, {"advice", finding.advice}});
    if (asJson)
      continue;
    fmt::print("{:<7} {:<11} {}\n", state, finding.subject, finding.text);
    if (!finding.advice.empty())
      fmt::print("{:<20}-> {}\n", "", finding.advice);
  }
  if (asJson)
    fmt::print("{}\n", list.dump(1));
  return isGood ? Success : WorldError;
}

} // namespace

void addDoctor(CLI::App &app, int &exitCode) {
  auto *command =
      app.add_subcommand("doctor", "Say what is installed on this machine, what works, and what to do about the rest");
  command->footer("Example: kpkg doctor\nEach line is ok, absent (kpkg can do without) or not ok; the exit code is 3 "
                  "when something is not ok.\n"
                  "A kernel is compiled for this machine and run on the CPU and on every GPU.");
  auto asJson = std::make_shared<bool>(false);
  command->add_flag("--json", *asJson, "A JSON list of {state, subject, text, advice}");
  command->callback([asJson, &exitCode] { exitCode = doctor(*asJson); });
}

} // namespace kpkg::command
