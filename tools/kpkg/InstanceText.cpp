// Describes a package's instances in words.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/InstanceText.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kpkg::command {

std::string assigned(const std::string &name, const ManifestPart &value) {
  return fmt::format("{}={}", name, value.text("none"));
}

std::string titleOf(const ManifestPart &manifest, const ManifestPart &instance) {
  ManifestPart kernel = manifest["kernels"][size_t(instance["kernel"].number())];
  std::vector<std::string> params;
  for (size_t i = 0; const ManifestPart &value : instance["params"].items())
    params.push_back(assigned(kernel["params"][i++]["name"].text(), value));
  return fmt::format("{}[{}] {} {}", kernel["name"].text(), fmt::join(params, ", "), instance["variant"].text(""),
                     instance["target"].text());
}

std::vector<std::string> describeLaunch(const ManifestPart &launch) {
  std::vector<std::string> traits;
  auto add = [&](const char *key, const char *format) {
    if (uint64_t number = launch[key].number(); number > 1)
      traits.push_back(fmt::format(fmt::runtime(format), number));
  };
  add("threads", "{} threads");
  add("registers", "{} registers");
  uint64_t spills = launch["spills"].number();
  traits.push_back(spills ? fmt::format("{} bytes of spills", spills) : std::string("no spills"));
  add("shared", "{} bytes of shared memory");
  add("blocks", "{} blocks in each CTA");
  add("cluster", "clusters of {} CTAs");
  if (uint64_t occupancy = launch["occupancy"].number())
    traits.push_back(fmt::format("{} CTAs on each multiprocessor", occupancy));
  if (launch["overlaps"].isTrue())
    traits.push_back("overlaps the kernel before it");
  if (launch["counters"].number())
    traits.push_back("takes tiles from a counter");
  for (const ManifestPart &hint : launch["dropped"].items())
    traits.push_back("without " + hint["hint"].text());
  return traits;
}

} // namespace kpkg::command
