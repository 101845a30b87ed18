// Reads records of the manifest from JSON, with limits. Files are not trusted.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/manifest/Read.h"
#include "runtime/manifest/Schema.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace kpkg::manifest {

using nlohmann::json;

std::string Place::str() const {
  if (!outer)
    return "";
  std::string text = outer->str();
  if (key.empty())
    return text + "[" + std::to_string(index) + "]";
  return text + (text.empty() ? "" : ".") + std::string(key);
}

namespace {

std::string nameOf(const Place &place) { return place.outer ? place.str() : "the manifest"; }

[[noreturn]] void refuse(const json &value, const Place &place, const std::string &expected) {
  constexpr size_t most = 80;
  std::string found = value.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
  if (found.size() > most)
    found = found.substr(0, most) + "...";
  throw Refusal{nameOf(place) + " is " + found + ", expected " + expected};
}

std::string rangeOf(const Limit &limit) {
  std::string from = limit.isOpen ? "above " + std::to_string(limit.least) : "from " + std::to_string(limit.least);
  return limit.isPowerOfTwo ? "power of two up to " + std::to_string(limit.most)
                            : from + (limit.isOpen ? " and at most " : " to ") + std::to_string(limit.most);
}

template <class T> void readValue(const json &value, T &into, const Limit &limit, const Place &place);

template <class T> void readInteger(const json &value, T &into, const Limit &limit, const Place &place) {
  bool isInt64 =
      value.is_number_integer() && !(value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(INT64_MAX));
  int64_t number = isInt64 ? value.get<int64_t>() : 0;
  int64_t least = std::is_unsigned_v<T> ? std::max<int64_t>(limit.least, 0) : limit.least;
  if (!isInt64 || number < least || number > limit.most || (limit.isPowerOfTwo && (number & (number - 1))))
    refuse(value, place, (limit.isPowerOfTwo ? "a " : "an integer ") + rangeOf(limit.each(least, limit.most)));
  into = T(number);
}

void readNumber(const json &value, double &into, const Limit &limit, const Place &place) {
  bool isLimited = limit.most != Limit{}.most;
  into = value.is_number() ? value.get<double>() : NAN;
  if (!std::isfinite(into) || (isLimited && (into > double(limit.most) || into < double(limit.least) ||
                                             (limit.isOpen && into == double(limit.least)))))
    refuse(value, place, isLimited ? "a number " + rangeOf(limit) : "a number");
}

void readText(const json &value, std::string &into, const Limit &limit, const Place &place) {
  const auto *text = value.get_ptr<const std::string *>();
  if (!text || text->size() > limit.maxBytes)
    refuse(value, place, "a text of at most " + std::to_string(limit.maxBytes) + " bytes");
  into = *text;
}

template <class Enum> std::optional<Enum> findWord(const json &value) {
  const auto *text = value.get_ptr<const std::string *>();
  return text ? wordNamed<Enum>(*text) : std::nullopt;
}

template <class Enum> Enum readWord(const json &value, const Place &place) {
  if (std::optional<Enum> found = findWord<Enum>(value))
    return *found;
  std::string all;
  for (const Word &word : Words<Enum>::list)
    if (!word.spelling.empty())
      all += (all.empty() ? "" : ", ") + std::string(word.spelling);
  refuse(value, place, "one of " + all);
}

/// Reads a list of a word and its operands, which are numbers, as in ["dim", 0, 1].
template <class Enum, size_t most>
Enum readCall(const json &value, std::array<int64_t, most> &operands, const Place &place) {
  if (!value.is_array() || value.empty())
    refuse(value, place, "a list of a name and numbers");
  Enum kind = readWord<Enum>(value[0], {&place, {}, 0});
  size_t expected = wordOf(kind).operands;
  if (value.size() != expected + 1)
    refuse(value, place, "a list of a name and " + std::to_string(expected) + " numbers");
  for (size_t i = 0; i < expected; ++i)
    readInteger(value[i + 1], operands[i], words::upTo(INT64_MAX), {&place, {}, i + 1});
  return kind;
}

void readStep(const json &value, TripCountStep &into, const Place &place) {
  std::array<int64_t, 2> operands = {};
  if (value.is_number())
    readInteger(value, into.number, words::any, place);
  else if (value.is_string()) {
    into.kind = readWord<StepKind>(value, place);
    if (wordOf(into.kind).operands)
      refuse(value, place, "a list of this name and numbers");
  } else {
    into.kind = readCall<StepKind>(value, operands, place);
    into.number = operands[0];
    into.dimension = uint32_t(std::min<int64_t>(operands[1], UINT32_MAX));
  }
}

void readFactor(const json &value, CostFactor &into, const Place &place) {
  constexpr size_t maxSteps = 64;
  if (value.is_array() && !value.empty() && findWord<FactorKind>(value[0]) == FactorKind::Count) {
    into.kind = FactorKind::Count;
    if (value.size() < 2 || value.size() > maxSteps + 1)
      refuse(value, place, "a count of 1 to " + std::to_string(maxSteps) + " steps");
    into.steps.resize(value.size() - 1);
    for (size_t i = 1; i < value.size(); ++i)
      readStep(value[i], into.steps[i - 1], {&place, {}, i});
    return;
  }
  std::array<int64_t, 3> operands = {};
  into.kind = readCall<FactorKind>(value, operands, place);
  into.argument = uint32_t(std::min<int64_t>(operands[0], UINT32_MAX));
  into.dimension = uint32_t(std::min<int64_t>(operands[1], UINT32_MAX));
  into.size = operands[2];
  if (wordOf(into.kind).operands == 3 && into.size == 0)
    refuse(value, place, "a size above 0");
}

void readPair(const json &value, BackwardArgument &into, const Place &place) {
  std::array<int64_t, 1> operands = {};
  into.kind = readCall<BackwardSource>(value, operands, place);
  into.index = uint64_t(operands[0]);
}

void readScalarOrList(const json &value, Value &into, const Place &place) {
  constexpr uint64_t maxBytes = 1 << 16, maxItems = 1 << 12;
  if (value.is_null())
    into = std::monostate();
  else if (value.is_boolean())
    into = value.get<bool>();
  else if (value.is_number_integer())
    readInteger(value, into.emplace<int64_t>(), words::any, place);
  else if (value.is_number())
    readNumber(value, into.emplace<double>(), words::any, place);
  else if (value.is_string())
    readText(value, into.emplace<std::string>(), words::bytes(maxBytes), place);
  else
    readValue(value, into.emplace<std::vector<int64_t>>(), words::count(maxItems), place);
}

template <class T> void readList(const json &value, std::vector<T> &into, const Limit &limit, const Place &place) {
  if (!value.is_array() || value.size() > limit.maxItems)
    refuse(value, place, "a list of at most " + std::to_string(limit.maxItems) + " items");
  // Items are added one by one: a list of malformed ones must not take memory for all.
  for (size_t i = 0; i < value.size(); ++i)
    readValue(value[i], into.emplace_back(), limit, {&place, {}, i});
}

template <class Record, class Type>
void readMember(const json::object_t &object, Record &into, const Field<Record, Type> &field, const Place &place) {
  auto found = object.find(field.key);
  bool mayBeNull = std::is_same_v<Type, std::optional<Value>>;
  if (found != object.end() && (mayBeNull || !found->second.is_null()))
    readValue(found->second, into.*field.member, field.limit, {&place, field.key});
  else if (field.presence.isNeeded)
    throw Refusal{nameOf(place) + " has no `" + std::string(field.key) + "`"};
}

template <class Record> void readRecord(const json &value, Record &into, const Place &place) {
  const auto *object = value.get_ptr<const json::object_t *>();
  if (!object)
    refuse(value, place, "an object");
  Schema<Record>::visit([&](const auto &field) { readMember(*object, into, field, place); });
}

template <class T> void readValue(const json &value, T &into, const Limit &limit, const Place &place) {
  if constexpr (IsRecord<T>)
    readRecord(value, into, place);
  else if constexpr (IsWord<T>)
    into = readWord<T>(value, place);
  else if constexpr (isOptional<T>)
    readValue(value, into.emplace(), limit, place);
  else if constexpr (isList<T>)
    readList(value, into, limit, place);
  else if constexpr (std::is_same_v<T, Tap>) {
    if (!value.is_array() || value.size() != into.size())
      refuse(value, place, "a list of 2 numbers");
    for (size_t i = 0; i < into.size(); ++i)
      readInteger(value[i], into[i], limit, {&place, {}, i});
  } else if constexpr (std::is_same_v<T, Value>)
    readScalarOrList(value, into, place);
  else if constexpr (std::is_same_v<T, CostFactor>)
    readFactor(value, into, place);
  else if constexpr (std::is_same_v<T, BackwardArgument>)
    readPair(value, into, place);
  else if constexpr (std::is_same_v<T, std::string>)
    readText(value, into, limit, place);
  else if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_boolean())
      refuse(value, place, "true or false");
    into = value.get<bool>();
  } else if constexpr (std::is_same_v<T, double>)
    readNumber(value, into, limit, place);
  else
    readInteger(value, into, limit, place);
}

