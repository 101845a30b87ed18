// Implements mutations of manifests: values, keys, lists and whole subtrees, and the repair of what must agree.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/fuzz/MutateManifest.h"

#include "runtime/format/Container.h"
#include "runtime/format/Digest.h"
#include "runtime/manifest/Read.h"
#include "runtime/package/Schema.h"

#include <nlohmann/json.hpp>

namespace kpkg::fuzz {

using nlohmann::json;

static const char *const words[] = {
#define KPKG_WORD(Enum, name, spelling, operands, meaning) spelling,
#define KPKG_FIELD(Struct, type, member, initial, key, presence, limit, label, meaning) key,
#include "runtime/manifest/Manifest.def"
    // Types of schemas, dtypes, and texts that end early or are long.
    "Tensor",      "Tensor?",   "Tensor[]", "Tensor(a!)", "Tensor(a!)?", "Tensor(a!)[]", "int",       "int[]",
    "int?",        "float",     "float?",   "bool",       "bool?",       "str",          "str?",      "ScalarType",
    "ScalarType?", "float32",   "float16",  "bfloat16",   "int64",       "uint8",        "index",     "",
    "a::b",        "aten::add", "__init__", "\xc3\xa9",   "\x1b[2J",     "None",         "x86-64-v3", "sm_90a",
    "any"};

static constexpr size_t maxNodes = 4096;

namespace {

class Mutation {
public:
  Mutation(json &document, std::mt19937 &random) : document(document), random(random) {}

  void run() {
    nodes.clear();
    collect(document);
    json &node = pick();
    switch (below(9)) {
    case 0:
      node = anyValue();
      break;
    case 1:
      changeScalar(node);
      break;
    case 2:
      erase(node);
      break;
    case 3:
      grow(node);
      break;
    case 4:
      addMember(node);
      break;
    case 5: {
      json copy = pick();
      node = std::move(copy);
      break;
    }
    case 6: {
      json copy = node;
      node = json::array({std::move(copy)});
      break;
    }
    default:
      changeScalar(scalar());
    }
  }

private:
  size_t below(size_t bound) { return random() % bound; }
  json &pick() { return *nodes[below(nodes.size())]; }
  /// Returns a node without members, if a few draws find one.
  json &scalar() {
    for (int i = 0; i < 8; ++i)
      if (json &node = pick(); node.is_primitive())
        return node;
    return pick();
  }
  void collect(json &node) {
    if (nodes.size() >= maxNodes)
      return;
    nodes.push_back(&node);
    if (node.is_structured())
      for (json &item : node)
        collect(item);
  }
  std::string word() { return words[below(std::size(words))]; }

  json number() {
    static constexpr int64_t edges[] = {0,         1,          -1,        2,         7,       63,
                                        64,        255,        256,       65535,     65536,   INT32_MAX,
                                        INT32_MIN, UINT32_MAX, INT64_MAX, INT64_MIN, 1u << 30};
    switch (below(4)) {
    case 0:
      return uint64_t(random()) << 32 | random();
    case 1:
      return json(double(int32_t(random())) / 256);
    default:
      return edges[below(std::size(edges))];
    }
  }
  json anyValue() {
    switch (below(8)) {
    case 0:
      return nullptr;
    case 1:
      return below(2) == 0;
    case 2:
      return json::array();
    case 3:
      return json::object();
    case 4:
    case 5:
      return number();
    default:
      return word();
    }
  }
  void changeScalar(json &node) {
    if (node.is_number_integer())
      node = below(2) ? json(int64_t(uint64_t(node.get<int64_t>()) + below(5) - 2)) : number();
    else if (node.is_number_float())
      node = below(2) ? json(node.get<double>() * 2) : number();
    else if (node.is_boolean())
      node = !node.get<bool>();
    else if (node.is_string())
      changeText(node.get_ref<std::string &>());
    else
      node = anyValue();
  }
  void changeText(std::string &text) {
    size_t at = below(text.size() + 1);
    switch (below(5)) {
    case 0:
      text = word();
      break;
    case 1:
      text.insert(at, word());
      break;
    case 2:
      text.erase(at, 1 + below(4));
      break;
    case 3:
      text.insert(at, 1, char(' ' + below(95)));
      break;
    default:
      if (json &other = pick(); other.is_string())
        text = other.get<std::string>();
    }
  }
  void erase(json &node) {
    if (!node.is_structured() || node.empty())
      return;
    auto item = node.begin();
    std::advance(item, below(node.size()));
    node.erase(item);
  }
  /// Repeats an item of a list, or puts another part of the document in.
  void grow(json &node) {
    if (!node.is_array() || node.size() > 200)
      return;
    json item = node.empty() || below(4) == 0 ? pick() : node[below(node.size())];
    node.insert(node.begin() + std::ptrdiff_t(below(node.size() + 1)), std::move(item));
  }
  void addMember(json &node) {
    if (!node.is_object())
      return;
    json value = below(2) ? anyValue() : json(pick());
    node[word()] = std::move(value);
  }

  json &document;
  std::mt19937 &random;
  std::vector<json *> nodes;
};

} // namespace

void mutateManifest(json &manifest, std::mt19937 &random) {
  for (size_t i = 0, count = 1 + random() % 4; i < count; ++i)
    Mutation(manifest, random).run();
}

void repairSchemas(json &manifest) {
  if (!manifest.is_object() || !manifest.contains("ops") || !manifest["ops"].is_array())
    return;
  for (json &op : manifest["ops"])
    try {
      auto records = manifest::readField(json{{"ops", json::array({op})}}, &manifest::Manifest::ops);
      op["schema"] = package::schemaOf(package::resolveOp(std::move(records.front())));
    } catch (const manifest::Refusal &) {
    } catch (const json::exception &) {
    }
}

void repairSections(json &manifest, std::string &data) {
  if (!manifest.is_object() || !manifest.contains("sections") || !manifest["sections"].is_array())
    return;
  std::string moved;
  for (json &section : manifest["sections"]) {
    if (!section.is_object() || !section.value("stored", json()).is_number_unsigned() ||
        !section.value("offset", json()).is_number_unsigned())
      continue;
    uint64_t offset = section["offset"], stored = section["stored"];
    if (offset > data.size() || stored > data.size() - offset || moved.size() > 4 * data.size())
      continue;
    moved.resize(format::alignUp(moved.size()), '\0');
    section["offset"] = moved.size();
    std::string_view bytes = std::string_view(data).substr(offset, stored);
    format::Sha256 digest = format::sha256(bytes);
    section["sha256"] = format::toHex(digest.data(), digest.size());
    if (section.value("compression", json()) == "none")
      section["size"] = stored;
    moved += bytes;
  }
  data = std::move(moved);
}

} // namespace kpkg::fuzz
