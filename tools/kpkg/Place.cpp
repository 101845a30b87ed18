// Selects where a command runs calls: the host or a GPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/Place.h"
#include <charconv>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kpkg::command {

namespace {

bool isTensor(const Value &value) { return value.asTensor().dtype() != DType::None; }

bool hasTensor(const std::vector<Named> &named) {
  for (const Named &argument : named)
    if (isTensor(argument.second) || !argument.second.asTensors().empty())
      return true;
  return false;
}

Result<Place> usePlace(const std::string &text) {
  Error error = {KPKG_ERROR_USE, fmt::format("--device {}: write cpu, cuda or cuda:N", text), {}, {}, {}};
  if (text == "cpu")
    return hostPlace();
  if (text == "cuda")
    return cudaPlace(0);
  std::string_view number = text;
  if (!number.starts_with("cuda:"))
    return error;
  number.remove_prefix(5);
  int32_t index = 0;
  auto [end, failure] = std::from_chars(number.data(), number.data() + number.size(), index);
  if (failure != std::errc() || end != number.data() + number.size() || index < 0)
    return error;
  return cudaPlace(index);
}

} // namespace

Result<Place> hostPlace() {
  auto info = describeDevice(Cpu);
  if (!info)
    return info.error();
  Place place;
  place.name = fmt::format("CPU ({}, {} thread{})", info->target, info->processors, info->processors == 1 ? "" : "s");
  return place;
}

Result<Place> cudaPlace(int32_t index) {
  Place place;
  place.device = cudaDevice(index);
  auto info = describeDevice(place.device);
  if (!info)
    return info.error();
  auto stream = Stream::create(place.device);
  if (!stream)
    return stream.error();
  place.stream = std::move(*stream);
  place.name = fmt::format("cuda:{}, {} ({}, {} multiprocessors)", index, info->name, info->target, info->processors);
  return place;
}

std::string whyNotOn(kpkg_device device, const Op &op, const std::vector<Named> &named) {
  // Resolving a call needs no memory.
  std::vector<Named> described;
  for (const Named &argument : named) {
    const Tensor &tensor = argument.second.asTensor();
    described.push_back(argument);
    auto withoutMemory = [&](const Tensor &given) {
      return Tensor(nullptr, given.dtype(), given.shape(), given.strides(), device, nullptr);
    };
    if (isTensor(argument.second))
      described.back().second = withoutMemory(tensor);
    std::vector<Tensor> list;
    for (const Tensor &each : argument.second.asTensors())
      list.push_back(withoutMemory(each));
    if (argument.second.isTensorList())
      described.back().second = std::move(list);
  }
  auto text = op.explain({}, described, KPKG_JSON);
  if (!text)
    return text.error().message;
  auto resolution = nlohmann::json::parse(*text);
  std::string reason = resolution.value("refused", "no package has the op");
  for (const auto &package : resolution["packages"]) {
    if (package.value("runs", false))
      return "";
    reason = package.value("error", reason);
    for (const auto &launch : package.value("launches", nlohmann::json::array()))
      if (launch.contains("error"))
        reason = launch["error"];
  }
  return reason;
}

Result<Place> choosePlace(const std::string &text, const Op &op, const std::vector<Named> &named) {
  if (!text.empty())
    return usePlace(text);
  auto count = cudaDeviceCount();
  std::string why;
  if (!count)
    why = count.error().message;
  else if (*count == 0)
    why = "the NVIDIA driver sees no GPU";
  else if (!hasTensor(named))
    why = "no argument is a tensor";
  else
    why = whyNotOn(cudaDevice(), op, named);
  if (why.empty())
    return cudaPlace(0);
  auto place = hostPlace();
  if (place)
    place->why = std::move(why);
  return place;
}

Result<std::vector<Named>> moveTo(const Place &place, const std::vector<Named> &named) {
  if (!place.isCuda())
    return named;
  std::vector<Named> moved;
  for (const Named &argument : named) {
    moved.push_back(argument);
    if (argument.second.isTensorList()) {
      std::vector<Tensor> list;
      for (const Tensor &each : argument.second.asTensors()) {
        auto tensor = each.to(place.device, place.stream);
        if (!tensor)
          return tensor.error();
        list.push_back(std::move(*tensor));
      }
      moved.back().second = std::move(list);
    }
    if (!isTensor(argument.second))
      continue;
    auto tensor = argument.second.asTensor().to(place.device, place.stream);
    if (!tensor)
      return tensor.error();
    moved.back().second = std::move(*tensor);
  }
  return moved;
}

Result<std::vector<Tensor>> toHost(const Place &place, const std::vector<Tensor> &tensors) {
  if (!place.isCuda())
    return tensors;
  if (Status status = place.stream.synchronize(); !status)
    return status.error();
  std::vector<Tensor> moved;
  for (const Tensor &tensor : tensors) {
    if (tensor.dtype() == DType::None) { // a result that is None
      moved.push_back(tensor);
      continue;
    }
    auto there = tensor.to(Cpu, place.stream);
    if (!there)
      return there.error();
    moved.push_back(std::move(*there));
  }
  return moved;
}

} // namespace kpkg::command
