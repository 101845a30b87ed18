// Declares the index of one source: its declarations, and what each name in it refers to.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/ast/Stmt.h"
#include "compiler/lsp/Positions.h"
#include <map>

namespace kpkg::lsp {

enum class SymbolKind : uint8_t {
  Function,
  Struct,
  Field,
  Constant,
  Module,   ///< `import m`
  Imported, ///< `from m import f`
  ComptimeParameter,
  Parameter,
  Variable,
  LoopVariable,
};

inline constexpr size_t noSymbol = SIZE_MAX;

/// Something with a name. A name that several branches of a module declare is one symbol.
struct Symbol {
  std::string name;
  SymbolKind kind = SymbolKind::Variable;
  std::vector<Span> declarations; ///< at least one; the names alone
  Span whole;                     ///< the statement that declares it
  size_t function = noSymbol;     ///< the function or struct that it belongs to; of names of a module none
  std::string text;               ///< of functions, structs, constants, fields and parameters: as written
  std::string doc;                ///< of functions and structs
  std::string role;               ///< of functions: "kernel", "register.op" and so on; empty if inlined
  std::vector<size_t> comptimeParameters = {}, parameters = {}; ///< of structs, `parameters` are the fields
  std::vector<size_t> methods = {};                             ///< of structs
  std::vector<compiler::ast::Identifier> module = {};           ///< of Module and Imported
  std::string importedName = {};                                ///< of Imported: its name in that module
  bool hasAlias = false;                                        ///< of Module and Imported
  bool isInferred = false;                                      ///< of variables: declared without a type

  bool isOfModule() const { return function == noSymbol; }
};

/// An occurrence of a name.
struct Use {
  enum Kind : uint8_t {
    Declaration, ///< of `symbol`
    Reference,   ///< to `symbol`
    Member,      ///< of a module: `name` of the module or import `symbol`
    Argument,    ///< the name of an argument; the callee is `symbol`, or its member `member`
    ModuleFile,  ///< a part of the name of a module, which is that of `symbol`
    Attribute,   ///< `.name` of the expression at `base`: a field or a method of a struct, or built in
    Other,       ///< `name` is none of this source: built in, of the prelude, or unknown
  };
  Kind kind = Other;
  Span span;
  size_t symbol = noSymbol;
  std::string name;
  std::string member = {};
  Span base = {};
};

/// The index of one source. It holds nothing of the syntax tree.
struct Names {
  std::vector<Symbol> symbols;
  std::vector<Use> uses; ///< in the order of the text; they do not overlap
  std::map<std::string, size_t> ofModule;
  std::string doc;

  /// Returns the occurrence at an offset; null if there is none.
  const Use *useAt(uint32_t offset) const;
  /// Returns the function or the method whose text an offset is in, up to the next statement of the module.
  size_t functionAt(uint32_t offset) const;
  /// Returns the symbols that code at an offset may name, the innermost last.
  std::vector<size_t> visibleAt(uint32_t offset) const;
};

/// Builds the index of a source without syntax errors.
Names namesOf(const compiler::SourceFile &text, const compiler::ast::Module &module);

} // namespace kpkg::lsp
