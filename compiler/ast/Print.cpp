// Prints a syntax tree as nested lists.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/ast/Print.h"
#include <fmt/format.h>

using namespace kpkg::compiler;
using namespace kpkg::compiler::ast;

std::string_view ast::name(ExprKind kind) {
  switch (kind) {
#define EXPR(Name)                                                                                                     \
  case ExprKind::Name:                                                                                                 \
    return #Name;
#include "compiler/ast/Kinds.def"
  }
  return "?";
}

std::string_view ast::name(StmtKind kind) {
  switch (kind) {
#define STMT(Name)                                                                                                     \
  case StmtKind::Name:                                                                                                 \
    return #Name;
#include "compiler/ast/Kinds.def"
  }
  return "?";
}

std::string_view ast::spelling(UnaryOp op) {
  constexpr std::string_view texts[] = {"+", "-", "~", "not"};
  return texts[static_cast<size_t>(op)];
}
std::string_view ast::spelling(BinaryOp op) {
  constexpr std::string_view texts[] = {"+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>"};
  return texts[static_cast<size_t>(op)];
}
std::string_view ast::spelling(CompareOp op) {
  constexpr std::string_view texts[] = {"==", "!=", "<", "<=", ">", ">=", "is", "is not", "in", "not in"};
  return texts[static_cast<size_t>(op)];
}

namespace {
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\x{:02x}", c);
    else
      out += c;
  }
  return out + '"';
}

class Printer {
public:
  std::string out;

  void expr(const Expr *e) {
    if (!e) {
      out += "_";
      return;
    }
    switch (e->kind) {
    case ExprKind::IntLiteral:
      out += fmt::format("{}", e->as<IntLiteral>()->value);
      break;
    case ExprKind::FloatLiteral:
      out += fmt::format("(float {})", e->as<FloatLiteral>()->value);
      break;
    case ExprKind::StringLiteral:
      out += quoted(e->as<StringLiteral>()->value);
      break;
    case ExprKind::BoolLiteral:
      out += e->as<BoolLiteral>()->value ? "True" : "False";
      break;
    case ExprKind::NoneLiteral:
      out += "None";
      break;
    case ExprKind::NameExpr:
      out += e->as<NameExpr>()->name;
      break;
    case ExprKind::UnaryExpr:
      list(spelling(e->as<UnaryExpr>()->op), {e->as<UnaryExpr>()->operand.get()});
      break;
    case ExprKind::BinaryExpr: {
      auto *binary = e->as<BinaryExpr>();
      list(spelling(binary->op), {binary->lhs.get(), binary->rhs.get()});
      break;
    }
    case ExprKind::LogicalExpr: {
      auto *logical = e->as<LogicalExpr>();
      list(logical->isAnd ? "and" : "or", {logical->lhs.get(), logical->rhs.get()});
      break;
    }
    case ExprKind::CompareExpr:
      comparison(*e->as<CompareExpr>());
      break;
    case ExprKind::ConditionalExpr: {
      auto *conditional = e->as<ConditionalExpr>();
      list("if", {conditional->condition.get(), conditional->thenValue.get(), conditional->elseValue.get()});
      break;
    }
    case ExprKind::CallExpr:
      application("call", *e->as<CallExpr>()->callee, e->as<CallExpr>()->arguments);
      break;
    case ExprKind::IndexExpr:
      application("index", *e->as<IndexExpr>()->base, e->as<IndexExpr>()->arguments);
      break;
    case ExprKind::SliceExpr: {
      auto *slice = e->as<SliceExpr>();
      list("slice", {slice->start.get(), slice->stop.get(), slice->step.get()});
      break;
    }
    case ExprKind::EllipsisExpr:
      out += "...";
      break;
    case ExprKind::AttributeExpr:
      out += "(. ";
      expr(e->as<AttributeExpr>()->base.get());
      out += " " + e->as<AttributeExpr>()->attribute.text + ")";
      break;
    case ExprKind::TupleExpr:
      sequence("tuple", e->as<TupleExpr>()->elements);
      break;
    case ExprKind::ListExpr:
      sequence("list", e->as<ListExpr>()->elements);
      break;
    case ExprKind::DictExpr:
      dictionary(*e->as<DictExpr>());
      break;
    case ExprKind::ErrorExpr:
      out += "<error>";
      break;
    }
  }

