// Implements error reports and recovery of the generated parser.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/syntax/Recovery.h"
#include "compiler/diag/NearestName.h"
#include "compiler/syntax/Wording.h"
#include <algorithm>
#include <set>

using namespace kpkg::compiler;
using grammar::KParser;

namespace {
size_t next(antlr4::Parser &parser) { return parser.getTokenStream()->LA(1); }

bool endsStatements(size_t type) { return type == KParser::DEDENT || type == antlr4::Token::EOF; }

/// Returns whether `if` or `while` is still reading its condition.
bool isInCondition(antlr4::Parser &parser) {
  antlr4::tree::ParseTree *context = parser.getContext();
  for (; context; context = context->parent) {
    size_t rule = static_cast<antlr4::RuleContext *>(context)->getRuleIndex();
    if (rule == KParser::RuleIfStatement || rule == KParser::RuleWhileStatement)
      return true;
    if (rule == KParser::RuleStatement || rule == KParser::RuleArguments || rule == KParser::RuleSubscripts)
      return false;
  }
  return false;
}

/// Returns the argument convention of Mojo before the name of a parameter; null elsewhere.
antlr4::Token *foreignConvention(antlr4::Parser &parser) {
  size_t rule = parser.getContext()->getRuleIndex();
  if (rule != KParser::RuleParameters && rule != KParser::RuleParameter && rule != KParser::RuleFunction)
    return nullptr;
  antlr4::TokenStream &tokens = *parser.getTokenStream();
  antlr4::Token *word = tokens.LT(-1), *before = tokens.LT(-2);
  if (next(parser) != KParser::NAME || !word || word->getType() != KParser::NAME || !before ||
      (before->getType() != KParser::LPAREN && before->getType() != KParser::COMMA))
    return nullptr;
  static const std::set<std::string> conventions = {"inout", "borrowed", "owned", "ref"};
  return conventions.count(word->getText()) ? word : nullptr;
}
/// Returns the first word of a statement if an operand follows it, as one follows a keyword; null elsewhere.
antlr4::Token *wordBeforeOperand(antlr4::Parser &parser) {
  antlr4::TokenStream &tokens = *parser.getTokenStream();
  antlr4::Token *word = tokens.LT(-1), *before = tokens.LT(-2);
  static const std::set<size_t> operands = {KParser::NAME, KParser::INTEGER, KParser::FLOAT, KParser::STRING,
                                            KParser::NOT,  KParser::NONE,    KParser::TRUE,  KParser::FALSE};
  static const std::set<size_t> ends = {KParser::NEWLINE, KParser::INDENT, KParser::DEDENT};
  bool isFirst = word && word->getType() == KParser::NAME && (!before || ends.count(before->getType()));
  return isFirst && operands.count(next(parser)) ? word : nullptr;
}

/// Returns the keyword nearest to `word`, or an empty string.
std::string nearestKeyword(antlr4::Parser &parser, std::string_view word) {
  std::vector<std::string> keywords;
  for (size_t type = KParser::FN; type <= KParser::AS; ++type) {
    std::string quoted = parser.getVocabulary().getLiteralName(type);
    keywords.push_back(quoted.substr(1, quoted.size() - 2));
  }
  return nearestName(word, keywords);
}
} // namespace

bool Recovery::firstOnLine(antlr4::Parser &parser) {
  antlr4::TokenStream &tokens = *parser.getTokenStream();
  size_t at = tokens.LT(1)->getTokenIndex();
  if (at < silentUntil || (at < reportedLines.size() && reportedLines[at]))
    return false;
  silentUntil = at;
  while (tokens.get(silentUntil)->getType() != KParser::NEWLINE &&
         tokens.get(silentUntil)->getType() != antlr4::Token::EOF)
    ++silentUntil;
  ++silentUntil;
  return true;
}

std::vector<size_t> Recovery::expectedTypes(antlr4::Parser &parser) const {
  bool known = decision.token == parser.getTokenStream()->index();
  antlr4::misc::IntervalSet set =
      known ? parser.getATN().getExpectedTokens(decision.state, decision.context) : parser.getExpectedTokens();
  std::vector<size_t> types;
  for (ssize_t type : set.toList())
    types.push_back(static_cast<size_t>(type));
  return types;
}

