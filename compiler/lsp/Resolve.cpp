// Resolves the names of a source by the scopes of blocks, in all branches and without instances.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The checker sees only code that some instance reaches. An editor renames the rest as well.
#include "compiler/lsp/Names.h"
#include <algorithm>

namespace kpkg::lsp {

namespace {

using namespace compiler::ast;
using compiler::SourceFile;
using compiler::SourceRange;

class Resolver {
public:
  Resolver(const SourceFile &text, Names &names) : text(text), names(names) {}

  void resolve(const Module &module) {
    names.doc = module.doc;
    declareModule(module.body);
    walkModule(module.body);
    std::sort(names.uses.begin(), names.uses.end(),
              [](const Use &a, const Use &b) { return a.span.begin < b.span.begin; });
  }

private:
  const SourceFile &text;
  Names &names;
  std::vector<std::map<std::string, size_t>> scopes;
  size_t function = noSymbol;
  std::map<const FunctionStmt *, size_t> functions;
  std::map<const StructStmt *, size_t> structs;

  std::string slice(SourceRange range) const { return std::string(text.slice(range)); }
  std::string firstLine(SourceRange range) const {
    std::string all = slice(range);
    return all.substr(0, all.find('\n'));
  }

  // Declarations.

  Symbol symbolOf(const Identifier &name, SymbolKind kind, SourceRange whole) const {
    Symbol symbol;
    symbol.name = name.text;
    symbol.kind = kind;
    symbol.declarations = {name.range};
    symbol.whole = whole;
    symbol.function = function;
    return symbol;
  }

  void use(Use::Kind kind, SourceRange range, size_t symbol, const std::string &name, const std::string &member = {}) {
    names.uses.push_back({kind, range, symbol, name, member, {}});
  }

  size_t add(Symbol symbol, SourceRange name) {
    use(Use::Declaration, name, names.symbols.size(), symbol.name);
    names.symbols.push_back(std::move(symbol));
    return names.symbols.size() - 1;
  }

  size_t addToModule(Symbol symbol, SourceRange name) {
    auto known = names.ofModule.find(symbol.name);
    if (known != names.ofModule.end() && names.symbols[known->second].kind == symbol.kind) {
      names.symbols[known->second].declarations.push_back(name);
      use(Use::Declaration, name, known->second, symbol.name);
      return known->second;
    }
    std::string key = symbol.name;
    return names.ofModule.insert_or_assign(key, add(std::move(symbol), name)).first->second;
  }

  size_t declare(const Identifier &name, SymbolKind kind, SourceRange whole) {
    size_t symbol = add(symbolOf(name, kind, whole), name.range);
    scopes.back()[name.text] = symbol;
    return symbol;
  }

  void declareImport(const ImportStmt &stmt) {
    auto declareAs = [&](const Identifier &name, const Identifier &alias, SymbolKind kind) {
      Symbol symbol = symbolOf(alias ? alias : name, kind, stmt.range);
      symbol.module = stmt.module;
      symbol.importedName = name.text;
      symbol.hasAlias = static_cast<bool>(alias);
      return addToModule(std::move(symbol), (alias ? alias : name).range);
    };
    size_t symbol = noSymbol;
    if (!stmt.isFrom) {
      symbol = declareAs(stmt.module.back(), stmt.alias, SymbolKind::Module);
    } else {
      for (const ImportStmt::Name &name : stmt.names) {
        symbol = declareAs(name.name, name.alias, SymbolKind::Imported);
        if (name.alias)
          use(Use::Member, name.name.range, symbol, name.name.text);
      }
    }
    for (size_t i = 0; i < stmt.module.size() && symbol != noSymbol; ++i)
      if (stmt.isFrom || stmt.alias || i + 1 < stmt.module.size())
        use(Use::ModuleFile, stmt.module[i].range, symbol, stmt.module[i].text);
  }

  Symbol functionSymbol(const FunctionStmt &declared) const {
    Symbol symbol = symbolOf(declared.name, SymbolKind::Function, declared.range);
    symbol.text = slice(declared.signatureRange);
    symbol.doc = declared.doc;
    for (const Decorator &decorator : declared.decorators) {
      symbol.whole.begin = std::min(symbol.whole.begin, decorator.range.begin);
      if (decorator.name == "kernel" || decorator.name.starts_with("register."))
        symbol.role = symbol.role.empty() ? decorator.name : symbol.role;
    }
    return symbol;
  }

