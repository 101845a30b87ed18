// Parses the texts of `--input`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/InputText.h"
#include "tools/kpkg/Elements.h"
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <optional>
#include <random>

namespace kpkg::command {

namespace {

/// Limit of bytes of a tensor, beyond which the text is probably a typing error.
constexpr int64_t MaxBytes = int64_t(1) << 36;

Error refuse(std::string_view text, const std::string &why) {
  return Error{KPKG_ERROR_USE, fmt::format("--input \"{}\": {}", text, why), {}, {}, {}};
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ')
    text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ')
    text.remove_suffix(1);
  return text;
}

/// Splits at commas outside of parentheses and brackets.
std::vector<std::string_view> splitAtCommas(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!trim(text).empty()) {
    size_t comma = 0;
    for (int depth = 0; comma < text.size() && (text[comma] != ',' || depth > 0); ++comma)
      depth += text[comma] == '(' || text[comma] == '[' ? 1 : text[comma] == ')' || text[comma] == ']' ? -1 : 0;
    comma = comma == text.size() ? text.npos : comma;
    parts.push_back(trim(text.substr(0, comma)));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return parts;
}

template <typename T> std::optional<T> parseNumber(std::string_view text) {
  T value;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

/// Reads numbers in brackets, such as "[[1,2],[3,4]]", of the dimensions from `depth` on. The first ones say the shape.
/// Returns what is wrong with the text, or nothing.
std::string readNumbers(std::string_view text, size_t depth, std::vector<int64_t> &shape,
                        std::vector<double> &numbers) {
  if (!text.starts_with("[")) {
    auto number = parseNumber<double>(text);
    if (!number)
      return fmt::format("'{}' is not a number", text);
    numbers.push_back(*number);
    return depth == shape.size() ? "" : fmt::format("{} stands beside lists", text);
  }
  if (!text.ends_with("]"))
    return "a ']' is missing";
  std::vector<std::string_view> parts = splitAtCommas(text.substr(1, text.size() - 2));
  if (numbers.empty() && depth == shape.size() && depth < KPKG_MAX_RANK)
    shape.push_back(int64_t(parts.size()));
  else if (depth >= shape.size())
    return fmt::format("{} stands beside numbers", text);
  else if (shape[depth] != int64_t(parts.size()))
    return fmt::format("{} has another length than the list before it", text);
  for (std::string_view part : parts)
    if (std::string why = readNumbers(part, depth + 1, shape, numbers); !why.empty())
      return why;
  return "";
}

/// Fills a tensor with the named generator. Returns false if there is no such generator.
bool fill(const Tensor &tensor, std::string_view generator, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  double count = 0;
  std::function<double()> next;
  if (generator == "randn")
    next = [&] { return normal(random); };
  else if (generator == "rand")
    next = [&] { return uniform(random); };
  else if (generator == "zeros")
    next = [] { return 0.0; };
  else if (generator == "ones")
    next = [] { return 1.0; };
  else if (generator == "arange")
    next = [&] { return count++; };
  else
    return false;
  forEachElement(tensor, [&](void *address) { writeElement(tensor.dtype(), address, next()); });
  return true;
}

Result<Value> makeTensor(std::string_view whole, std::string_view text, uint64_t seed) {
  bool transposed = text.ends_with(".T");
  if (transposed)
    text.remove_suffix(2);
  size_t open = text.find('(');
  if (!text.ends_with(")"))
    return refuse(whole, "a ')' is missing");
  std::vector<int64_t> shape;
  DType dtype = DType::Float32;
  std::string_view generator = trim(text.substr(0, open));
  bool isGiven = generator == "tensor";
  std::vector<double> numbers;
  for (std::string_view part : splitAtCommas(text.substr(open + 1, text.size() - open - 2))) {
    if (isGiven && shape.empty() && part.starts_with("[")) {
      if (std::string why = readNumbers(part, 0, shape, numbers); !why.empty())
        return refuse(whole, why);
    } else if (auto extent = parseNumber<int64_t>(part); extent && *extent >= 0 && !isGiven)
      shape.push_back(*extent);
    else if (auto named = parseDType(part); named && isReadable(*named))
      dtype = *named;
    else if (auto given = parseNumber<uint64_t>(part.substr(std::min<size_t>(5, part.size())));
             part.starts_with("seed=") && given)
      seed = *given;
    else
      return refuse(whole, fmt::format("'{}' is not {}, a dtype or seed=N", part,
                                       isGiven ? "numbers in brackets, tensor([1,2])" : "an extent"));
  }
  if (isGiven && shape.empty())
    return refuse(whole, "numbers in brackets are missing, tensor([1,2])");
  for (double number : numbers)
    if (!dtypeIsFloat(dtype) && number != std::trunc(number))
      return refuse(whole, fmt::format("{} is not an integer", number));
  int64_t count = 1;
  for (int64_t extent : shape)
    if (__builtin_mul_overflow(count, extent, &count) || count > MaxBytes || dtypeBytes(dtype, count) > MaxBytes)
      return refuse(whole, fmt::format("a tensor of shape [{}] is too large", fmt::join(shape, ", ")));
  if (shape.size() > KPKG_MAX_RANK)
    return refuse(whole, fmt::format("rank {} is more than {}", shape.size(), KPKG_MAX_RANK));
  Tensor tensor = Tensor::empty(dtype, shape);
  if (isGiven) {
    auto next = numbers.begin();
    forEachElement(tensor, [&](void *address) { writeElement(dtype, address, *next++); });
  } else if (!fill(tensor, generator, seed)) {
    return refuse(whole, fmt::format("'{}' is not one of randn, rand, zeros, ones, arange, tensor", generator));
  }
  if (!transposed)
    return Value(tensor);
  if (shape.size() < 2)
    return refuse(whole, ".T needs two dimensions");
  auto strides = tensor.strides();
  std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  std::swap(strides[shape.size() - 1], strides[shape.size() - 2]);
  return Value(Tensor(tensor.data(), dtype, shape, strides, Cpu, tensor.owner()));
}

/// Makes a list of tensors. Random ones differ by their seeds.
Result<Value> makeTensors(std::string_view whole, std::string_view text, uint64_t seed) {
  constexpr uint64_t stride = 1000003; // seeds of other arguments are near
  std::vector<Tensor> tensors;
  for (std::string_view part : splitAtCommas(text)) {
    if (part.find('(') == std::string_view::npos)
      return refuse(whole, fmt::format("'{}' is no tensor; write [randn(512,f32), zeros(3,4)]", part));
    auto tensor = makeTensor(whole, part, seed + stride * tensors.size());
    if (!tensor)
      return tensor.error();
    tensors.push_back(tensor->asTensor());
  }
  return Value(std::move(tensors));
}

Result<Value> makeValue(std::string_view whole, std::string_view text, uint64_t seed) {
  if (text == "none")
    return Value();
  if (text == "true" || text == "false")
    return Value(text == "true");
  if (auto integer = parseNumber<int64_t>(text))
    return Value(*integer);
  if (auto real = parseNumber<double>(text))
    return Value(*real);
  if (auto dtype = parseDType(text))
    return Value(*dtype);
  if (text.size() >= 2 && text.front() == '\'' && text.back() == '\'')
    return Value(std::string(text.substr(1, text.size() - 2)));
  if (text.starts_with("[") && text.ends_with("]")) {
    if (text.find('(') != std::string_view::npos)
      return makeTensors(whole, text.substr(1, text.size() - 2), seed);
    std::vector<int64_t> list;
    for (std::string_view part : splitAtCommas(text.substr(1, text.size() - 2))) {
      auto entry = parseNumber<int64_t>(part);
      if (!entry)
        return refuse(whole, fmt::format("'{}' is not an integer", part));
      list.push_back(*entry);
    }
    return Value(std::move(list));
  }
  if (text.find('(') != std::string_view::npos)
    return makeTensor(whole, text, seed);
  return refuse(
      whole,
      fmt::format(
          "'{}' is no value; write randn(512,512,f32), 0.5, -1, true, none, [2,3], f32, 'text' or a list of tensors",
          text));
}

} // namespace

std::optional<DType> parseDType(std::string_view text) {
  DType dtype = dtypeFromName(text);
  // Short names: f32 is float32, and u8 is uint8.
  size_t digits = text.find_first_of("0123456789");
  for (auto [letters, word] : {std::pair("f", "float"), {"bf", "bfloat"}, {"i", "int"}, {"u", "uint"}})
    if (digits != text.npos && text.substr(0, digits) == letters)
      dtype = dtypeFromName(word + std::string(text.substr(digits)));
  return dtype == DType::None ? std::nullopt : std::optional(dtype);
}

Result<Named> parseInput(std::string_view text, uint64_t seed) {
  size_t equals = text.find('=');
  if (equals == std::string_view::npos || trim(text.substr(0, equals)).empty())
    return refuse(text, "write name=value");
  auto value = makeValue(text, trim(text.substr(equals + 1)), seed);
  if (!value)
    return value.error();
  return Named(std::string(trim(text.substr(0, equals))), *value);
}

Result<std::vector<Named>> parseInputs(const std::vector<std::string> &texts, uint64_t seed) {
  std::vector<Named> all;
  for (size_t i = 0; i < texts.size(); ++i) {
    auto input = parseInput(texts[i], seed + i);
    if (!input)
      return input.error();
    all.push_back(*input);
  }
  return all;
}

} // namespace kpkg::command
