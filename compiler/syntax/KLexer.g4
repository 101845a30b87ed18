// Defines the tokens of .k source. Layout.cpp handles indentation: it adds INDENT and DEDENT, and drops NEWLINE in
// brackets.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
lexer grammar KLexer;

// WHERE is a name except after a signature, where Layout.cpp recognises it.
tokens { INDENT, DEDENT, WHERE }

// Keywords, each reserved everywhere.
FN: 'fn';
DEF: 'def';
STRUCT: 'struct';
VAR: 'var';
MUT: 'mut';
IF: 'if';
ELIF: 'elif';
ELSE: 'else';
FOR: 'for';
WHILE: 'while';
IN: 'in';
BREAK: 'break';
CONTINUE: 'continue';
PASS: 'pass';
RETURN: 'return';
RAISE: 'raise';
RAISES: 'raises';
AND: 'and';
OR: 'or';
NOT: 'not';
IS: 'is';
NONE: 'None';
TRUE: 'True';
FALSE: 'False';
COMPTIME: 'comptime';
ASSERT: 'assert';
LAUNCH: 'launch';
IMPORT: 'import';
FROM: 'from';
AS: 'as';
// Keywords of Python and Mojo that .k does not have, reserved for a good message.
RESERVED: 'class' | 'trait' | 'lambda' | 'try' | 'except' | 'finally' | 'with' | 'del' | 'global'
        | 'nonlocal' | 'async' | 'await' | 'yield' | 'let' | 'alias';

LPAREN: '(';
RPAREN: ')';
LBRACKET: '[';
RBRACKET: ']';
LBRACE: '{';
RBRACE: '}';
COMMA: ',';
COLON: ':';
DOT: '.';
AT: '@';
ARROW: '->';
ASSIGN: '=';
AUGMENTED: '+=' | '-=' | '*=' | '/=' | '//=' | '%=' | '**=' | '&=' | '|=' | '^=' | '<<=' | '>>=';
PLUS: '+';
MINUS: '-';
STAR: '*';
SLASH: '/';
DOUBLE_SLASH: '//';
PERCENT: '%';
DOUBLE_STAR: '**';
AMPERSAND: '&';
BAR: '|';
CARET: '^';
TILDE: '~';
SHIFT_LEFT: '<<';
SHIFT_RIGHT: '>>';
EQUAL: '==';
NOT_EQUAL: '!=';
LESS: '<';
LESS_EQUAL: '<=';
GREATER: '>';
GREATER_EQUAL: '>=';
// Operators of other languages, for a good message.
FOREIGN: '&&' | '||' | '!' | '?' | ';' | ':=' | '===';
ELLIPSIS: '...';

// Numbers include all following letters, so that `12abc` and `0b102` are one wrong number. Literals.cpp checks them.
FLOAT: (DIGITS '.' DIGITS? | '.' DIGITS) EXPONENT? WORD? | DIGITS EXPONENT WORD?;
INTEGER: [0-9] [0-9a-zA-Z_]*;
fragment DIGITS: [0-9] [0-9_]*;
fragment EXPONENT: [eE] [+\-]? DIGITS;
fragment WORD: [a-zA-Z_] [a-zA-Z_0-9]*;

NAME: WORD;

// Unterminated strings are tokens too; Literals.cpp reports them.
STRING: ('"""' ('\\' . | ~'\\')*? ('"""' | EOF) | '\'\'\'' ('\\' . | ~'\\')*? ('\'\'\'' | EOF))
      | '"' ('\\' . | ~[\\"\r\n])* '"'?
      | '\'' ('\\' . | ~[\\'\r\n])* '\''?;

NEWLINE: '\r'? '\n' | '\r';
CONTINUATION: '\\' ('\r'? '\n' | '\r') -> skip;
SPACE: [ \t\f]+ -> skip;
COMMENT: '#' ~[\r\n]* -> skip;
INVALID: ~[\u0000-\u007F]+ | .;