  void declareStruct(const StructStmt &declared) {
    Symbol symbol = symbolOf(declared.name, SymbolKind::Struct, declared.range);
    symbol.text = slice(declared.signatureRange);
    symbol.doc = declared.doc;
    size_t owner = structs[&declared] = addToModule(std::move(symbol), declared.name.range);
    function = owner;
    auto member = [&](const Identifier &name, SymbolKind kind, SourceRange range) {
      Symbol one = symbolOf(name, kind, range);
      one.text = slice(range);
      return add(std::move(one), name.range);
    };
    for (const ComptimeParameter &parameter : declared.comptimeParameters) {
      size_t added = member(parameter.name, SymbolKind::ComptimeParameter, parameter.range);
      names.symbols[owner].comptimeParameters.push_back(added);
    }
    for (const Parameter &field : declared.fields) {
      size_t added = member(field.name, SymbolKind::Field, field.range);
      names.symbols[owner].parameters.push_back(added);
    }
    for (const auto &method : declared.methods) {
      size_t added = functions[method.get()] = add(functionSymbol(*method), method->name.range);
      names.symbols[owner].methods.push_back(added);
    }
    function = noSymbol;
  }

  void walkStruct(const StructStmt &declared) {
    const size_t owner = function = structs.at(&declared);
    scopes.assign(1, {});
    for (size_t one : names.symbols[owner].comptimeParameters)
      scopes.back()[names.symbols[one].name] = one;
    const std::map<std::string, size_t> parameters = scopes.back();
    typesOf(declared.comptimeParameters);
    typesOf(declared.fields);
    for (const auto &method : declared.methods)
      walkFunction(*method, parameters);
    scopes.clear();
    function = noSymbol;
  }

  void declareModule(const Block &block) {
    for (const StmtPtr &stmt : block) {
      if (auto *declared = stmt->as<FunctionStmt>()) {
        functions[declared] = addToModule(functionSymbol(*declared), declared->name.range);
      } else if (auto *declared = stmt->as<StructStmt>()) {
        declareStruct(*declared);
      } else if (auto *constant = stmt->as<ComptimeConstStmt>()) {
        Symbol symbol = symbolOf(constant->name, SymbolKind::Constant, constant->range);
        symbol.text = firstLine(constant->range);
        addToModule(std::move(symbol), constant->name.range);
      } else if (auto *import = stmt->as<ImportStmt>()) {
        declareImport(*import);
      } else if (auto *branches = stmt->as<IfStmt>()) {
        for (const IfStmt::Branch &branch : branches->branches)
          declareModule(branch.body);
        if (branches->elseBody)
          declareModule(*branches->elseBody);
      }
    }
  }

  void walkModule(const Block &block) {
    for (const StmtPtr &stmt : block) {
      if (auto *declared = stmt->as<FunctionStmt>()) {
        walkFunction(*declared, {});
      } else if (auto *declared = stmt->as<StructStmt>()) {
        walkStruct(*declared);
      } else if (auto *constant = stmt->as<ComptimeConstStmt>()) {
        expr(constant->type.get());
        expr(constant->value.get());
      } else if (auto *assertion = stmt->as<ComptimeAssertStmt>()) {
        expr(assertion->condition.get());
        expr(assertion->message.get());
      } else if (auto *branches = stmt->as<IfStmt>()) {
        for (const IfStmt::Branch &branch : branches->branches) {
          expr(branch.condition.get());
          walkModule(branch.body);
        }
        if (branches->elseBody)
          walkModule(*branches->elseBody);
      }
    }
  }

  template <typename Parameters> void typesOf(const Parameters &parameters) {
    for (const auto &parameter : parameters) {
      expr(parameter.type.get());
      expr(parameter.defaultValue.get());
    }
  }

  /// Resolves a function; `outer` has the comptime parameters of the struct that it is a method of.
  void walkFunction(const FunctionStmt &declared, const std::map<std::string, size_t> &outer) {
    function = functions.at(&declared);
    scopes.assign(1, outer);
    scopes.emplace_back();
    for (const ComptimeParameter &parameter : declared.comptimeParameters) {
      expr(parameter.type.get());
      expr(parameter.defaultValue.get());
      size_t symbol = declare(parameter.name, SymbolKind::ComptimeParameter, parameter.range);
      names.symbols[symbol].text = slice(parameter.range);
      names.symbols[function].comptimeParameters.push_back(symbol);
    }
    typesOf(declared.parameters);
    for (const Decorator &decorator : declared.decorators)
      walkDecorator(decorator);
    for (const Parameter &parameter : declared.parameters) {
      size_t symbol = declare(parameter.name, SymbolKind::Parameter, parameter.range);
      names.symbols[symbol].text = slice(parameter.range);
      names.symbols[function].parameters.push_back(symbol);
    }
    expr(declared.resultType.get());
    walk(declared.body);
    scopes.clear();
    function = noSymbol;
  }

