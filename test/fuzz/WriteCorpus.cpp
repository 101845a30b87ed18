// Writes the seeds of package_fuzz: the sample package in both forms, and every malformed file of the reader's tests.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/runtime/format/SamplePackages.h"
#include "test/runtime/package/SamplePackage.h"

#include <filesystem>
#include <fstream>

using namespace kpkg::test;

static void write(const std::filesystem::path &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

int main(int count, char **arguments) {
  if (count != 2)
    return 1;
  std::filesystem::path folder = arguments[1];
  std::filesystem::create_directories(folder);
  std::string sample = samplePackage();
  write(folder / "sample", "R" + sample);
  write(folder / "sample-sections", manifestOf(sample).dump() + '\0' + dataOf(sample));
  nlohmann::json manifest = sampleManifest();
  manifest["ops"][0]["backward"] = {{"op", "test::scale_transposed"},
                                    {"arguments", nlohmann::json::array({nlohmann::json::array({"gradient", 0})})}};
  std::string withBackward = samplePackage(manifest);
  write(folder / "backward-sections", manifestOf(withBackward).dump() + '\0' + dataOf(withBackward));
  write(folder / "valid-sections", manifestOf(validPackage()).dump() + '\0' + dataOf(validPackage()));
  for (const Malformed &file : malformedPackages())
    write(folder / file.name, "R" + file.bytes);
}