  void arguments(const std::vector<Argument> &list) {
    for (const Argument &argument : list) {
      out += " ";
      if (argument.name)
        out += argument.name.text + "=";
      expr(argument.value.get());
    }
  }

  void block(const Block &statements, unsigned depth) {
    for (const StmtPtr &statement : statements)
      stmt(*statement, depth);
  }

  void stmt(const Stmt &s, unsigned depth) {
    out.append(2 * depth, ' ');
    switch (s.kind) {
    case StmtKind::VarStmt:
      variables(*s.as<VarStmt>());
      break;
    case StmtKind::AssignStmt:
      assignment(*s.as<AssignStmt>()->target, "=", *s.as<AssignStmt>()->value);
      break;
    case StmtKind::AugmentedStmt: {
      auto *augmented = s.as<AugmentedStmt>();
      assignment(*augmented->target, fmt::format("{}=", spelling(augmented->op)), *augmented->value);
      break;
    }
    case StmtKind::ExprStmt:
      out += "expr ";
      expr(s.as<ExprStmt>()->value.get());
      break;
    case StmtKind::IfStmt:
      branches(*s.as<IfStmt>(), depth);
      return;
    case StmtKind::ForStmt:
      forLoop(*s.as<ForStmt>(), depth);
      return;
    case StmtKind::WhileStmt:
      out += "while ";
      expr(s.as<WhileStmt>()->condition.get());
      out += "\n";
      block(s.as<WhileStmt>()->body, depth + 1);
      return;
    case StmtKind::BreakStmt:
      out += "break";
      break;
    case StmtKind::ContinueStmt:
      out += "continue";
      break;
    case StmtKind::PassStmt:
      out += "pass";
      break;
    case StmtKind::ReturnStmt:
      out += "return ";
      expr(s.as<ReturnStmt>()->value.get());
      break;
    case StmtKind::RaiseStmt:
      out += "raise ";
      expr(s.as<RaiseStmt>()->value.get());
      break;
    case StmtKind::ComptimeConstStmt: {
      auto *constant = s.as<ComptimeConstStmt>();
      out += "comptime " + constant->name.text;
      typeAndValue(constant->type.get(), constant->value.get());
      break;
    }
    case StmtKind::ComptimeAssertStmt:
      out += "comptime assert ";
      expr(s.as<ComptimeAssertStmt>()->condition.get());
      out += " ";
      expr(s.as<ComptimeAssertStmt>()->message.get());
      break;
    case StmtKind::LaunchStmt:
      launch(*s.as<LaunchStmt>());
      break;
    case StmtKind::ImportStmt:
      import(*s.as<ImportStmt>());
      break;
    case StmtKind::FunctionStmt:
      function(*s.as<FunctionStmt>(), depth);
      return;
    case StmtKind::StructStmt:
      structure(*s.as<StructStmt>(), depth);
      return;
    }
    out += "\n";
  }

private:
  void list(std::string_view head, std::initializer_list<const Expr *> parts) {
    out += fmt::format("({}", head);
    for (const Expr *part : parts) {
      out += " ";
      expr(part);
    }
    out += ")";
  }
  void sequence(std::string_view head, const std::vector<ExprPtr> &elements) {
    out += fmt::format("({}", head);
    for (const ExprPtr &element : elements) {
      out += " ";
      expr(element.get());
    }
    out += ")";
  }
  void comparison(const CompareExpr &compare) {
    out += "(compare ";
    expr(compare.first.get());
    for (const CompareExpr::Link &link : compare.links) {
      out += fmt::format(" {} ", spelling(link.op));
      expr(link.rhs.get());
    }
    out += ")";
  }
  /// Prints a call or an index: something and its arguments.
  void application(std::string_view head, const Expr &base, const std::vector<Argument> &list) {
    out += fmt::format("({} ", head);
    expr(&base);
    arguments(list);
    out += ")";
  }
  void dictionary(const DictExpr &dict) {
    out += "(dict";
    for (const DictExpr::Entry &entry : dict.entries) {
      out += " (";
      expr(entry.key.get());
      out += ": ";
      expr(entry.value.get());
      out += ")";
    }
    out += ")";
  }
  void variables(const VarStmt &var) {
    out += "var";
    for (const Identifier &name : var.names)
      out += " " + name.text;
    typeAndValue(var.type.get(), var.value.get());
  }
  void assignment(const Expr &target, std::string_view sign, const Expr &value) {
    out += "assign ";
    expr(&target);
    out += fmt::format(" {} ", sign);
    expr(&value);
  }
  void branches(const IfStmt &ifStmt, unsigned depth) {
    std::string_view word = ifStmt.isComptime ? "comptime if " : "if ";
    for (const IfStmt::Branch &branch : ifStmt.branches) {
      if (&branch != &ifStmt.branches.front()) {
        out.append(2 * depth, ' ');
        word = "elif ";
      }
      out += word;
      expr(branch.condition.get());
      out += "\n";
      block(branch.body, depth + 1);
    }
    if (ifStmt.elseBody) {
      out.append(2 * depth, ' ');
      out += "else\n";
      block(*ifStmt.elseBody, depth + 1);
    }
  }
  void forLoop(const ForStmt &loop, unsigned depth) {
    out += loop.isComptime ? "comptime for" : "for";
    for (const Identifier &name : loop.targets)
      out += " " + name.text;
    out += " in ";
    expr(loop.iterable.get());
    out += "\n";
    block(loop.body, depth + 1);
  }
  void launch(const LaunchStmt &launch) {
    out += "launch ";
    expr(launch.kernel.get());
    out += " [";
    arguments(launch.parameters);
    out += " ] (";
    arguments(launch.arguments);
    out += " )";
  }
  void import(const ImportStmt &import) {
    out += import.isFrom ? "from" : "import";
    for (const Identifier &part : import.module)
      out += " " + part.text;
    if (import.alias)
      out += " as " + import.alias.text;
    if (import.isFrom)
      out += " import";
    for (const ImportStmt::Name &name : import.names)
      out += " " + name.name.text + (name.alias ? " as " + name.alias.text : "");
  }
  void typeAndValue(const Expr *type, const Expr *value) {
    if (type) {
      out += ": ";
      expr(type);
    }
    if (value) {
      out += " = ";
      expr(value);
    }
  }
  void comptimeParameters(const std::vector<ComptimeParameter> &parameters, const std::string &indent) {
    for (const ComptimeParameter &parameter : parameters) {
      out += "\n" + indent + "  [" + parameter.name.text;
      typeAndValue(parameter.type.get(), parameter.defaultValue.get());
      out += "]";
    }
  }
  void structure(const StructStmt &declared, unsigned depth) {
    std::string indent(2 * depth, ' ');
    out += "struct " + declared.name.text;
    comptimeParameters(declared.comptimeParameters, indent);
    out += "\n";
    if (!declared.doc.empty())
      out += indent + "  doc " + quoted(declared.doc) + "\n";
    for (const Parameter &field : declared.fields) {
      out += indent + "  field " + field.name.text;
      typeAndValue(field.type.get(), field.defaultValue.get());
      out += "\n";
    }
    for (const auto &method : declared.methods)
      stmt(*method, depth + 1);
  }
  void function(const FunctionStmt &fn, unsigned depth) {
    std::string indent(2 * depth, ' ');
    for (const Decorator &decorator : fn.decorators) {
      out += "@" + decorator.name;
      if (decorator.hasArguments) {
        out += "(";
        arguments(decorator.arguments);
        out += " )";
      }
      out += "\n" + indent;
    }
    out += "def " + fn.name.text;
    comptimeParameters(fn.comptimeParameters, indent);
    for (const Parameter &parameter : fn.parameters) {
      out += "\n" + indent + "  (" + (parameter.isMut ? "mut " : "") + parameter.name.text;
      typeAndValue(parameter.type.get(), parameter.defaultValue.get());
      out += ")";
    }
    out += "\n";
    if (fn.raises)
      out += indent + "  raises\n";
    if (fn.resultType) {
      out += indent + "  -> ";
      expr(fn.resultType.get());
      out += "\n";
    }
    if (!fn.doc.empty())
      out += indent + "  doc " + quoted(fn.doc) + "\n";
    block(fn.body, depth + 1);
  }
};
} // namespace

std::string ast::print(const Expr &expr) {
  Printer printer;
  printer.expr(&expr);
  return printer.out;
}

std::string ast::print(const Module &module) {
  Printer printer;
  if (!module.doc.empty())
    printer.out += "doc " + quoted(module.doc) + "\n";
  printer.block(module.body, 0);
  return printer.out;
}
