// Expands names in `--input` texts that stand for several values.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/bench/Sweep.h"
#include <algorithm>
#include <fmt/format.h>
#include <functional>

namespace kpkg::command::bench {

namespace {

/// Limit of calls, beyond which the sweep is probably a typing error.
constexpr size_t MaxPoints = 1000;

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isWordPart(char c) { return isLetter(c) || (c >= '0' && c <= '9'); }

std::string_view trim(std::string_view text) {
  size_t first = text.find_first_not_of(' ');
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// Returns `value` with `replace` applied to every word that may be the name of a sweep.
std::string mapWords(std::string_view value, const std::function<std::string(std::string_view)> &replace) {
  std::string mapped;
  for (size_t i = 0; i < value.size();) {
    size_t end = i + 1;
    if (value[i] == '\'') {
      end = std::min(value.find('\'', end), value.size() - 1) + 1;
      mapped += value.substr(i, end - i);
    } else if (isWordPart(value[i])) {
      while (end < value.size() && isWordPart(value[end]))
        ++end;
      std::string_view word = value.substr(i, end - i);
      bool isName = isLetter(word[0]) && (i == 0 || value[i - 1] != '.');
      mapped += isName ? replace(word) : std::string(word);
    } else {
      mapped += value[i];
    }
    i = end;
  }
  return mapped;
}

struct Sweep {
  std::string name;
  std::vector<std::string> values;
};

Result<Sweep> parse(const std::string &text) {
  auto refuse = [&](const std::string &why) {
    return Error{KPKG_ERROR_USE, fmt::format("--sweep \"{}\": {}", text, why), {}, {}, {}};
  };
  Sweep sweep{inputName(text), {}};
  if (sweep.name.empty() || !isLetter(sweep.name[0]) || !std::all_of(sweep.name.begin(), sweep.name.end(), isWordPart))
    return refuse("write NAME=value,value");
  std::string_view rest = std::string_view(text).substr(text.find('=') + 1);
  while (true) {
    size_t comma = rest.find(',');
    std::string_view value = trim(rest.substr(0, comma));
    if (value.empty())
      return refuse("a value is missing");
    sweep.values.emplace_back(value);
    if (comma == std::string_view::npos)
      return sweep;
    rest = rest.substr(comma + 1);
  }
}

bool isUsed(const std::string &name, const std::vector<std::string> &inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [&](const std::string &input) {
    bool found = false;
    mapWords(std::string_view(input).substr(std::min(input.find('='), input.size())), [&](std::string_view word) {
      found |= word == name;
      return std::string(word);
    });
    return found;
  });
}

} // namespace

std::string inputName(std::string_view input) {
  size_t equals = input.find('=');
  return equals == std::string_view::npos ? std::string() : std::string(trim(input.substr(0, equals)));
}

std::string substitute(std::string_view input, const SweepPoint &point) {
  size_t start = std::min(input.find('='), input.size());
  return std::string(input.substr(0, start)) + mapWords(input.substr(start), [&](std::string_view word) {
           for (const auto &[name, value] : point)
             if (word == name)
               return value;
           return std::string(word);
         });
}

Result<std::vector<SweepPoint>> expandSweeps(const std::vector<std::string> &texts,
                                             const std::vector<std::string> &inputs) {
  std::vector<Sweep> sweeps;
  size_t count = 1;
  for (const std::string &text : texts) {
    auto sweep = parse(text);
    if (!sweep)
      return sweep.error();
    for (const Sweep &other : sweeps)
      if (other.name == sweep->name)
        return Error{KPKG_ERROR_USE,
                     fmt::format("--sweep {} is given twice; list all its values in one", other.name),
                     {},
                     {},
                     {}};
    if (!isUsed(sweep->name, inputs))
      return Error{KPKG_ERROR_USE, fmt::format("--sweep {}: no --input uses this name", sweep->name), {}, {}, {}};
    count *= std::min(sweep->values.size(), MaxPoints + 1);
    if (count > MaxPoints)
      return Error{KPKG_ERROR_USE, fmt::format("the sweeps have more than {} combinations", MaxPoints), {}, {}, {}};
    sweeps.push_back(std::move(*sweep));
  }
  std::vector<SweepPoint> points(1);
  for (const Sweep &sweep : sweeps) {
    std::vector<SweepPoint> longer;
    for (const SweepPoint &point : points)
      for (const std::string &value : sweep.values) {
        longer.push_back(point);
        longer.back().emplace_back(sweep.name, value);
      }
    points = std::move(longer);
  }
  return points;
}

} // namespace kpkg::command::bench