  void walkDecorator(const Decorator &decorator) {
    bool namesParameters = decorator.name == "specialize" || decorator.name == "tune";
    for (const Argument &argument : decorator.arguments) {
      auto found = scopes.back().find(argument.name.text);
      if (namesParameters && found != scopes.back().end())
        use(Use::Reference, argument.name.range, found->second, argument.name.text);
      else if (decorator.name == "schedule" && argument.name) // a hint
        use(Use::Other, argument.name.range, noSymbol, argument.name.text);
      expr(argument.value.get());
    }
  }

  // Statements.

  void walk(const Block &block) {
    scopes.emplace_back();
    for (const StmtPtr &stmt : block)
      walk(*stmt);
    scopes.pop_back();
  }

  void walk(const Stmt &stmt) {
    switch (stmt.kind) {
    case StmtKind::VarStmt: {
      auto &var = *stmt.as<VarStmt>();
      expr(var.type.get());
      expr(var.value.get());
      for (const Identifier &name : var.names)
        names.symbols[declare(name, SymbolKind::Variable, stmt.range)].isInferred = !var.type;
      break;
    }
    case StmtKind::AssignStmt:
      expr(stmt.as<AssignStmt>()->value.get());
      expr(stmt.as<AssignStmt>()->target.get());
      break;
    case StmtKind::AugmentedStmt:
      expr(stmt.as<AugmentedStmt>()->target.get());
      expr(stmt.as<AugmentedStmt>()->value.get());
      break;
    case StmtKind::ExprStmt:
      expr(stmt.as<ExprStmt>()->value.get());
      break;
    case StmtKind::IfStmt:
      for (const IfStmt::Branch &branch : stmt.as<IfStmt>()->branches) {
        expr(branch.condition.get());
        walk(branch.body);
      }
      if (stmt.as<IfStmt>()->elseBody)
        walk(*stmt.as<IfStmt>()->elseBody);
      break;
    case StmtKind::ForStmt:
      expr(stmt.as<ForStmt>()->iterable.get());
      scopes.emplace_back();
      for (const Identifier &target : stmt.as<ForStmt>()->targets)
        declare(target, SymbolKind::LoopVariable, stmt.range);
      walk(stmt.as<ForStmt>()->body);
      scopes.pop_back();
      break;
    case StmtKind::WhileStmt:
      expr(stmt.as<WhileStmt>()->condition.get());
      walk(stmt.as<WhileStmt>()->body);
      break;
    case StmtKind::ReturnStmt:
      expr(stmt.as<ReturnStmt>()->value.get());
      break;
    case StmtKind::RaiseStmt:
      expr(stmt.as<RaiseStmt>()->value.get());
      break;
    case StmtKind::ComptimeConstStmt: {
      auto &constant = *stmt.as<ComptimeConstStmt>();
      expr(constant.type.get());
      expr(constant.value.get());
      names.symbols[declare(constant.name, SymbolKind::Constant, stmt.range)].text = firstLine(stmt.range);
      break;
    }
    case StmtKind::ComptimeAssertStmt:
      expr(stmt.as<ComptimeAssertStmt>()->condition.get());
      expr(stmt.as<ComptimeAssertStmt>()->message.get());
      break;
    case StmtKind::LaunchStmt: {
      auto &launch = *stmt.as<LaunchStmt>();
      expr(launch.kernel.get());
      arguments(launch.parameters, *launch.kernel);
      arguments(launch.arguments, *launch.kernel);
      break;
    }
    case StmtKind::BreakStmt:
    case StmtKind::ContinueStmt:
    case StmtKind::PassStmt:
    case StmtKind::ImportStmt:
    case StmtKind::FunctionStmt:
    case StmtKind::StructStmt:
      break;
    }
  }

  // Expressions.

  size_t find(const std::string &name) const {
    for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope)
      if (auto found = scope->find(name); found != scope->end())
        return found->second;
    auto found = names.ofModule.find(name);
    return found == names.ofModule.end() ? noSymbol : found->second;
  }

