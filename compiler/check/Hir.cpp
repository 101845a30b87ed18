// Prints HIR as readable text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Hir.h"

#include <unordered_map>

namespace kpkg::compiler::hir {

std::string_view name(Kind kind) {
  static constexpr std::string_view names[] = {
#define HIR(Name) #Name,
#include "compiler/check/HirKinds.def"
  };
  return names[static_cast<size_t>(kind)];
}

namespace {

class Printer {
public:
  std::string text;

  void print(const Block &block, unsigned indent) {
    for (const Node *node : block.nodes)
      if (node->kind != Kind::Nothing)
        print(*node, indent);
    if (!block.yields.empty()) {
      text += std::string(indent, ' ') + "Yield";
      list(block.yields);
      text += "\n";
    }
  }

private:
  void list(const std::vector<Node *> &nodes) {
    for (const Node *node : nodes)
      text += " %" + std::to_string(number(node));
  }

  static std::string variable(const Local &local) { return local.name + "." + std::to_string(local.id); }

  void print(const Node &node, unsigned indent) {
    text += std::string(indent, ' ');
    if (!node.type->isNone())
      text += "%" + std::to_string(number(&node)) + " = ";
    text += name(node.kind);
    if (node.local)
      text += " " + variable(*node.local);
    for (const Local *local : node.locals)
      text += " " + variable(*local);
    list(node.operands);
    for (int64_t value : node.ints)
      text += " #" + std::to_string(value);
    if (node.kind == Kind::Constant || (node.kind == Kind::Set && node.operands.empty()))
      text += " " + node.value.str();
    if (!node.text.empty())
      text += " \"" + node.text + "\"";
    if (node.launch)
      text += " " + node.launch->kernel;
    if (!node.type->isNone())
      text += " : " + node.type->str();
    text += "\n";
    for (size_t i = 0; i < node.regions.size(); ++i) {
      if (i)
        text += std::string(indent, ' ') + "--\n";
      print(*node.regions[i], indent + 2);
    }
  }

  size_t number(const Node *node) { return numbers.emplace(node, numbers.size()).first->second; }

  std::unordered_map<const Node *, size_t> numbers;
};

} // namespace

std::string print(const Function &function) {
  Printer printer;
  printer.text = function.name + "\n";
  printer.print(function.body, 2);
  return printer.text;
}

} // namespace kpkg::compiler::hir
