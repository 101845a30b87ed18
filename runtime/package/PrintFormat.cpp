// Formats the text of a kernel's print from its format and value words.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/PrintFormat.h"

#include <bit>
#include <charconv>

namespace kpkg::package {

template <typename T> static std::string shortest(T value) {
  char buffer[64];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

static std::string formatWord(std::string_view type, uint64_t word) {
  if (type == "f32")
    return shortest(std::bit_cast<float>(uint32_t(word)));
  if (type == "f64")
    return shortest(std::bit_cast<double>(word));
  if (type == "u64")
    return shortest(word);
  if (type == "bool")
    return word & 1 ? "True" : "False";
  return shortest(int64_t(word));
}

std::string formatPrint(std::string_view format, std::span<const uint64_t> words) {
  std::string text;
  std::string_view type;
  size_t used = 0;
  while (!format.empty()) {
    size_t open = format.find('{'), close = format.find('}', open == format.npos ? 0 : open);
    if (open == format.npos || close == format.npos) {
      text += format;
      break;
    }
    text += format.substr(0, open);
    type = format.substr(open + 1, close - open - 1);
    text += used < words.size() ? formatWord(type, words[used]) : "?";
    ++used;
    format.remove_prefix(close + 1);
  }
  for (; used < words.size(); ++used)
    text += " " + formatWord(type, words[used]);
  return text;
}

} // namespace kpkg::package
