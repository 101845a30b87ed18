// Parses calls written as text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg-plan/CallText.h"
#include <charconv>
#include <cstdlib>

namespace kpkg {

using plan::Argument;

namespace {

class Parser {
public:
  Parser(std::string_view text, TextCall &call) : rest(text), call(call) {}
  std::string error;

  bool run() {
    skipSpace();
    while (!rest.empty()) {
      if (!argument())
        return false;
      skipSpace();
      if (!rest.empty() && !take(','))
        return fail("expected `,`");
      skipSpace();
    }
    for (Argument &argument : call.arguments)
      if (argument.kind == Argument::Kind::TensorList)
        argument.first += call.arguments.size();
    call.arguments.insert(call.arguments.end(), listed.begin(), listed.end());
    return true;
  }

private:
  bool fail(std::string what) {
    error = what + " before \"" + std::string(rest) + "\"";
    return false;
  }
  void skipSpace() {
    while (!rest.empty() && rest.front() == ' ')
      rest.remove_prefix(1);
  }
  bool take(char c) {
    if (rest.empty() || rest.front() != c)
      return false;
    rest.remove_prefix(1);
    return true;
  }
  std::string_view word() {
    size_t end = rest.find_first_of(" ,[]@");
    std::string_view result = rest.substr(0, end);
    rest.remove_prefix(result.size());
    return result;
  }
  bool list(std::vector<int64_t> &out) {
    if (!take('['))
      return fail("expected `[`");
    for (skipSpace(); !take(']'); skipSpace()) {
      std::string_view number = word();
      int64_t value = 0;
      auto [end, status] = std::from_chars(number.data(), number.data() + number.size(), value);
      if (number.empty() || status != std::errc() || end != number.data() + number.size())
        return fail("expected an integer");
      out.push_back(value);
      skipSpace();
      take(',');
    }
    return true;
  }
  bool tensor(plan::DType dtype, Argument &out) {
    std::vector<int64_t> &shape = call.numbers.emplace_back();
    if (!list(shape))
      return false;
    out.kind = Argument::Kind::Tensor;
    out.tensor = {dtype, static_cast<int32_t>(shape.size()), shape.data(), nullptr};
    if (!take('@'))
      return true;
    std::vector<int64_t> &strides = call.numbers.emplace_back();
    if (!list(strides))
      return false;
    out.tensor.strides = strides.data();
    return strides.size() == shape.size() || fail("expected as many strides as extents");
  }
  /// Parses tensors up to `]`. They become arguments behind all others.
  bool tensorList(Argument &out) {
    out.kind = Argument::Kind::TensorList;
    out.first = listed.size();
    for (skipSpace(); !take(']'); skipSpace()) {
      if (!tensor(plan::dtypeFromName(word()), listed.emplace_back()))
        return false;
      ++out.count;
      skipSpace();
      take(',');
    }
    return true;
  }
  bool argument() {
    Argument &out = call.arguments.emplace_back();
    if (rest.starts_with("tensors[")) {
      rest.remove_prefix(8);
      return tensorList(out);
    }
    if (rest.front() == '[') {
      std::vector<int64_t> &entries = call.numbers.emplace_back();
      if (!list(entries))
        return false;
      out.kind = Argument::Kind::List;
      out.list = entries;
      return true;
    }
    if (take('"')) {
      size_t end = rest.find('"');
      if (end == std::string_view::npos)
        return fail("expected a closing quote");
      out.kind = Argument::Kind::String;
      out.string = call.strings.emplace_back(rest.substr(0, end));
      rest.remove_prefix(end + 1);
      return true;
    }
    std::string_view text = word();
    if (text == "None")
      return true;
    if (text == "True" || text == "False") {
      out.kind = Argument::Kind::Bool;
      out.integer = text == "True";
      return true;
    }
    if (plan::DType dtype = plan::dtypeFromName(text); dtype != plan::DType::None) {
      if (!rest.empty() && rest.front() == '[')
        return tensor(dtype, out);
      out.kind = Argument::Kind::DType;
      out.integer = static_cast<int64_t>(dtype);
      return true;
    }
    auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), out.integer);
    if (!text.empty() && status == std::errc() && end == text.data() + text.size()) {
      out.kind = Argument::Kind::Int;
      return true;
    }
    std::string copy(text);
    char *stop = nullptr;
    out.real = std::strtod(copy.c_str(), &stop);
    out.integer = 0;
    if (copy.empty() || *stop)
      return fail("`" + copy + "` is no argument");
    out.kind = Argument::Kind::Float;
    return true;
  }

  std::string_view rest;
  TextCall &call;
  std::vector<Argument> listed; ///< tensors of lists
};

} // namespace

bool parseCall(std::string_view text, TextCall &call, std::string &error) {
  Parser parser(text, call);
  bool ok = parser.run();
  error = parser.error;
  return ok;
}

} // namespace kpkg