void Recovery::report(antlr4::Parser &parser) {
  if (!firstOnLine(parser))
    return;
  antlr4::Token *token = parser.getTokenStream()->LT(1);
  SourceRange range = places.range(*token);
  std::string_view text = file.slice(range);
  size_t found = token->getType();
  if (found == KParser::ASSIGN && isInCondition(parser)) {
    diags.report(diag::AssignmentInExpression, range).fix(range, "==");
    return;
  }
  std::vector<size_t> expected = expectedTypes(parser);
  bool isWord = found >= KParser::FN && found <= KParser::AS;
  auto expects = [&](size_t type) { return std::find(expected.begin(), expected.end(), type) != expected.end(); };
  if (isWord && expects(KParser::NAME) && !expects(KParser::INTEGER)) {
    diags.report(diag::ReservedWord, range, text);
    return;
  }
  if (found == KParser::AT && expects(KParser::STAR)) {
    diags.report(diag::NotInLanguage, range, text, insteadOf(text));
    return;
  }
  size_t rule = parser.getContext()->getRuleIndex();
  if (antlr4::Token *convention = foreignConvention(parser)) {
    SourceRange place = places.range(*convention);
    std::string_view word = file.slice(place);
    diags.report(diag::NotInLanguage, place, word, insteadOf(word)).fix(place, word == "inout" ? "mut" : "");
    return;
  }
  if (antlr4::Token *word = wordBeforeOperand(parser)) {
    SourceRange place = places.range(*word);
    if (std::string keyword = nearestKeyword(parser, file.slice(place)); !keyword.empty()) {
      diags.report(diag::UnknownName, place, file.slice(place)).fix(place, keyword);
      return;
    }
  }
  if (rule == KParser::RuleDefinition && parser.getContext()->getStart()->getType() == KParser::AT &&
      expects(KParser::FN)) {
    diags.report(diag::DecoratorWithoutFunction, range, describeFound(found, text));
    return;
  }
  DiagnosticBuilder builder = diags.report(diag::ExpectedToken, range, describeFound(found, text),
                                           describeExpected(expected, parser.getVocabulary()));
  if (found == KParser::COLON && rule == KParser::RuleStatement)
    builder.fix(places.range(*parser.getContext()->getStart()).atBegin(), "var ");
}

void Recovery::reportError(antlr4::Parser *parser, const antlr4::RecognitionException &) {
  if (inErrorRecoveryMode(parser))
    return;
  beginErrorCondition(parser);
  report(*parser);
  if (parser->getContext()->getRuleIndex() == KParser::RuleDefinition) // what follows the decorators is no statement
    skipLine(*parser);
}

antlr4::Token *Recovery::recoverInline(antlr4::Parser *parser) {
  if (!inErrorRecoveryMode(parser)) {
    beginErrorCondition(parser);
    report(*parser);
  }
  // A header continues at the colon that ends its line, whatever precedes it.
  if (parser->getContext()->getRuleIndex() == KParser::RuleBlock &&
      parser->getExpectedTokens().contains(size_t{KParser::COLON})) {
    antlr4::TokenStream &tokens = *parser->getTokenStream();
    while (next(*parser) != KParser::NEWLINE && !endsStatements(next(*parser)) &&
           !(next(*parser) == KParser::COLON && tokens.LA(2) == KParser::NEWLINE))
      parser->consume();
    if (next(*parser) == KParser::COLON) {
      antlr4::Token *colon = parser->getCurrentToken();
      parser->consume();
      return colon;
    }
    // This is no header: leave the rule.
    if (tokens.LA(2) != KParser::INDENT)
      throw antlr4::InputMismatchException(parser);
  }
  imagined.push_back(std::make_unique<antlr4::CommonToken>(antlr4::Token::INVALID_TYPE, "<missing>"));
  return imagined.back().get();
}

void Recovery::skipLine(antlr4::Parser &parser) {
  while (next(parser) != KParser::NEWLINE && !endsStatements(next(parser)))
    parser.consume();
  if (next(parser) == KParser::NEWLINE)
    parser.consume();
}

void Recovery::sync(antlr4::Parser *parser) {
  antlr4::TokenStream &tokens = *parser->getTokenStream();
  if (decision.token != tokens.index())
    decision = {tokens.index(), parser->getState(), parser->getContext()};
  if (parser->getContext()->getRuleIndex() != KParser::RuleStatements)
    return;
  if (inErrorRecoveryMode(parser)) {
    // The previous statement gave up. In the middle of a line, skip the rest of the line.
    size_t at = tokens.LT(1)->getTokenIndex();
    size_t before = at == 0 ? KParser::NEWLINE : tokens.get(at - 1)->getType();
    if (before != KParser::NEWLINE && before != KParser::INDENT && before != KParser::DEDENT)
      skipLine(*parser);
    endErrorCondition(parser);
  }
  auto starts = [&](size_t type) {
    static const antlr4::misc::IntervalSet first =
        parser->getATN().nextTokens(parser->getATN().ruleToStartState[KParser::RuleStatement]);
    return first.contains(type);
  };
  for (size_t type = next(*parser); !starts(type) && !endsStatements(type); type = next(*parser)) {
    if (type == KParser::INDENT) {
      // Skips the block of a skipped line.
      size_t depth = 0;
      do {
        depth += next(*parser) == KParser::INDENT;
        depth -= next(*parser) == KParser::DEDENT;
        parser->consume();
      } while (depth != 0 && next(*parser) != antlr4::Token::EOF);
      continue;
    }
    if (type != KParser::NEWLINE && firstOnLine(*parser)) {
      SourceRange range = places.range(*tokens.LT(1));
      std::string_view text = file.slice(range);
      if (type == KParser::ELSE || type == KParser::ELIF)
        diags.report(diag::ElseWithoutIf, range, text);
      else
        diags.report(diag::UnexpectedToken, range, describeFound(type, text));
    }
    skipLine(*parser);
  }
}