/// Returns whether a record has a field, as in "launch.threads".
bool isKnown(std::string_view name) {
  bool isFound = false;
#define KPKG_RECORD(Struct, recordName)                                                                                \
  Schema<Struct>::visit([&](const auto &field) {                                                                       \
    constexpr std::string_view record = Schema<Struct>::name;                                                          \
    isFound |= name.size() == record.size() + 1 + field.key.size() && name.starts_with(record) &&                      \
               name[record.size()] == '.' && name.ends_with(field.key);                                                \
  });
#include "runtime/manifest/Manifest.def"
  return isFound;
}

} // namespace

template <class Record> Record read(const json &value, const Place &place) {
  Record record;
  readRecord(value, record, place);
  return record;
}
template Manifest read(const json &, const Place &);
template OpArgument read(const json &, const Place &);
template CostTerm read(const json &, const Place &);

template <class Type> Type readField(const json &manifest, Type Manifest::*member) {
  Type into = {};
  const auto *object = manifest.get_ptr<const json::object_t *>();
  if (!object)
    refuse(manifest, {}, "an object");
  Manifest whole;
  Schema<Manifest>::visit([&](const auto &field) {
    if constexpr (std::is_same_v<decltype(&(whole.*field.member)), Type *>)
      if (field.member == member)
        readMember(*object, whole, field, {});
  });
  return std::move(whole.*member);
}
template std::vector<std::string> readField(const json &, std::vector<std::string> Manifest::*);
template Producer readField(const json &, Producer Manifest::*);
template std::vector<Kernel> readField(const json &, std::vector<Kernel> Manifest::*);
template std::vector<Instance> readField(const json &, std::vector<Instance> Manifest::*);
template std::vector<Section> readField(const json &, std::vector<Section> Manifest::*);
template std::vector<Op> readField(const json &, std::vector<Op> Manifest::*);

std::optional<std::string> unknownRequirement(const json &manifest) {
  for (std::string &name : readField(manifest, &Manifest::requirements))
    if (!isKnown(name))
      return std::move(name);
  return std::nullopt;
}

} // namespace kpkg::manifest
