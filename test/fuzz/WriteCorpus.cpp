// Writes the seeds of reader_fuzz, manifest_fuzz and package_fuzz: sample packages, whole and with single ops, and
// every malformed file of the reader's tests.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/Writer.h"
#include "test/runtime/format/SamplePackages.h"
#include "test/runtime/package/SamplePackage.h"

#include <filesystem>
#include <fstream>

using namespace kpkg::test;
using nlohmann::json;

/// Larger files cost more runs than they find.
static constexpr size_t maxSeedBytes = 8192;

static std::filesystem::path root;

static void write(const char *target, const std::string &name, const std::string &bytes) {
  std::filesystem::create_directories(root / target);
  if (bytes.size() <= maxSeedBytes)
    std::ofstream(root / target / name, std::ios::binary) << bytes;
}

/// Writes a package in the forms of all targets.
static void writePackage(const std::string &name, const json &manifest, const std::string &tuning = {}) {
  std::string file = samplePackage(manifest);
  write("package", name, manifestOf(file).dump() + '\0' + dataOf(file));
  json described = manifestOf(file);
  described["sections"] = json::array();
  write("manifest", name, described.dump() + '\0' + tuning);
}

/// Returns a package with a signature.
static std::string signedPackage() {
  kpkg::format::Writer writer;
  writer.add("docs/a", "docs", std::string(300, 'a')).value();
  kpkg::format::SecretKey key = kpkg::format::secretKeyFromSeed({1, 2, 3});
  return writer.finish({{"producer", {{"name", "test"}}}}, &key).value();
}

/// Returns the sample with one of its ops, and only the kernel and instance of it.
static json withOneOp(size_t op, size_t kernel) {
  json manifest = sampleManifest();
  manifest["ops"] = json::array({manifest["ops"][op]});
  manifest["kernels"] = json::array({manifest["kernels"][kernel]});
  json instances = json::array();
  for (json instance : manifest["instances"])
    if (instance["kernel"] == kernel && instances.size() < 2) {
      instance["kernel"] = 0;
      instances.push_back(instance);
    }
  manifest["instances"] = instances;
  return manifest;
}

/// Adds what the sample lacks: a GPU's launch, tuned parameters, gradients, rules of PyTorch.
static json withEverything() {
  json manifest = withOneOp(0, 0);
  manifest["kernels"][0]["params"][1]["tuned"] = true;
  json &instance = manifest["instances"][0];
  instance["target"] = "sm_90a";
  instance["section"] = sampleImage;
  instance["launch"] = {{"threads", 128}, {"blocks", 1}, {"shared", 1024}, {"registers", 32}};
  instance["flops"] = {{{"count", 2.0}, {"factors", {{"dim", 0, 0}, {"clip", 0, 1, 64}, {"blocks"}}}}};
  json &op = manifest["ops"][0];
  op["torch"] = {{"autocast", "float32"}};
  op["backward"] = {{"op", op["name"]}, {"arguments", json::array({json::array({"gradient", 0})})}};
  return manifest;
}

int main(int count, char **arguments) {
  if (count != 2)
    return 1;
  root = arguments[1];
  const json sample = sampleManifest();
  const size_t kernelOf[] = {0, 3, 0, 1, 1, 1, 2, 0};
  for (size_t op = 0; op < std::size(kernelOf); ++op)
    writePackage("op-" + std::to_string(op), withOneOp(op, kernelOf[op]));
  writePackage(
      "everything", withEverything(),
      R"({"format":1,"rows":[{"choice":{"COLS":64},"device":"x","kernel":"scale_rows","params":{"T":"float32"},)"
      R"("shapes":[[4,4],[4,4],[],[4]],"target":"sm_90a","variant":"any"}]})");
  write("package", "sample", "R" + samplePackage());
  write("reader", "valid", validPackage());
  write("reader", "signed", signedPackage());
  write("package", "valid", manifestOf(validPackage()).dump() + '\0' + dataOf(validPackage()));
  for (const Malformed &file : malformedPackages())
    write("reader", file.name, file.bytes);
}
