// Defines the grammar of .k source.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every decision needs one token of lookahead, so that the generated parser consists of plain switches. Rules recurse
// only through brackets and blocks, whose depth Layout.cpp limits.
//
// The tree builder decides what one token cannot: `name=` before an argument, precedence of arithmetic operators,
// `a,,b`.
parser grammar KParser;

options { tokenVocab = KLexer; }

module: statements EOF;
statements: statement*;
block: COLON (NEWLINE INDENT statements DEDENT | simpleStatement NEWLINE);

statement
    : simpleStatement NEWLINE
    | ifStatement
    | forStatement
    | whileStatement
    | comptimeStatement
    | definition
    ;

simpleStatement
    : variable
    | expressionStatement
    | returnStatement
    | raiseStatement
    | launchStatement
    | importStatement
    | fromStatement
    | BREAK
    | CONTINUE
    | PASS
    ;

variable: VAR NAME (COMMA NAME)* (COLON expression)? (ASSIGN expressions)?;
expressionStatement: expressions ((ASSIGN | AUGMENTED) expressions)?;
returnStatement: RETURN expressions?;
raiseStatement: RAISE expression;
launchStatement: LAUNCH operand;
importStatement: IMPORT modulePath (AS NAME)?;
fromStatement: FROM modulePath IMPORT (importedName (COMMA importedName)* | LPAREN importedName (COMMA importedName?)* RPAREN);
modulePath: NAME (DOT NAME)*;
importedName: NAME (AS NAME)?;

ifStatement: IF expression block (ELIF expression block)* (ELSE block)?;
forStatement: FOR NAME (COMMA NAME)* IN expressions block;
whileStatement: WHILE expression block;
comptimeStatement
    : COMPTIME (ifStatement | forStatement | ASSERT expression (COMMA expression)? NEWLINE
              | NAME (COLON expression)? ASSIGN expressions NEWLINE)
    ;

definition: decorator* (function | structure);
function
    : (FN | DEF) NAME comptimeParameters? LPAREN parameters RPAREN RAISES? (ARROW expression)? (WHERE expression)? block
    ;
// The list in parentheses names traits, which the tree builder refuses.
structure: STRUCT NAME comptimeParameters? (LPAREN arguments RPAREN)? block;
decorator: AT NAME (DOT NAME)* (LPAREN arguments RPAREN)? NEWLINE;
comptimeParameters: LBRACKET comptimeParameter (COMMA comptimeParameter?)* RBRACKET;
comptimeParameter: NAME (COLON expression)? (ASSIGN expression)?;
parameters: (parameter (COMMA parameter?)*)?;
parameter: MUT? NAME (COLON expression)? (ASSIGN expression)?;

// With a comma it is a tuple without parentheses.
expressions: expression (COMMA expression?)*;

expression: operation (IF operation ELSE operation)*;
// Operators and operands in a row. One flat rule parses much faster than a rule for each level of precedence. The
// levels are those of Python (BuildOperation.cpp), loosest first:
//
// or; and; not; comparisons (chained); |; ^; &; << >>; + -; * / // %; signs and ~; **.
operation: (PLUS | MINUS | TILDE | NOT)* operand (binaryOperator (PLUS | MINUS | TILDE | NOT)* operand)*;
binaryOperator
    : PLUS | MINUS | STAR | SLASH | DOUBLE_SLASH | PERCENT | DOUBLE_STAR | AMPERSAND | BAR | CARET | SHIFT_LEFT | SHIFT_RIGHT
    | LESS | LESS_EQUAL | GREATER | GREATER_EQUAL | EQUAL | NOT_EQUAL | IN | NOT IN | IS | AND | OR
    ;

operand
    : ( NAME
      | INTEGER
      | FLOAT
      | STRING+
      | TRUE
      | FALSE
      | NONE
      | LPAREN expressions? RPAREN
      | LBRACKET expressions? RBRACKET
      | LBRACE (dictEntry (COMMA dictEntry?)*)? RBRACE
      )
      (DOT NAME | LPAREN arguments RPAREN | LBRACKET subscripts RBRACKET)*
    ;
dictEntry: expression COLON expression;

arguments: (argument (COMMA argument?)*)?;
argument: expression (ASSIGN expression)?;
subscripts: subscript (COMMA subscript?)*;
subscript: expression (ASSIGN expression | slice)? | slice | ELLIPSIS;
slice: COLON expression? (COLON expression?)?;