  void name(const NameExpr &expr) {
    size_t symbol = find(expr.name);
    use(symbol == noSymbol ? Use::Other : Use::Reference, expr.range, symbol, expr.name);
  }

  /// Returns the import that an expression names; noSymbol for other expressions.
  size_t moduleNamedBy(const Expr &expr) const {
    auto *name = expr.as<NameExpr>();
    size_t symbol = name ? find(name->name) : noSymbol;
    return symbol != noSymbol && names.symbols[symbol].kind == SymbolKind::Module ? symbol : noSymbol;
  }

  /// Resolves arguments whose names are those of the callee's parameters.
  void arguments(const std::vector<Argument> &list, const Expr &callee) {
    const Expr *base = &callee;
    if (auto *index = base->as<IndexExpr>())
      base = index->base.get();
    size_t symbol = noSymbol;
    std::string member;
    if (auto *name = base->as<NameExpr>()) {
      symbol = find(name->name);
    } else if (auto *attribute = base->as<AttributeExpr>()) {
      symbol = moduleNamedBy(*attribute->base);
      member = attribute->attribute.text;
    }
    for (const Argument &argument : list) {
      if (argument.name && symbol != noSymbol)
        use(Use::Argument, argument.name.range, symbol, argument.name.text, member);
      expr(argument.value.get());
    }
  }

  void attribute(const AttributeExpr &attribute) {
    expr(attribute.base.get());
    if (size_t module = moduleNamedBy(*attribute.base); module != noSymbol)
      return use(Use::Member, attribute.attribute.range, module, attribute.attribute.text);
    names.uses.push_back(
        {Use::Attribute, attribute.attribute.range, noSymbol, attribute.attribute.text, {}, attribute.base->range});
  }

  void all(const std::vector<ExprPtr> &list) {
    for (const ExprPtr &item : list)
      expr(item.get());
  }

  /// Resolves an expression, which may be null.
  void expr(const Expr *e) {
    if (!e)
      return;
    switch (e->kind) {
    case ExprKind::NameExpr:
      return name(*e->as<NameExpr>());
    case ExprKind::UnaryExpr:
      return expr(e->as<UnaryExpr>()->operand.get());
    case ExprKind::BinaryExpr:
      expr(e->as<BinaryExpr>()->lhs.get());
      return expr(e->as<BinaryExpr>()->rhs.get());
    case ExprKind::LogicalExpr:
      expr(e->as<LogicalExpr>()->lhs.get());
      return expr(e->as<LogicalExpr>()->rhs.get());
    case ExprKind::CompareExpr:
      expr(e->as<CompareExpr>()->first.get());
      for (const CompareExpr::Link &link : e->as<CompareExpr>()->links)
        expr(link.rhs.get());
      return;
    case ExprKind::ConditionalExpr:
      expr(e->as<ConditionalExpr>()->thenValue.get());
      expr(e->as<ConditionalExpr>()->condition.get());
      return expr(e->as<ConditionalExpr>()->elseValue.get());
    case ExprKind::CallExpr:
      expr(e->as<CallExpr>()->callee.get());
      return arguments(e->as<CallExpr>()->arguments, *e->as<CallExpr>()->callee);
    case ExprKind::IndexExpr:
      expr(e->as<IndexExpr>()->base.get());
      return arguments(e->as<IndexExpr>()->arguments, *e->as<IndexExpr>()->base);
    case ExprKind::SliceExpr:
      expr(e->as<SliceExpr>()->start.get());
      expr(e->as<SliceExpr>()->stop.get());
      return expr(e->as<SliceExpr>()->step.get());
    case ExprKind::AttributeExpr:
      return attribute(*e->as<AttributeExpr>());
    case ExprKind::TupleExpr:
      return all(e->as<TupleExpr>()->elements);
    case ExprKind::ListExpr:
      return all(e->as<ListExpr>()->elements);
    case ExprKind::DictExpr:
      for (const DictExpr::Entry &entry : e->as<DictExpr>()->entries) {
        expr(entry.key.get());
        expr(entry.value.get());
      }
      return;
    case ExprKind::IntLiteral:
    case ExprKind::FloatLiteral:
    case ExprKind::StringLiteral:
    case ExprKind::BoolLiteral:
    case ExprKind::NoneLiteral:
    case ExprKind::EllipsisExpr:
    case ExprKind::ErrorExpr:
      return;
    }
  }
};

} // namespace

Names namesOf(const SourceFile &text, const Module &module) {
  Names names;
  Resolver(text, names).resolve(module);
  return names;
}

} // namespace kpkg::lsp
