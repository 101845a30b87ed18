// Reads the keywords from the lexer's own table of tokens.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/syntax/Keywords.h"
#include "KLexer.h"
#include <algorithm>
#include <cctype>

using namespace kpkg::compiler;

const std::vector<std::string> &kpkg::compiler::keywords() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> found;
    antlr4::ANTLRInputStream nothing{std::string()};
    grammar::KLexer lexer(&nothing);
    const auto &vocabulary = lexer.getVocabulary();
    for (size_t type = 1; type <= vocabulary.getMaxTokenType(); ++type) {
      if (type == grammar::KLexer::FN)
        continue;                                           // the old word for `def`
      std::string literal(vocabulary.getLiteralName(type)); // in quotes: 'var'
      if (literal.size() > 2 && std::isalpha(static_cast<unsigned char>(literal[1])))
        found.push_back(literal.substr(1, literal.size() - 2));
    }
    std::sort(found.begin(), found.end());
    return found;
  }();
  return words;
}

bool kpkg::compiler::isName(const std::string &text) {
  antlr4::ANTLRInputStream characters{text};
  grammar::KLexer lexer(&characters);
  lexer.removeErrorListeners();
  auto tokens = lexer.getAllTokens();
  return tokens.size() == 1 && tokens[0]->getType() == grammar::KLexer::NAME && tokens[0]->getText() == text;
}
